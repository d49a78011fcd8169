"""The machine of one share group: heartbeats, epochs, targets, sessions. Time is a parameter.

docs/internals/groups-share.md specifies it. It has no loop and no store: `write` gets every change
before it is made, and raises if it could not be written; then nothing has changed.

What may take long is `work`, a generator that yields between pieces. Whoever owns the machine runs
it, and calls `expired` when `wake_ms` has come.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.classic.join_window import NEVER_MS
from rockgate.gateway.kafka.groups.consumer.group import TopicShape, digest_of
from rockgate.gateway.kafka.groups.share.assignor import PIECE, Reader, Target, assign
from rockgate.gateway.kafka.groups.share.member import (
    JOIN_EPOCH,
    Key,
    ShareBeat,
    ShareBeatAnswer,
    ShareMember,
    pack_epoch,
)
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode

REFRESH_MS: Final = 1_000
"""How often a group finds its topics again while topics come and go."""
Work = Generator[None, None, None]


class ShareTopics(Protocol):
    """The topics that there are."""

    @property
    def version(self) -> int:
        """A number that differs after every change of the list of topics."""
        ...

    def find(self, name: str, /) -> TopicShape | None:
        """A topic by name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTiming:
    """The settings of one group's members."""

    session_ms: int
    heartbeat_ms: int
    assignment_ms: int
    members_max: int
    partitions_max: int


