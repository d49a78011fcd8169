"""The states of a connection that has to authenticate, sans-IO: time and bytes are parameters.

    begun       no principal yet: ApiVersions and SaslHandshake
    exchanging  a mechanism was chosen: its steps, and nothing else
    open        authenticated: everything, until the lifetime of the session is over
    closed      an attempt failed

docs/internals/security.md has the table of every state and request. `admit` is where a request of
a client that has not authenticated ends; whatever it lets pass may reach a handler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from rockgate.gateway.kafka.authentication.mechanism import Mechanism, ServerExchange
from rockgate.gateway.net.stream import Disconnect
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey

AGAIN_SECONDS_MIN: Final = 1.0
"""A client may authenticate again once a second, as in Kafka."""
_BEFORE: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE})
_LATE: Final = frozenset({*_BEFORE, ApiKey.SASL_AUTHENTICATE})
_FOREVER: Final = float("inf")


class State(Enum):
    """How far a connection has come."""

    BEGUN = "begun"
    EXCHANGING = "exchanging"
    OPEN = "open"
    CLOSED = "closed"


class Login:
    """The authentication of one connection. Its session owns it."""

    __slots__ = (
        "_changed",
        "_chosen_at",
        "_expires_at",
        "_mechanisms",
        "exchange",
        "is_headerless",
        "mechanism",
        "principal",
        "state",
        "token_id",
    )

    def __init__(
        self,
        mechanisms: Mapping[str, Mechanism],
        changed: Callable[[], None],
    ) -> None:
        """`changed` is called after each change of the state."""
        self._mechanisms = mechanisms
        self._changed = changed
        self._chosen_at = -_FOREVER
        self._expires_at = _FOREVER
        self.state = State.BEGUN
        self.exchange: ServerExchange | None = None
        """The exchange under way."""
        self.mechanism = ""
        """The name of the mechanism that was chosen; the client has to stay with it."""
        self.is_headerless = False
        """Whether the steps come as frames without a header."""
        self.principal: Principal | None = None
        """Whom the client has authenticated as; None before the first time."""
        self.token_id: str | None = None
        """The delegation token that it has last authenticated with."""

    @property
    def mechanisms(self) -> list[str]:
        """The names of the mechanisms that may be chosen."""
        return [*self._mechanisms]

    def admit(self, api_key: int, now: float) -> None:
        """Let a request pass that the state allows; Disconnect for any other."""
        state = self.state
        if state is State.OPEN:
            if now < self._expires_at or api_key in _LATE:
                return
            raise Disconnect("the session has expired and was not authenticated again")
        if state is State.BEGUN:
            if api_key in _BEFORE:
                return
        elif state is State.EXCHANGING and api_key == ApiKey.SASL_AUTHENTICATE:
            return
        raise Disconnect(f"request in the {state.value} state of authentication api={api_key}")

    def choose(self, mechanism: str, version: int, now: float) -> ErrorCode:
        """Begin an exchange with a mechanism, as SaslHandshake of that version asks for."""
        if self.state not in (State.BEGUN, State.OPEN):
            return ErrorCode.ILLEGAL_SASL_STATE
        chosen = self._mechanisms.get(mechanism)
        if chosen is None:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        if self.state is State.OPEN and (
            version == 0 or mechanism != self.mechanism or now - self._chosen_at < AGAIN_SECONDS_MIN
        ):
            return ErrorCode.ILLEGAL_SASL_STATE
        self._chosen_at = now
        self.mechanism = mechanism
        self.is_headerless = version == 0
        self.exchange = chosen.begin()
        self._become(State.EXCHANGING)
        return ErrorCode.NONE

    def succeed(
        self, principal: Principal, expires_at: float | None, token_id: str | None = None
    ) -> None:
        """The last step has succeeded; the session lasts until then, on the clock of `admit`."""
        assert self.state is State.EXCHANGING, "a mechanism was chosen"
        assert self.principal in (None, principal), "the principal does not change"
        self.principal, self.token_id = principal, token_id
        self._expires_at = _FOREVER if expires_at is None else expires_at
        self.exchange, self.is_headerless = None, False
        self._become(State.OPEN)

    def fail(self) -> None:
        """An attempt has failed: nothing more is admitted."""
        self.exchange = None
        self._become(State.CLOSED)

    def release(self) -> None:
        """Detach from the session, which has ended."""
        self._changed = _nothing
        self.state, self.exchange = State.CLOSED, None

    def _become(self, state: State) -> None:
        self.state = state
        self._changed()


def _nothing() -> None:
    """Called instead of a session that has ended."""
