"""The sessions of a listener: connection limit, memory limit and shutdown."""

import asyncio
import logging
from typing import Generic, Protocol, TypeVar

from rockgate.gateway.net.budget import Budget
from rockgate.gateway.net.connection_counts import ConnectionCounts
from rockgate.gateway.net.receive_buffer import ReceiveBuffer

log = logging.getLogger(__name__)


class OpenSession(Protocol):
    """A session as its listener sees it."""

    held_bytes: int
    counted_user: str
    """The user that the connection counts for; empty before it has one."""

    @property
    def partial_bytes(self) -> int:
        """Bytes of incomplete requests."""

    @property
    def remote_host(self) -> str:
        """The address that the connection comes from."""

    def break_off(self, reason: str) -> None:
        """Close immediately and release what the session holds."""

    def drain(self) -> None:
        """Finish the requests that were received, then close."""

    def abort(self, reason: str | None = None) -> None:
        """Close immediately."""


S = TypeVar("S", bound=OpenSession)


class Connections(Generic[S]):
    """The open sessions of a listener. Owned by the app, which also owns the listener."""

    def __init__(self, *, connections_max: int, total_bytes_max: int, frame_bytes_max: int) -> None:
        self._connections_max = connections_max
        self._budget = Budget(
            total_bytes_max,
            self._close_largest,
            self._break_off_largest,
            frame_bytes_max=frame_bytes_max,
        )
        self._receiving = ReceiveBuffer()
        self._sessions: set[S] = set()
        self._last_id = 0
        self.counts: ConnectionCounts | None = None
        """Limits the connections of each address and user, together with other listeners."""
        self._is_refusing = False
        self._is_draining = False
        self._emptied = asyncio.Event()

    @property
    def session_count(self) -> int:
        """Open connections."""
        return len(self._sessions)

    @property
    def made_count(self) -> int:
        """Connections accepted since the start."""
        return self._last_id

    @property
    def held_bytes(self) -> int:
        """Request bytes held by all connections."""
        return self._budget.used

    # Called by sessions

    def opened(self, session: S) -> bool:
        """Register a new session, unless the limit is reached or the server is stopping."""
        if self._is_draining:
            return False
        if len(self._sessions) >= self._connections_max:
            # Logged once per overload, not per connection: rejecting must cost less than
            # connecting.
            if not self._is_refusing:
                log.warning(
                    "connection limit reached, rejecting connections max=%d", self._connections_max
                )
            self._is_refusing = True
            return False
        if self.counts is not None and not self.counts.take(session.remote_host):
            return False
        self._sessions.add(session)
        return True

    def entered(self, session: S, user: str) -> bool:
        """Count a connection for the user that it has authenticated as, unless it has enough."""
        counts = self.counts
        if counts is None or session.counted_user == user:
            return True
        if not counts.enter(user):
            return False
        if session.counted_user:
            counts.leave(session.counted_user)
        session.counted_user = user
        return True

    def lost(self, session: S) -> None:
        """Remove a session."""
        if session in self._sessions and self.counts is not None:
            self.counts.give(session.remote_host)
            if session.counted_user:
                self.counts.leave(session.counted_user)
        self._sessions.discard(session)
        if self._is_refusing and len(self._sessions) <= self._connections_max * 9 // 10:
            log.info("accepting connections again connections=%d", len(self._sessions))
            self._is_refusing = False
        if not self._sessions:
            self._emptied.set()

    # Called by the app

    async def drain(self, seconds_max: float) -> None:
        """Let every session finish its received requests, and close those that take too long."""
        self._is_draining = True
        for session in list(self._sessions):
            session.drain()
        if not self._sessions:
            return
        self._emptied.clear()
        try:
            async with asyncio.timeout(seconds_max):
                await self._emptied.wait()
        except TimeoutError:
            log.warning(
                "closing connections that did not drain in time count=%d", self.session_count
            )
            for session in list(self._sessions):
                session.abort()
            await self._emptied.wait()

    def _close_largest(self) -> None:
        """Requests hold twice the budget: close the connection that holds most."""
        largest = max(self._sessions, key=lambda session: session.held_bytes)
        largest.break_off(f"memory limit exceeded, largest connection bytes={largest.held_bytes}")

    def _break_off_largest(self) -> None:
        """Incomplete requests hold most of the budget: abort the largest."""
        largest = max(self._sessions, key=lambda session: session.partial_bytes)
        largest.break_off(
            "memory limit exceeded by incomplete requests, largest request "
            f"bytes={largest.partial_bytes}"
        )
