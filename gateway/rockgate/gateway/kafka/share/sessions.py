"""Share sessions: of each member the partitions that it reads, and the epoch of its next request.

docs/internals/groups-share.md has the table. They are in memory only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Peer
from rockgate.protocol.kafka.errors import ErrorCode

OPENING: Final = 0
CLOSING: Final = -1
EPOCH_MAX: Final = 2**31 - 1
SESSION_PARTITIONS_MAX: Final = 5_000
"""Partitions of one session: as many as a member can be assigned."""
LEFT_MS_MAX: Final = 5_000
"""How long a session outlasts its member: a client may leave while its last acknowledgements are
under way on another connection, and librdkafka does."""
Partition: TypeAlias = tuple[bytes, int]
"""Topic id and number."""


class ShareSession:
    """The session of one member."""

    __slots__ = ("epoch", "group", "left_ms", "member_id", "partitions", "peer", "turn")

    def __init__(self, group: str, member_id: str, peer: Peer) -> None:
        self.group = group
        self.member_id = member_id
        self.peer = peer
        self.epoch = 1
        """The epoch of the next request."""
        self.partitions: dict[Partition, None] = {}
        self.turn = 0
        self.left_ms: int | None = None
        """When its member left the group, by the monotonic clock."""

    def in_turn(self) -> Iterator[Partition]:
        """Yield the partitions, each time beginning with another one."""
        partitions = list(self.partitions)
        if not partitions:
            return
        self.turn += 1
        for at in range(len(partitions)):
            yield partitions[(self.turn + at) % len(partitions)]


class ShareSessions:
    """All sessions."""

    def __init__(
        self,
        *,
        sessions_max: int,
        partitions_max: int,
        release: Callable[[str, str], None],
        monotonic_ms: Callable[[], int],
    ) -> None:
        """`release` gives back what a member of a group holds."""
        self._sessions_max = sessions_max
        self._partitions_max = partitions_max
        self._release = release
        self._monotonic_ms = monotonic_ms
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self.partition_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, group: str, member_id: str, peer: Peer) -> ShareSession:
        """Open a session, in the place of the member's last one; RequestError beyond the limit."""
        last = self._sessions.get((group, member_id))
        if last is not None and last.left_ms is not None:
            self.close(group, member_id)
        self._remove((group, member_id))
        if len(self._sessions) >= self._sessions_max:
            self.close_ended()
        if len(self._sessions) >= self._sessions_max:
            raise RequestError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                f"There are {self._sessions_max:,} share sessions, which is the maximum.",
            )
        session = self._sessions[group, member_id] = ShareSession(group, member_id, peer)
        return session

    def proceed(self, group: str, member_id: str, epoch: int, peer: Peer) -> ShareSession:
        """Return the session that a request continues; RequestError if it is another one's."""
        session = self.find(group, member_id)
        if epoch != session.epoch:
            raise RequestError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                f"The share session is in epoch {session.epoch}, not {epoch}.",
            )
        session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        session.peer = peer
        return session

    def find(self, group: str, member_id: str) -> ShareSession:
        """Return a member's session; RequestError if there is none."""
        session = self._sessions.get((group, member_id))
        if session is None:
            code = ErrorCode.SHARE_SESSION_NOT_FOUND
            raise RequestError(code, code.meaning)
        return session

    def is_current(self, session: ShareSession, epoch: int) -> bool:
        """Say whether a session exists, and no later request than this one has come."""
        known = self._sessions.get((session.group, session.member_id))
        return known is session and session.epoch == epoch

    def change(
        self, session: ShareSession, added: Iterable[Partition], forgotten: Iterable[Partition]
    ) -> None:
        """Add partitions and drop others; RequestError if they are too many."""
        had = len(session.partitions)
        for partition in forgotten:
            session.partitions.pop(partition, None)
        session.partitions.update(dict.fromkeys(added))
        self.partition_count += len(session.partitions) - had
        if (
            len(session.partitions) > SESSION_PARTITIONS_MAX
            or self.partition_count > self._partitions_max
        ):
            self.close(session.group, session.member_id)
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"Share sessions have too many partitions; one may have {SESSION_PARTITIONS_MAX:,}"
                f", all together {self._partitions_max:,}.",
            )

    def close(self, group: str, member_id: str) -> None:
        """Close a session, if there is one, and give back what the member holds."""
        self._remove((group, member_id))
        self._release(group, member_id)

    def leave(self, group: str, member_id: str) -> None:
        """Let a session end soon, because its member has left the group."""
        session = self._sessions.get((group, member_id))
        if session is None:
            self._release(group, member_id)
        else:
            session.left_ms = self._monotonic_ms()

    def close_ended(self) -> bool:
        """Close the sessions whose connections have ended, or whose members have left."""
        left_before_ms = self._monotonic_ms() - LEFT_MS_MAX
        ended = [
            each
            for each in self._sessions.values()
            if each.peer.has_ended or (each.left_ms is not None and each.left_ms <= left_before_ms)
        ]
        for session in ended:
            self.close(session.group, session.member_id)
        return False

    def _remove(self, key: tuple[str, str]) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            self.partition_count -= len(session.partitions)
