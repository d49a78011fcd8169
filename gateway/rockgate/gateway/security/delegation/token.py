"""A delegation token as it is stored, and as its creator gets it."""

from __future__ import annotations

from typing import NamedTuple

from rockgate.gateway.security.principal import Principal
from rockgate.protocol.sasl.scram import ScramCredential


class Token(NamedTuple):
    """What is stored of a token. Its HMAC is not: that is the password."""

    owner: str
    """`User:name`, as are all principals here."""
    requester: str
    renewers: list[str]
    issued_ms: int
    expires_ms: int
    ends_ms: int
    """It cannot be renewed beyond this."""
    digest: bytes
    """SHA-256 of the HMAC, by which it is found."""
    is_of_user: bool
    """Whether the owner was a user, without whom the token is of no use."""

    def is_valid(self, now_ms: int) -> bool:
        """Whether it has not expired."""
        return now_ms <= self.expires_ms

    def may_be_renewed_by(self, principal: Principal) -> bool:
        """Whether a principal may change its expiry."""
        text = str(principal)
        return text == self.owner or text in self.renewers

    def may_be_seen_by(self, principal: Principal) -> bool:
        """Whether a principal may see it without a grant."""
        return str(principal) == self.requester or self.may_be_renewed_by(principal)


class TokenCredential(NamedTuple):
    """What a client has to prove to log in with a token, and what it becomes then."""

    credential: ScramCredential
    owner: Principal
    expires_ms: int


class IssuedToken(NamedTuple):
    """A token with its id and HMAC."""

    id: str
    hmac: bytes
    token: Token

    def __repr__(self) -> str:
        """Without the HMAC."""
        return f"IssuedToken(id={self.id!r}, owner={self.token.owner!r})"
