"""Sessions: one for all visitors where no login is demanded, else one for each login.

A session is found by the random value of a cookie. It ends with a logout, after hours without a
request, after a day, or as the oldest when there are too many; its open pages end with it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from rockgate.cli.client.kafka.errors import ClientError, Refused
from rockgate.console.schemas.registry import Registry
from rockgate.console.session.attempts import Attempts
from rockgate.console.session.peer import Peer

if TYPE_CHECKING:
    from rockgate.console.settings import Settings

IDLE_S_MAX: Final = 8 * 3600
SESSIONS_MAX: Final = 64
LIFE_S_MAX: Final = 24 * 3600
LOGINS_AT_ONCE: Final = 4
SWEEP_S: Final = 30.0
RELOAD_S: Final = 0.2
"""How long pages have to hear that they are over; a browser that does not obey has a dead page."""
_TOKEN_BYTES: Final = 32
_COOKIE: Final = "rockgate_session"


class OpenPage(Protocol):
    """A page that is open in a browser."""

    def run_javascript(self, code: str) -> Any:
        """Have the browser do something."""

    def remove_all_elements(self) -> None:
        """Take away what it is made of: what the browser still sends for it is dropped."""


@dataclass(slots=True)
class Session:
    """One user's view of the server."""

    peer: Peer
    is_read_only: bool
    username: str = ""
    masks: tuple[str, ...] = ()
    registry: Registry | None = None
    used_at: float = field(default_factory=time.monotonic)
    begun_at: float = field(default_factory=time.monotonic)
    pages: set[OpenPage] = field(default_factory=set)

    def is_over(self, now: float) -> bool:
        """Whether its time has passed."""
        return now - self.used_at > IDLE_S_MAX or now - self.begun_at > LIFE_S_MAX

    async def end(self) -> None:
        """End its pages and connections."""
        for each in list(self.pages):
            each.run_javascript("location.reload()")
        if self.pages:
            await asyncio.sleep(RELOAD_S)
        for each in list(self.pages):
            # The framework forgets the rest once the browser has gone.
            each.remove_all_elements()
        self.pages.clear()
        await self.peer.close()


class Sessions:
    """All sessions of the console."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._by_token: dict[str, Session] = {}
        self._shared: Session | None = None
        where = settings.schema_registry
        self._registry = None if where is None else Registry(where)
        self._turns = asyncio.Semaphore(LOGINS_AT_ONCE)
        self._sweeping: asyncio.Task[None] | None = None
        self.attempts = Attempts()
        self.is_secure = settings.is_secure
        self.cookie = f"__Host-{_COOKIE}" if self.is_secure else _COOKIE
        """Its name; browsers take one that begins like this over TLS only, and for this host."""

    @property
    def demands_login(self) -> bool:
        """Whether pages are only for those who have logged in."""
        return self._settings.demands_login

    def start(self) -> None:
        """Begin the shared session, where there is one."""
        if not self.demands_login:
            self._shared = self._made(self._settings.config)
        self._sweeping = asyncio.create_task(self._sweep())

    async def close(self) -> None:
        """End all sessions."""
        if self._sweeping is not None:
            self._sweeping.cancel()
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
        now = time.monotonic()
        if found is None or found.is_over(now):
            return None
        found.used_at = now
        return found

    async def log_in(self, username: str, password: str, address: str = "") -> str:
        """A new session's token; ClientError says why the server does not let this user in."""
        async with self._turns:
            known = self._settings.config
            config = replace(
                known, username=username, password="", access_key="", secret_key=""
            ).with_password(password)
            session = self._made(config, starts=False)
            try:
                await session.peer.check()
            except ClientError as error:
                if isinstance(error, Refused):
                    self.attempts.fail(address)
                await session.peer.close()
                raise
        self.attempts.succeed(address)
        session.peer.start()
        await self._make_room()
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._by_token[token] = session
        return token

    async def log_out(self, token: str | None) -> None:
        """End a session."""
        session = self._by_token.pop(token or "", None)
        if session is not None:
            await session.end()

    async def _sweep(self) -> None:
        """End the sessions whose time has passed, also those with an open page."""
        while True:
            await asyncio.sleep(SWEEP_S)
            await self.end_old(time.monotonic())

    async def end_old(self, now: float) -> None:
        """End the sessions that are over at a time."""
        for token, each in list(self._by_token.items()):
            if each.is_over(now):
                await self.log_out(token)

    async def _make_room(self) -> None:
        await self.end_old(time.monotonic())
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
            registry=self._registry,
        )
