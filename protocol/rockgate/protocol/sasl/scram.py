"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), the server's side.

    client   n,,n=user,r=<client nonce>
    server   r=<client nonce><server nonce>,s=<salt>,i=<iterations>
    client   c=biws,r=<both nonces>,p=<proof>
    server   v=<signature>

A server stores two keys that are derived from the password, never the password: whoever reads them
cannot log in with them, but can check a proof. As Kafka does, names and passwords are compared by
their UTF-8 bytes, without SASLprep. There is no channel binding.

An exchange with a user who does not exist runs to its end with a salt that is derived from the
name, so that nothing tells it from a wrong password; `unknown_credential` makes it.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from rockgate.protocol.sasl.errors import MalformedToken, WrongCredentials

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
"""Kafka's bounds: they limit the work that a server can demand of a client."""
TOKEN_SIZE_MAX: Final = 4_096
SALT_SIZE: Final = 20
_EXTENSIONS_MAX: Final = 16
_CHANNEL_BINDING: Final = {b"n": b"biws", b"y": b"eSws"}
"""The first field of a client, and how its last message must repeat it."""


class ScramMechanism(Enum):
    """A mechanism by its SASL name, with the name of its hash."""

    SHA_256 = "SCRAM-SHA-256", "sha256", 1
    SHA_512 = "SCRAM-SHA-512", "sha512", 2

    def __init__(self, sasl_name: str, hash_name: str, number: int) -> None:
        self.sasl_name = sasl_name
        self.hash_name = hash_name
        self.number = number
        """Its number in Kafka's requests."""


class ScramCredential(NamedTuple):
    """What is stored of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        """Without the keys: with them a password can be guessed offline."""
        return f"ScramCredential(iterations={self.iterations})"


class ClientFirst(NamedTuple):
    """The first message of a client."""

    user: str
    nonce: bytes
    extensions: Mapping[str, str]
    bare: bytes
    """The part that is signed."""
    binding: bytes
    """What the second message must repeat."""


def salted_password(
    mechanism: ScramMechanism, password: bytes, salt: bytes, iterations: int
) -> bytes:
    """Hash a password. It takes milliseconds, and releases the interpreter meanwhile."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password, salt, iterations)


