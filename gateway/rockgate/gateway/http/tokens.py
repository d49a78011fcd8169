"""Bearer tokens of the HTTP listener: those of an OAuth server, or one that a file holds."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol, TypeVar

from rockgate.gateway.security.principal import Principal
from rockgate.protocol.sasl.errors import SaslError, WrongCredentials

TOKEN_BYTES_MIN: Final = 16
TOKEN_BYTES_MAX: Final = 4_096
HOLDER: Final = Principal("Token", "http.token_file")
"""Whoever has the token of the file; no grant can be about it."""
T = TypeVar("T")


class InvalidTokenFile(Exception):
    """The file has no token. The text is a sentence, and does not quote the file."""


class TokenHolder(Protocol):
    """What a token of an OAuth server says."""

    @property
    def name(self) -> str:
        """Whom it is about."""


class OauthChecks(Protocol):
    """Checks tokens of an OAuth server."""

    def check(self, token: str, /) -> Awaitable[TokenHolder]:
        """What a token says; SaslError if it is not valid."""


class OauthTokens:
    """Takes tokens that an OAuth server has signed."""

    takes_grants: Final = True

    def __init__(self, tokens: OauthChecks, is_disabled: Callable[[str], bool]) -> None:
        """`is_disabled`: whether there is a user of that name who may not log in."""
        self._tokens = tokens
        self._is_disabled = is_disabled

    async def principal(self, token: str) -> Principal:
        """Whom a token is about; SaslError if it is not valid."""
        found = await self._tokens.check(token)
        if self._is_disabled(found.name):
            raise WrongCredentials("The user is disabled.")
        return Principal.user(found.name)


class FileThreads(Protocol):
    """Runs what may block."""

    def run(self, work: Callable[[], T], /) -> Awaitable[T]:
        """Run it in a thread."""


class FileToken:
    """Takes the token that is in a file now: to replace it, replace the file."""

    takes_grants: Final = False

    def __init__(self, path: Path, threads: FileThreads) -> None:
        self._path = path
        self._threads = threads

    async def principal(self, token: str) -> Principal:
        """Whoever has the token; SaslError for another."""
        try:
            held = await self._threads.run(lambda: read_token(self._path))
        except InvalidTokenFile as error:
            raise SaslError(str(error)) from None
        if not hmac.compare_digest(held, token.encode()):
            raise WrongCredentials("The token is not that of the file.")
        return HOLDER


def read_token(path: Path) -> bytes:
    """The token, which is the first line of the file; InvalidTokenFile if there is none."""
    try:
        with path.open("rb") as file:
            line = file.readline(TOKEN_BYTES_MAX + 2).strip()
    except OSError as error:
        raise InvalidTokenFile(f"Cannot read {path}: {error.strerror or error}.") from None
    if not TOKEN_BYTES_MIN <= len(line) <= TOKEN_BYTES_MAX:
        raise InvalidTokenFile(
            f"The first line of {path} must be a token of {TOKEN_BYTES_MIN} to"
            f" {TOKEN_BYTES_MAX:,} bytes, such as `openssl rand -hex 32` makes."
        )
    return line
