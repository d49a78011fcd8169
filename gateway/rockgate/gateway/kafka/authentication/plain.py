"""PLAIN: the client sends its password, which is checked against the stored keys in a thread."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Protocol

from rockgate.gateway.kafka.authentication.mechanism import Step
from rockgate.gateway.security.principal import Principal
from rockgate.protocol.sasl.errors import WrongCredentials
from rockgate.protocol.sasl.plain import read_token


class Passwords(Protocol):
    """Checks passwords."""

    def check_password(self, name: str, password: str, /) -> Awaitable[bool]:
        """Whether it is the password of a user who can log in.

        It takes as long for a user who does not exist.
        """

    def may_log_in(self, name: str, /) -> bool:
        """Whether there is such a user, who is enabled."""


class Plain:
    """The mechanism."""

    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords

    def begin(self) -> PlainExchange:
        """A new attempt."""
        return PlainExchange(self._passwords)


class PlainExchange:
    """One attempt, of one message."""

    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords
        self.claimed = ""

    async def step(self, message: bytes) -> Step:
        """Check the password."""
        token = read_token(message)
        self.claimed = token.user
        if not await self._passwords.check_password(token.user, token.password):
            raise WrongCredentials("The user or the password is wrong.")
        return Step(
            principal=Principal.user(token.user),
            is_current=partial(self._passwords.may_log_in, token.user),
        )
