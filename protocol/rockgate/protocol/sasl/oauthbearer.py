"""SASL OAUTHBEARER (RFC 7628): a bearer token, in one message and in clear.

    n,a=<authorization id>,^A auth=Bearer <token> ^A name=value ^A … ^A      (^A is the byte 1)

As in Kafka's clients, the authorization id may be missing, and pairs beside `auth` are extensions.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rockgate.protocol.sasl.errors import MalformedToken

TOKEN_SIZE_MAX: Final = 64 << 10
"""Of the whole message: tokens of users in many groups have some ten thousand bytes."""
PAIRS_MAX: Final = 64
_HEADER = re.compile(rb"n,(?:a=((?:[\x02-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,")
_NAME = re.compile(rb"[A-Za-z]+")
_VALUE = re.compile(rb"[\x21-\x7e \t\r\n]+")
_AUTH = re.compile(rb"(?i:bearer) +([-_~+/.a-zA-Z0-9]+=*)")
_SEPARATOR: Final = b"\x01"


class BearerMessage(NamedTuple):
    """What a client says."""

    authorization_id: str
    """Whom the client wants to act as; empty for whomever the token is about."""
    token: str

    def __repr__(self) -> str:
        """Without the token, which is a password as long as it is valid."""
        return "BearerMessage()"


def read_message(message: bytes) -> BearerMessage:
    """Read a client's message; MalformedToken does not quote it."""
    if len(message) > TOKEN_SIZE_MAX:
        raise MalformedToken(
            f"OAUTHBEARER message is {len(message):,} bytes; the maximum is {TOKEN_SIZE_MAX:,}."
        )
    header, *pairs = message.split(_SEPARATOR, PAIRS_MAX + 3)
    found = _HEADER.fullmatch(header)
    if found is None or pairs[-2:] != [b"", b""]:
        raise MalformedToken("OAUTHBEARER message has another form.")
    auth = None
    for pair in pairs[:-2]:
        name, equals, value = pair.partition(b"=")
        if not equals or _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise MalformedToken("OAUTHBEARER message has a pair of another form.")
        if name == b"auth":
            if auth is not None:
                raise MalformedToken("OAUTHBEARER message has two tokens.")
            auth = _AUTH.fullmatch(value)
            if auth is None:
                raise MalformedToken("OAUTHBEARER message has no bearer token.")
    if auth is None:
        raise MalformedToken("OAUTHBEARER message has no token.")
    return BearerMessage(_unescaped(found[1] or b""), auth[1].decode())


def _unescaped(name: bytes) -> str:
    return name.replace(b"=2C", b",").replace(b"=3D", b"=").decode()
