"""All fetch sessions (KIP-227): which are cached, whose request is whose, which are evicted.

    session id  epoch         what happens                                    the answer
    any         -1            the session is closed; one read without any     id 0, everything
    any         0             the session is closed; a new one is opened      its id, everything
    unknown     any other     FETCH_SESSION_ID_NOT_FOUND                      id 0, nothing
    known       not the next  INVALID_FETCH_SESSION_EPOCH                     id 0, nothing
    known       the next      the client has turned from topic names to ids,  id 0, nothing
                              or back: FETCH_SESSION_TOPIC_ID_ERROR
    known       the next      partitions are added, changed and forgotten     its id, news alone
    known       the next      the last partition is forgotten: closed         id 0, nothing

Epochs count 1, 2, … 2³¹-1, 1. A new session that does not fit into the cache gets id 0, which means
that its client sends everything again with its next poll. As in Kafka, a session is evicted that
was not used for two minutes, or else one that is older than that and has fewer partitions than the
new one. Beyond Kafka the partitions of all sessions are bounded as well, and with them those of
requests that wait without a session: one that exceeds the bound is answered at once.
"""

from __future__ import annotations

from collections.abc import Callable
from random import SystemRandom
from typing import Final, Protocol

from rockgate.gateway.kafka.fetch.session import FetchSession, QueueWatching
from rockgate.gateway.kafka.request.chunked import Turn
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.hot.fetch import TOPIC_IDS
from rockgate.protocol.kafka.messages.fetch import FetchRequest

PIECE_COUNT: Final = 500
EVICTION_MS: Final = 120_000
EPOCH_MAX: Final = 2**31 - 1
_CLOSING: Final = -1
_OPENING: Final = 0


def random_id() -> int:
    """Return a session id that cannot be guessed from others."""
    return SystemRandom().randint(1, 2**31 - 1)


class MonotonicClock(Protocol):
    """What sessions are timed by."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment."""


class FetchSessions:
    """The cached sessions."""

    def __init__(
        self,
        watching: QueueWatching,
        clock: MonotonicClock,
        *,
        sessions_max: int,
        partitions_max: int,
        new_id: Callable[[], int] = random_id,
        examine_ms: int | None = None,
    ) -> None:
        """With `examine_ms` all partitions of a session are examined again after that time."""
        self._watching = watching
        self._examine_ms = examine_ms
        self._clock = clock
        self._sessions_max = sessions_max
        self._partitions_max = partitions_max
        self._new_id = new_id
        # In the order of their last use.
        self._sessions: dict[int, FetchSession] = {}
        self._held: set[FetchSession] = set()
        self.partition_count = 0
        """Partitions of all cached sessions, and of requests that wait without a session."""

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, version: int) -> FetchSession | ErrorCode:
        """Return the session of a request, updated by it, or the error."""
        session = self._find(request, version)
        if isinstance(session, ErrorCode):
            return session
        had = session.count
        session.want(request.topics)
        session.forget(request.forgotten_topics_data)
        return self._continued(session, had)

    async def open_in_turns(self, request: FetchRequest, version: int) -> FetchSession | ErrorCode:
        """The same for a request of many partitions, with other requests in between."""
        session = self._find(request, version)
        if isinstance(session, ErrorCode):
            return session
        turn, epoch, is_cached = Turn(), session.epoch, session.id != 0
        for topic in request.topics:
            for at in range(0, len(topic.partitions), PIECE_COUNT):
                had = session.count
                session.want_of(topic, topic.partitions[at : at + PIECE_COUNT])
                self.partition_count += session.count - had if is_cached else 0
                if turn.is_over:
                    await turn.next()
                if is_cached and not session.id:
                    return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
                if session.epoch != epoch:
                    return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        had = session.count
        session.forget(request.forgotten_topics_data)
        return self._continued(session, had)

    def _find(self, request: FetchRequest, version: int) -> FetchSession | ErrorCode:
        """Return the session of a request, not yet updated by it."""
        uses_ids = version >= TOPIC_IDS
        epoch = request.session_epoch
        if epoch in (_CLOSING, _OPENING):
            self.close(request.session_id)
            return FetchSession(
                self._watching, uses_ids=uses_ids, is_to_be_cached=epoch == _OPENING
            )
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if epoch != session.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_ids != uses_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        # One request at a time: an earlier one that still waits finds that the epoch has changed.
        session.interrupt()
        return session

    def _continued(self, session: FetchSession, had: int) -> FetchSession | ErrorCode:
        """Count the partitions that a cached session gained, and check that it may stay cached."""
        if not session.id:
            return session
        self.partition_count += session.count - had
        if not session.count:
            self.close(session.id)
            return FetchSession(self._watching, uses_ids=session.uses_ids)
        if self.partition_count > self._partitions_max:
            self.close(session.id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        session.used_ms = now_ms = self._clock.monotonic_ms()
        self._sessions[session.id] = self._sessions.pop(session.id)
        if self._examine_ms is not None and now_ms - session.examined_ms >= self._examine_ms:
            session.examined_ms = now_ms
            session.dirty.update(dict.fromkeys(session))
        return session

    def keep(self, session: FetchSession) -> None:
        """Cache a new session if it fits: then it has an id and watches its queues."""
        self.release(session)
        now_ms = self._clock.monotonic_ms()
        if not self._make_room(session.count, now_ms):
            return
        session.id = self._unused_id()
        session.epoch = 1
        session.created_ms = session.used_ms = now_ms
        self._sessions[session.id] = session
        self.partition_count += session.count
        session.watch()

    def hold(self, session: FetchSession) -> bool:
        """Return whether a request may wait; without a session it counts until `release`."""
        if not session.id:
            if self.partition_count + session.count > self._partitions_max:
                return False
            self._held.add(session)
            self.partition_count += session.count
        return True

    def release(self, session: FetchSession) -> None:
        """Release the share of a request that waited without a session."""
        if session in self._held:
            self._held.remove(session)
            self.partition_count -= session.count
            session.unwatch()

    def expire(self) -> None:
        """Close sessions that were not used for two minutes."""
        now_ms = self._clock.monotonic_ms()
        for session in list(self._sessions.values()):
            if now_ms - session.used_ms <= EVICTION_MS:
                break
            self.close(session.id)

    def close(self, session_id: int) -> None:
        """Remove a session, if it exists."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= session.count
            # A request that is still in progress informs its client with id 0 that the session is
            # closed.
            session.id = 0
            session.unwatch()
            session.interrupt()

    def _unused_id(self) -> int:
        while True:
            session_id = self._new_id()
            if session_id not in self._sessions:
                return session_id

    def _make_room(self, count: int, now_ms: int) -> bool:
        if count > self._partitions_max:
            return False
        while (
            len(self._sessions) >= self._sessions_max
            or self.partition_count + count > self._partitions_max
        ):
            victim = self._victim(count, now_ms)
            if victim is None:
                return False
            self.close(victim.id)
        return True

    def _victim(self, count: int, now_ms: int) -> FetchSession | None:
        """Return the session to evict for one of `count` partitions, if there is any."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_ms - oldest.used_ms > EVICTION_MS:
            return oldest
        settled = [s for s in self._sessions.values() if now_ms - s.created_ms > EVICTION_MS]
        smallest = min(settled, key=lambda s: (s.count, s.id), default=None)
        return smallest if smallest is not None and smallest.count < count else None