class ShareMachine:
    """One group with members."""

    def __init__(
        self,
        name: str,
        epoch: int,
        *,
        timing: Callable[[], ShareTiming],
        topics: ShareTopics,
        write: Callable[[dict[Key, bytes | None]], None],
    ) -> None:
        self.name = name
        self.epoch = epoch
        """Grows with every change of members, subscriptions or topics."""
        self.assignment_epoch = epoch
        """The epoch that the target was computed for."""
        self.members: dict[str, ShareMember] = {}
        self._targets: Target = {}
        self._timing = timing
        self._topics = topics
        self._write = write
        self._readers: dict[str, int] = {}
        self._sessions: dict[str, int] = {}
        self._digest = b""
        self._seen_version: int | None = None
        self._refresh_ms = 0
        self._assigned_ms: int | None = None
        self._work: Work | None = None
        self.is_written = False
        """Whether anything of it is in the log."""
        self.wake_ms = NEVER_MS
        """When `expired` is to be called, at the latest."""
        self.left_out_count = 0
        """Partitions beyond `partitions_max`, which have no reader."""

    def restore(self, members: Iterable[ShareMember], now_ms: int) -> None:
        """Begin with what was written before a start: every session starts over."""
        self.is_written = True
        for member in members:
            self._put(member)
            self._extend(member.id, now_ms)
        self._digest = digest_of(self._shapes())
        # Nothing is known of the target before, so there is a new one, in an epoch of its own.
        self.epoch += 1

    # Reading

    @property
    def state(self) -> GroupState:
        """The state, as clients see it."""
        return GroupState.STABLE if self.members else GroupState.EMPTY

    def subscribed(self) -> frozenset[str]:
        """All topics that members read."""
        return frozenset(self._readers)

    # Heartbeats

    def admit(self, beat: ShareBeat, now_ms: int) -> None:
        """Take a heartbeat of who joins or stays."""
        known = self.members.get(beat.member_id)
        if known is None:
            if beat.epoch != JOIN_EPOCH:
                raise unknown(self.name, beat.member_id)
            members_max = self._timing().members_max
            if len(self.members) >= members_max:
                raise RequestError(
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    f"The share group has reached its maximum capacity of {members_max} members.",
                )
            known = ShareMember(id=beat.member_id)
        else:
            self._check_epoch(known, beat.epoch)
        changed = replace(
            known,
            rack_id=known.rack_id if beat.rack_id is None else beat.rack_id,
            client_id=beat.client_id,
            client_host=beat.client_host,
            names=known.names if beat.names is None else beat.names,
            epoch=known.epoch if beat.epoch == JOIN_EPOCH or known.epoch is not None else None,
        )
        is_new = beat.member_id not in self.members
        changes: dict[Key, bytes | None] = {}
        if is_new or changed != known:
            changes[self.name, changed.id] = changed.said()
        if is_new or changed.names != known.names:
            self._grow(changes)
        elif changes:
            self._write(changes)
        self._put(changed)
        self._extend(changed.id, now_ms)
        self.refresh(now_ms)

    def follow(self, beat: ShareBeat) -> ShareBeatAnswer:
        """Let a member take its step to the target, and tell it what has changed."""
        member = self.members[beat.member_id]
        target = self._targets.get(member.id, {})
        moved = member
        if member.epoch != self.assignment_epoch:
            moved = replace(
                member,
                epoch=self.assignment_epoch,
                previous_epoch=beat.epoch if member.epoch is None else member.epoch,
                assigned=target,
            )
            self.members[member.id] = moved
        is_full = beat.epoch == JOIN_EPOCH or beat.names is not None or member.epoch is None
        return ShareBeatAnswer(
            member_id=member.id,
            epoch=self.assignment_epoch,
            interval_ms=self._timing().heartbeat_ms,
            assigned=target if is_full or moved.assigned != member.assigned else None,
        )

    def _check_epoch(self, member: ShareMember, epoch: int) -> None:
        if epoch == JOIN_EPOCH:
            return
        current = self.epoch if member.epoch is None else member.epoch
        if epoch > current:
            raise _fenced("greater", epoch, current)
        if member.epoch is not None and epoch not in (current, member.previous_epoch):
            raise _fenced("smaller", epoch, current)

    def remove(self, member_ids: Iterable[str]) -> None:
        """Remove members."""
        gone = [each for each in member_ids if each in self.members]
        if not gone:
            return
        self._grow({(self.name, each): None for each in gone})
        for member_id in gone:
            self._count(self.members.pop(member_id).names, -1)
            self._sessions.pop(member_id, None)
            self._targets.pop(member_id, None)

    def expired(self, now_ms: int) -> list[str]:
        """The members whose session is over."""
        return [each for each, at_ms in self._sessions.items() if at_ms <= now_ms]

    def arm(self, now_ms: int) -> None:
        """Compute `wake_ms` anew."""
        self.wake_ms = min(self._sessions.values(), default=NEVER_MS)
        if self.members and self._is_behind:
            self.wake_ms = min(self.wake_ms, max(now_ms + 1, self._due_ms(now_ms)))

    # Changes

    def _grow(self, changes: dict[Key, bytes | None]) -> None:
        epoch = self.epoch + 1
        self._write({**changes, (self.name, ""): pack_epoch(epoch)})
        self.epoch, self.is_written = epoch, True

    def _put(self, member: ShareMember) -> None:
        known = self.members.get(member.id)
        if known is None or known.names is not member.names:
            self._count(member.names, 1)
            if known is not None:
                self._count(known.names, -1)
        self.members[member.id] = member

    def _count(self, names: Iterable[str], by: int) -> None:
        readers = self._readers
        for name in names:
            readers[name] = readers.get(name, 0) + by
            if not readers[name]:
                del readers[name]

    def _extend(self, member_id: str, now_ms: int) -> None:
        until_ms = now_ms + self._timing().session_ms
        self._sessions[member_id] = until_ms
        self.wake_ms = min(self.wake_ms, until_ms)

    # Topics and targets

    def refresh(self, now_ms: int) -> None:
        """Find the subscribed topics again, if there may be others now."""
        version = self._topics.version
        is_other = version != self._seen_version and now_ms >= self._refresh_ms
        if not is_other and self.epoch == self.assignment_epoch:
            return
        self._seen_version, self._refresh_ms = version, now_ms + REFRESH_MS
        digest = digest_of(self._shapes())
        if digest != self._digest:
            # An epoch that has grown and has no target yet is for these topics.
            if self.epoch == self.assignment_epoch:
                self._grow({})
            self._digest = digest

    def _shapes(self) -> dict[str, TopicShape]:
        found = {name: self._topics.find(name) for name in self._readers}
        return {name: topic for name, topic in found.items() if topic is not None}

    def work(self, now_ms: int) -> Work | None:
        """What is to be computed now, or continued; None if nothing is."""
        if self._work is None and self._is_behind:
            if now_ms >= self._due_ms(now_ms):
                self._work = self._assign(now_ms)
            else:
                self.wake_ms = min(self.wake_ms, self._due_ms(now_ms))
        return self._work

    @property
    def _is_behind(self) -> bool:
        return self.epoch > self.assignment_epoch

    def _due_ms(self, now_ms: int) -> int:
        if self._assigned_ms is None:
            return now_ms
        return self._assigned_ms + self._timing().assignment_ms

    def _assign(self, now_ms: int) -> Work:
        """Compute the target of the group's epoch."""
        epoch = self.epoch
        shapes = self._capped()
        ids = {name: topic.id for name, topic in shapes.items()}
        counts = {topic.id: topic.queue_count for topic in shapes.values()}
        known: dict[frozenset[str], frozenset[bytes]] = {}
        readers: dict[str, Reader] = {}
        for at, member in enumerate(list(self.members.values())):
            topics = known.get(member.names)
            if topics is None:
                topics = known[member.names] = frozenset(
                    ids[name] for name in member.names & ids.keys()
                )
            readers[member.id] = Reader(topics, self._targets.get(member.id, {}))
            if at % PIECE == PIECE - 1:
                yield
        target = yield from assign(counts, readers)
        self._work = None
        self._assigned_ms = now_ms
        self._targets = {each: target[each] for each in target if each in self.members}
        self.assignment_epoch = epoch

    def _capped(self) -> Mapping[str, TopicShape]:
        """The subscribed topics, in order of name, as far as the group's limit goes."""
        shapes, left = self._shapes(), self._timing().partitions_max
        self.left_out_count = 0
        found = {}
        for name in sorted(shapes):
            count = shapes[name].queue_count
            if count <= left:
                left -= count
                found[name] = shapes[name]
            else:
                self.left_out_count += count
        return found


def unknown(group: str, member_id: str) -> RequestError:
    """The refusal of a client that is not a member."""
    return RequestError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group}."
    )


def _fenced(how: str, epoch: int, current: int) -> RequestError:
    return RequestError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a {how} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({current}). The member must abandon all its partitions and rejoin.",
    )
