"""Signatures of requests, as RocketMQ's AclClientRPCHook makes them: HMAC-SHA1 with a secret.

A signed request has two more fields, the user's name as `AccessKey` and the `Signature`, and may
have a `SecurityToken`. What is signed are the values of all fields but the signature itself, in the
order of their names and without anything between them, followed by the body. The request's code is
not signed, nor is anything that would make a signature valid only once: keep the wire private with
TLS where others can read it.
"""

import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from rockgate.protocol.remoting.command import Buffer, Command, Fields

ACCESS_KEY: Final = "AccessKey"
"""The field with the user's name."""
SIGNATURE: Final = "Signature"
SECURITY_TOKEN: Final = "SecurityToken"  # the name of a field
SIGNATURE_CHARS: Final = 28
"""The length of every signature: twenty bytes in Base64."""

UNSIGNED_UNTIL_VERSION: Final = 399
"""RocketMQ 4.9.3, the last version whose clients leave UNIQUE_KEY_QUERY out of the signature."""
UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"


def sign(
    fields: Fields,
    body: Buffer,
    *,
    access_key: str,
    secret: str | bytes,
    security_token: str | None = None,
) -> Fields:
    """The fields of a request with those of its signature. `body` is what will be sent."""
    signed = {**fields, ACCESS_KEY: access_key}
    if security_token is not None:
        signed[SECURITY_TOKEN] = security_token
    signed.pop(SIGNATURE, None)
    signed[SIGNATURE] = signature(signed, body, secret)
    return signed


def verify(request: Command, secret: str | bytes) -> bool:
    """Whether a request was signed with the secret; it takes as long for a wrong signature."""
    fields: Mapping[str, str] = request.all_fields()
    given = fields.get(SIGNATURE, "")
    if UNIQUE_KEY_QUERY in fields and request.version <= UNSIGNED_UNTIL_VERSION:
        fields = {name: value for name, value in fields.items() if name != UNIQUE_KEY_QUERY}
    expected = signature(fields, request.body, secret)
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())


def signature(fields: Mapping[str, str], body: Buffer, secret: str | bytes) -> str:
    """The signature of fields and body; one among the fields is left out."""
    key = secret.encode() if isinstance(secret, str) else secret
    digest = hmac.digest(key, signed_content(fields, body), hashlib.sha1)
    return binascii.b2a_base64(digest, newline=False).decode("ascii")


def signed_content(fields: Mapping[str, str], body: Buffer) -> bytes:
    """The bytes that are signed: the fields' values by name, and the body."""
    names = sorted(fields)
    if names and not all(map(str.isascii, names)):
        # Java compares UTF-16 code units.
        names.sort(key=_utf16)
    text = "".join([fields[name] for name in names if name != SIGNATURE])
    # What is not a character becomes a question mark, as in Java.
    return b"".join((text.encode(errors="replace"), body))


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", errors="surrogatepass")
