"""SASL PLAIN (RFC 4616): a user name and a password, in one message and in clear."""

from __future__ import annotations

from typing import Final, NamedTuple

from rockgate.protocol.sasl.errors import MalformedToken

TOKEN_SIZE_MAX: Final = 4_096
_PARTS: Final = 3


class PlainToken(NamedTuple):
    """What a client says."""

    authorization_id: str
    """Whom the client wants to act as; empty for itself."""
    user: str
    password: str

    def __repr__(self) -> str:
        """Without the password: tokens end up in tracebacks."""
        return f"PlainToken(user={self.user!r})"


def read_token(token: bytes) -> PlainToken:
    """Read a client's message; MalformedToken does not quote it, for it has a password."""
    if len(token) > TOKEN_SIZE_MAX:
        raise MalformedToken(f"PLAIN token is {len(token):,} bytes; the maximum is 4,096.")
    parts = token.split(b"\0")
    if len(parts) != _PARTS:
        raise MalformedToken(f"PLAIN token has {len(parts)} parts instead of {_PARTS}.")
    try:
        authorization_id, user, password = (part.decode() for part in parts)
    except UnicodeDecodeError:
        raise MalformedToken("PLAIN token is not UTF-8.") from None
    if not user or not password:
        raise MalformedToken("PLAIN token has no user name or no password.")
    if authorization_id not in ("", user):
        raise MalformedToken("PLAIN token asks to act as another user.")
    return PlainToken(authorization_id, user, password)
