"""Sessions: one for all visitors where no login is demanded, else one for each login.

A session is found by the random value of a cookie. It ends with a logout, after hours without a
request, or as the oldest when there are too many.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from rockgate.cli.client.kafka.errors import ClientError
from rockgate.console.session.peer import Peer

if TYPE_CHECKING:
    from rockgate.console.settings import Settings

IDLE_S_MAX: Final = 8 * 3600
SESSIONS_MAX: Final = 64
FAILURES_MAX: Final = 5
"""Failed logins after which every further one waits."""
WAIT_S: Final = 2.0
_TOKEN_BYTES: Final = 32


@dataclass(slots=True)
class Session:
    """One user's view of the server."""

    peer: Peer
    is_read_only: bool
    username: str = ""
    masks: tuple[str, ...] = ()
    used_at: float = field(default_factory=time.monotonic)


class Sessions:
    """All sessions of the console."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._by_token: dict[str, Session] = {}
        self._shared: Session | None = None
        self._failures = 0
        self._turn = asyncio.Lock()

    @property
    def demands_login(self) -> bool:
        """Whether pages are only for those who have logged in."""
        return self._settings.demands_login

    def start(self) -> None:
        """Begin the shared session, where there is one."""
        if not self.demands_login:
            self._shared = self._made(self._settings.config)

    async def close(self) -> None:
        """End all sessions."""
        every = [*self._by_token.values()]
        if self._shared is not None:
            every.append(self._shared)
        self._by_token.clear()
        await asyncio.gather(*(each.peer.close() for each in every))

    def of(self, token: str | None) -> Session | None:
        """The session of a cookie; the shared one where no login is demanded."""
        if not self.demands_login:
            return self._shared
        found = self._by_token.get(token or "")
        if found is None:
            return None
        if time.monotonic() - found.used_at > IDLE_S_MAX:
            return None
        found.used_at = time.monotonic()
        return found

    async def log_in(self, username: str, password: str) -> str:
        """A new session's token; ClientError says why the server does not let this user in."""
        async with self._turn:
            if self._failures >= FAILURES_MAX:
                await asyncio.sleep(WAIT_S)
            known = self._settings.config
            config = replace(
                known, username=username, password="", access_key="", secret_key=""
            ).with_password(password)
            session = self._made(config, starts=False)
            try:
                await session.peer.check()
            except ClientError:
                self._failures += 1
                await session.peer.close()
                raise
            self._failures = 0
        session.peer.start()
        await self._make_room()
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._by_token[token] = session
        return token

    async def log_out(self, token: str | None) -> None:
        """End a session."""
        session = self._by_token.pop(token or "", None)
        if session is not None:
            await session.peer.close()

    async def _make_room(self) -> None:
        now = time.monotonic()
        for token, each in list(self._by_token.items()):
            if now - each.used_at > IDLE_S_MAX:
                await self.log_out(token)
        while len(self._by_token) >= SESSIONS_MAX:
            oldest = min(self._by_token, key=lambda token: self._by_token[token].used_at)
            await self.log_out(oldest)

    def _made(self, config: object, *, starts: bool = True) -> Session:
        from rockgate.sdk.client_config import ClientConfig

        assert isinstance(config, ClientConfig)
        peer = Peer(self._settings.servers, config, timeout_s=self._settings.timeout_s)
        if starts:
            peer.start()
        return Session(
            peer=peer,
            is_read_only=self._settings.is_read_only,
            username=config.username,
            masks=tuple(self._settings.masks),
        )