def credential_of(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Derive what is stored from a salted password, which is what Kafka's clients send."""
    client_key = _mac(mechanism, salted, b"Client Key")
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    return ScramCredential(salt, iterations, stored_key, _mac(mechanism, salted, b"Server Key"))


def unknown_credential(
    mechanism: ScramMechanism, secret: bytes, user: str, iterations: int = ITERATIONS_MIN
) -> ScramCredential:
    """A credential that no password fits: always the same one for a user who does not exist."""
    seed = _mac(mechanism, secret, f"{mechanism.sasl_name}:{user}".encode())
    keys = _mac(mechanism, secret, b"keys:" + seed)
    return ScramCredential(seed[:SALT_SIZE], iterations, keys, keys)


def is_password(mechanism: ScramMechanism, credential: ScramCredential, password: bytes) -> bool:
    """Check a password itself, as PLAIN sends it. As slow as `salted_password`."""
    salt, iterations, stored_key, _ = credential
    salted = salted_password(mechanism, password, salt, iterations)
    found = credential_of(mechanism, salted, salt, iterations)
    return hmac.compare_digest(found.stored_key, stored_key)


class ScramServer:
    """One exchange. `first`, then `challenge`, then `finish`, once each."""

    def __init__(self, mechanism: ScramMechanism, nonce: bytes) -> None:
        """`nonce` is printable, unpredictable and new for each exchange."""
        self._mechanism = mechanism
        self._nonce = nonce
        self._first: ClientFirst | None = None
        self._credential: ScramCredential | None = None
        self._challenge = b""

    def first(self, token: bytes) -> ClientFirst:
        """Read the client's first message, which names the user."""
        self._first = first = _read_first(token)
        return first

    def challenge(self, credential: ScramCredential) -> bytes:
        """The server's first message."""
        assert self._first is not None, "the client comes first"
        self._credential = credential
        salt = b64encode(credential.salt)
        nonces = self._first.nonce + self._nonce
        self._challenge = b"r=%b,s=%b,i=%d" % (nonces, salt, credential.iterations)
        return self._challenge

    def finish(self, token: bytes) -> bytes:
        """Check the client's proof, and return the server's; WrongCredentials if it is wrong."""
        first, credential = self._first, self._credential
        assert first is not None and credential is not None, "a challenge was sent"
        _check_size(token)
        unsigned, found, proof_text = token.rpartition(b",p=")
        fields = unsigned.split(b",")
        if not found or len(fields) < 2:  # the channel binding and the nonces
            raise MalformedToken("SCRAM's last message has no proof.")
        if fields[0] != b"c=" + first.binding:
            raise MalformedToken("SCRAM's last message has another channel binding.")
        nonces = first.nonce + self._nonce
        # librdkafka before 2.6.1, as distributions ship it, has its own nonce twice.
        if fields[1] not in (b"r=" + nonces, b"r=" + first.nonce + nonces):
            raise MalformedToken("SCRAM's last message has another nonce.")
        proof = _decoded(proof_text, "proof")
        signed = b",".join((first.bare, self._challenge, unsigned))
        signature = _mac(self._mechanism, credential.stored_key, signed)
        if len(proof) != len(signature):
            raise WrongCredentials("The proof has a wrong size.")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._mechanism.hash_name, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise WrongCredentials("The proof is wrong.")
        return b"v=" + b64encode(_mac(self._mechanism, credential.server_key, signed))


def _read_first(token: bytes) -> ClientFirst:
    _check_size(token)
    parts = token.split(b",", 2)
    if len(parts) != 3:  # binding, authorization id, and the rest
        raise MalformedToken("SCRAM's first message has too few fields.")
    flag, authorization_id, bare = parts
    if flag not in _CHANNEL_BINDING:
        raise MalformedToken("SCRAM's first message asks for channel binding.")
    fields = bare.split(b",")
    if len(fields) < 2 or fields[0][:2] != b"n=" or fields[1][:2] != b"r=":
        raise MalformedToken("SCRAM's first message has no user name or no nonce.")
    user, nonce = _name(fields[0][2:]), fields[1][2:]
    if not nonce or not all(0x21 <= byte <= 0x7E for byte in nonce):  # printable
        raise MalformedToken("SCRAM's nonce is empty or not printable.")
    if authorization_id and (authorization_id[:2] != b"a=" or _name(authorization_id[2:]) != user):
        raise MalformedToken("SCRAM's first message asks to act as another user.")
    binding = _CHANNEL_BINDING[flag]
    if authorization_id:
        binding = b64encode(b"%b,%b," % (flag, authorization_id))
    return ClientFirst(user, nonce, _extensions(fields[2:]), bare, binding)


def _extensions(fields: list[bytes]) -> Mapping[str, str]:
    """Read what follows the nonce: Kafka's clients say there that they log in with a token."""
    if len(fields) > _EXTENSIONS_MAX:
        raise MalformedToken("SCRAM's first message has too many extensions.")
    extensions = {}
    for each in fields:
        name, equals, value = each.partition(b"=")
        if not equals or not name.isalpha():
            raise MalformedToken("SCRAM's first message has an extension without a value.")
        extensions[name.decode()] = _text(value)
    return extensions


def _name(escaped: bytes) -> str:
    """Read a user name, in which a comma is `=2C` and an equals sign `=3D`."""
    parts = escaped.split(b"=")
    text = parts[0]
    for part in parts[1:]:
        if part[:2] not in (b"2C", b"3D"):
            raise MalformedToken("SCRAM's user name has a wrong escape.")
        text += (b"," if part[:2] == b"2C" else b"=") + part[2:]
    if not text:
        raise MalformedToken("SCRAM's user name is empty.")
    return _text(text)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise MalformedToken("SCRAM's message is not UTF-8.") from None


def _decoded(value: bytes, what: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except Base64Error:
        raise MalformedToken(f"SCRAM's {what} is not base64.") from None


def _check_size(token: bytes) -> None:
    if len(token) > TOKEN_SIZE_MAX:
        raise MalformedToken(f"SCRAM token is {len(token):,} bytes; the maximum is 4,096.")


def _mac(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.hash_name)
