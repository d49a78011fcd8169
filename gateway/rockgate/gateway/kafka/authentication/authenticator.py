"""The steps of an authentication: asks the mechanism, and decides what its outcome means.

Whatever goes wrong ends the login: a step that does not return leaves no principal behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from rockgate.gateway.kafka.authentication.login import Login, State
from rockgate.gateway.kafka.authentication.mechanism import Mechanism, Step
from rockgate.gateway.net.clock import Clock
from rockgate.gateway.security.credentials.failed_attempts import FailedAttempts
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.sasl.errors import SaslError, WrongCredentials


class AuthenticationAudit(Protocol):
    """Records every attempt."""

    def authenticated(
        self, principal: Principal, host: str, /, *, mechanism: str, listener: str
    ) -> None:
        """A client has authenticated."""

    def rejected(
        self, principal: Principal, host: str, /, *, mechanism: str, listener: str, reason: str
    ) -> None:
        """A client has not proven to be the principal that it claims to be."""


class AuthenticationFailed(Exception):
    """The attempt has failed. Deliberately without a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReply:
    """The response to a step."""

    message: bytes
    lifetime_ms: int = 0
    """How long the session lasts; 0 as long as the connection, or if it has not begun."""


class Authenticator:
    """Authenticates the clients of a listener."""

    def __init__(
        self,
        *,
        listener: str,
        mechanisms: Mapping[str, Mechanism],
        failures: FailedAttempts,
        audit: AuthenticationAudit,
        clock: Clock,
        now_ms: Callable[[], int],
        seconds_max: float,
        session_ms_max: int | None,
    ) -> None:
        """`clock` measures sessions, `now_ms` is the time of day, in which credentials expire."""
        self.seconds_max = seconds_max
        """How long a client may take to authenticate."""
        self._listener = listener
        self._mechanisms = mechanisms
        self._failures = failures
        self._audit = audit
        self._clock = clock
        self._now_ms = now_ms
        self._session_ms_max = session_ms_max

    def begin(self, host: str, changed: Callable[[], None]) -> Authentication:
        """The authentication of a new connection; `changed` is called after each of its changes."""
        return Authentication(self, Login(self._mechanisms, changed), host)

    def choose(self, login: Login, mechanism: str, version: int) -> ErrorCode:
        """Begin an exchange with a mechanism, as SaslHandshake of that version asks for."""
        return login.choose(mechanism, version, self._clock.time())

    async def step(self, login: Login, message: bytes, host: str) -> StepReply:
        """Respond to a message of the client; AuthenticationFailed ends the login."""
        started, exchange = self._clock.time(), login.exchange
        assert exchange is not None, "a mechanism was chosen"
        mechanism = login.mechanism
        try:
            outcome = await exchange.step(message)
            if outcome.principal is None:
                return StepReply(message=outcome.message)
            lifetime_ms = self._lifetime_ms(login, outcome)
            await self._wait(started, host, has_failed=False)
            if not outcome.is_current():
                raise WrongCredentials("The credential has changed since the exchange began.")
        except SaslError as error:
            self._failures.count(host, self._clock.time())
            self._audit.rejected(
                Principal.user(exchange.claimed),
                host,
                mechanism=mechanism,
                listener=self._listener,
                reason=str(error),
            )
            await self._wait(started, host, has_failed=True)
            login.fail()
            raise AuthenticationFailed from None
        except BaseException:
            login.fail()
            raise
        if login.state is not State.EXCHANGING:
            raise AuthenticationFailed
        expires_at = None if lifetime_ms is None else self._clock.time() + lifetime_ms / 1000
        login.succeed(outcome.principal, expires_at, outcome.token_id)
        self._audit.authenticated(
            outcome.principal, host, mechanism=mechanism, listener=self._listener
        )
        return StepReply(message=outcome.message, lifetime_ms=lifetime_ms or 0)

    def _lifetime_ms(self, login: Login, outcome: Step) -> int | None:
        """How long the session lasts; SaslError if it may not begin."""
        if login.principal not in (None, outcome.principal):
            raise SaslError(f"The principal changed from {login.principal}.")
        lifetime_ms = self._session_ms_max
        if outcome.expires_ms is not None:
            left_ms = outcome.expires_ms - self._now_ms()
            if left_ms <= 0:
                raise SaslError("The credential has expired.")
            lifetime_ms = left_ms if lifetime_ms is None else min(left_ms, lifetime_ms)
        return lifetime_ms

    async def _wait(self, started: float, host: str, *, has_failed: bool) -> None:
        """Wait as long as the address has to, since the client's message."""
        now = self._clock.time()
        seconds = self._failures.delay_seconds(host, now, has_failed=has_failed)
        left = started + seconds - now
        if left > 0:
            over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            timer = self._clock.call_later(left, lambda: _end(over))
            try:
                await over
            finally:
                timer.cancel()


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class Authentication:
    """The authentication of one connection: its states, and the one who decides about them."""

    __slots__ = ("_authenticator", "_host", "login")

    def __init__(self, authenticator: Authenticator, login: Login, host: str) -> None:
        self._authenticator = authenticator
        self._host = host
        self.login = login

    @property
    def seconds_max(self) -> float:
        """How long the client may take."""
        return self._authenticator.seconds_max

    def choose(self, mechanism: str, version: int) -> ErrorCode:
        """Begin an exchange with a mechanism, as SaslHandshake of that version asks for."""
        return self._authenticator.choose(self.login, mechanism, version)

    def step(self, message: bytes) -> Awaitable[StepReply]:
        """Respond to a message of the client; AuthenticationFailed ends the login."""
        return self._authenticator.step(self.login, message, self._host)
