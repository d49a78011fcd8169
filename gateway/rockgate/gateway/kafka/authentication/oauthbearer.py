"""OAUTHBEARER: the client sends a token that an OAuth server has signed.

Departs from RFC 7628 and Kafka: a failure ends the exchange at once, without the message that names
its status, as failures of the other mechanisms do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from rockgate.gateway.kafka.authentication.mechanism import Step
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.sasl.errors import WrongCredentials
from rockgate.protocol.sasl.oauthbearer import read_message


class ValidToken(Protocol):
    """What a token says."""

    @property
    def name(self) -> str:
        """Whom it is about."""

    @property
    def expires_ms(self) -> int:
        """When it expires."""


class TokenChecks(Protocol):
    """Checks tokens."""

    def check(self, token: str, /) -> Awaitable[ValidToken]:
        """What a token says; SaslError if it is not valid."""


class OauthBearer:
    """The mechanism."""

    def __init__(self, tokens: TokenChecks, is_disabled: Callable[[str], bool]) -> None:
        """`is_disabled`: whether there is a user of that name who may not log in."""
        self._tokens = tokens
        self._is_disabled = is_disabled

    def begin(self) -> OauthBearerExchange:
        """A new attempt."""
        return OauthBearerExchange(self._tokens, self._is_disabled)


class OauthBearerExchange:
    """One attempt, of one message."""

    def __init__(self, tokens: TokenChecks, is_disabled: Callable[[str], bool]) -> None:
        self._tokens = tokens
        self._is_disabled = is_disabled
        self.claimed = ""

    async def step(self, message: bytes) -> Step:
        """Check the token."""
        given = read_message(message)
        self.claimed = given.authorization_id
        found = await self._tokens.check(given.token)
        if given.authorization_id not in ("", found.name):
            raise WrongCredentials("The client asks to act as another user than the token's.")
        self.claimed = found.name
        if self._is_disabled(found.name):
            raise WrongCredentials("The user is disabled.")
        return Step(
            principal=Principal.user(found.name),
            expires_ms=found.expires_ms,
            is_current=lambda: not self._is_disabled(found.name),
        )
