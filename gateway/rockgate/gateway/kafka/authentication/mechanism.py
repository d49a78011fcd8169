"""What a mechanism of SASL is to a connection: exchanges of messages that end with a principal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rockgate.gateway.security.principal import Principal


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The server's part of a step."""

    message: bytes = b""
    principal: Principal | None = None
    """Who the client is, once that is known: this was the last step then."""
    expires_ms: int | None = None
    """When the credential itself expires, in milliseconds since the epoch."""
    token_id: str | None = None
    """The delegation token that the client has logged in with."""
    is_current: Callable[[], bool] = _always
    """Whether what the client has proven is still enough to log in; asked when the session begins.
    Until then the connection has no user, so no change of users can close it."""


class ServerExchange(Protocol):
    """One attempt of one client."""

    @property
    def claimed(self) -> str:
        """The name that the client has given, which is not proven; empty if it has not."""

    async def step(self, message: bytes, /) -> Step:
        """Respond to a message of the client; SaslError ends the attempt."""


class Mechanism(Protocol):
    """A mechanism that is enabled."""

    def begin(self) -> ServerExchange:
        """A new attempt."""
