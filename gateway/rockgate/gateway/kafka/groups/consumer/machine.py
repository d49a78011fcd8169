"""The machine of one consumer group: heartbeats, targets, deadlines. Time is a parameter.

docs/internals/groups-consumer.md specifies it. It has no loop and no store: `write` gets every
change before it is made, and raises if it could not be written; then nothing has changed.

What may take long is `work`, a generator that yields between pieces. Whoever owns the machine runs
it, and calls `wake` when `wake_ms` has come.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from rockgate.gateway.kafka.groups.classic.join_window import NEVER_MS
from rockgate.gateway.kafka.groups.consumer.assignment.assignors import (
    ASSIGNORS,
    Subscriber,
    Target,
)
from rockgate.gateway.kafka.groups.consumer.group import ConsumerGroup, TopicShape, digest_of
from rockgate.gateway.kafka.groups.consumer.heartbeats import (
    Beat,
    HeartbeatOutcome,
    admit,
    grown,
    leave,
    removal,
    sees_all,
)
from rockgate.gateway.kafka.groups.consumer.member import (
    Member,
    MemberState,
    Partitions,
    TopicId,
    is_same,
)
from rockgate.gateway.kafka.groups.consumer.reconciliation import Reported, step
from rockgate.gateway.kafka.groups.consumer.records import Changes, Head
from rockgate.gateway.kafka.request.patterns import compile_pattern

DEFAULT_ASSIGNOR: Final = next(iter(ASSIGNORS))
REFRESH_MS: Final = 1_000
"""How often a group reads its topics while topics come and go."""
PATTERNS_MS: Final = 10_000
"""The same for patterns, which are compared with every topic."""
PIECE: Final = 200
Work = Generator[None, None, None]


class SubscribedTopics(Protocol):
    """The topics that there are."""

    @property
    def version(self) -> int:
        """A number that differs after every change of the list of topics."""
        ...

    def find(self, name: str, /) -> TopicShape | None:
        """A topic by name."""
        ...

    def names(self) -> Iterator[str]:
        """The names of all topics; the walk may pause while topics come and go."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The settings of one group."""

    session_ms: int
    heartbeat_ms: int
    assignment_ms: int
    members_max: int
    partitions_max: int
    patterns_refresh_ms: int


class ConsumerMachine:
    """One group with members."""

    def __init__(
        self,
        group: ConsumerGroup,
        *,
        timing: Callable[[], Timing],
        topics: SubscribedTopics,
        write: Callable[[Changes], None],
    ) -> None:
        self.group = group
        self._timing = timing
        self._topics = topics
        self._write = write
        self._sees: Callable[[str], bool] = sees_all
        self._sessions: dict[str, int] = {}
        self._limits: dict[str, int] = {}
        self._seen_version: int | None = None
        self._refresh_ms = 0
        self._patterns_version: int | None = None
        self._patterns_ms = -PATTERNS_MS
        self._assigned_ms: int | None = None
        self._narrowed: set[str] = set()
        """Members whose subscriptions changed since the target was computed."""
        self._is_restored = False
        self._work: Work | None = None
        self.wake_ms = NEVER_MS
        """When `wake` is to be called, at the latest."""
        self.left_out_count = 0
        """Partitions beyond `partitions_max`, which no one is assigned."""

    def restore(self, now_ms: int) -> None:
        """Begin with what was written before a start: every session starts over."""
        self._is_restored = bool(self.group.patterns)
        for member in self.group.members.values():
            self.extend(member, now_ms)
            if member.state is MemberState.REVOKING and not member.is_classic:
                self.limit(member.id, now_ms + max(0, member.subscription.rebalance_ms))

    # Members

    def admit(self, beat: Beat, now_ms: int) -> Member:
        """Take a heartbeat; returns the member as it is before its next step."""
        known = self.group.members.get(beat.member_id)
        self.change(admit(self.group, beat, self._timing().members_max))
        self._sees = beat.sees
        member = self.group.members[beat.member_id]
        if known is not None and known.is_classic:
            self.lift(known.id)
        self.extend(member, now_ms)
        self.refresh(now_ms)
        return member

    def follow(self, beat: Beat, before: Member, now_ms: int) -> HeartbeatOutcome:
        """Let a member take its next step, and tell it what has changed."""
        member = self.step(before.id, beat.owned, now_ms)
        is_full = beat.is_full or not is_same(before.assigned, member.assigned)
        return HeartbeatOutcome(
            member_id=member.id,
            epoch=member.epoch,
            interval_ms=self._timing().heartbeat_ms,
            assigned=member.assigned if is_full else None,
        )

    def leave(self, beat: Beat) -> HeartbeatOutcome:
        """Remove a member, or put it aside."""
        self.change(leave(self.group, beat))
        return HeartbeatOutcome(member_id=beat.member_id, epoch=beat.epoch)

    def remove(self, member_ids: list[str]) -> None:
        """Remove members."""
        self.change(removal(self.group, member_ids))

    def step(self, member_id: str, reported: Reported, now_ms: int) -> Member:
        """Let a member take its next step toward its target."""
        group = self.group
        member = group.members[member_id]
        moved = step(
            member,
            target_epoch=group.head.assignment_epoch,
            target=group.target(member_id),
            is_free=group.is_free,
            reported=reported,
            subscribed=self._read_by(member) if member_id in self._narrowed else None,
        )
        if moved is not member:
            self.change(Changes(members={member_id: moved}))
            if not moved.is_classic:
                if moved.state is MemberState.REVOKING:
                    self.limit(member_id, now_ms + max(0, moved.subscription.rebalance_ms))
                else:
                    self._limits.pop(member_id, None)
        return moved

    def change(self, changes: Changes) -> None:
        """Write a change, then make it."""
        if changes:
            self._write(changes)
            before = {each: self.group.members.get(each) for each in changes.members}
            self.group.apply(changes)
            for member_id, member in changes.members.items():
                known = before[member_id]
                if member is None:
                    self._sessions.pop(member_id, None)
                    self._limits.pop(member_id, None)
                    self._narrowed.discard(member_id)
                elif known is not None and known.subscription is not member.subscription:
                    self._narrowed.add(member_id)

    # Deadlines

    def extend(self, member: Member, now_ms: int) -> None:
        """Something was received from a member: its session is extended."""
        classic = member.subscription.classic
        session_ms = self._timing().session_ms if classic is None else classic.session_ms
        self._sessions[member.id] = now_ms + session_ms
        self.wake_ms = min(self.wake_ms, now_ms + session_ms)

    def limit(self, member_id: str, at_ms: int, *, is_first: bool = False) -> None:
        """Give a member until then to revoke, or to join or sync; a first limit is not moved."""
        if not (is_first and member_id in self._limits):
            self._limits[member_id] = at_ms
            self.wake_ms = min(self.wake_ms, at_ms)

    def lift(self, member_id: str) -> None:
        """A member has done what it had a limit for."""
        self._limits.pop(member_id, None)

    def expired(self, now_ms: int) -> list[str]:
        """The members whose time is over."""
        late = [each for each, at_ms in self._sessions.items() if at_ms <= now_ms]
        late += [each for each, at_ms in self._limits.items() if at_ms <= now_ms]
        return list(dict.fromkeys(late))

    def arm(self, now_ms: int) -> None:
        """Compute `wake_ms` anew."""
        times: Iterable[int] = (*self._sessions.values(), *self._limits.values())
        self.wake_ms = min(times, default=NEVER_MS)
        if self.group.members and self._is_behind:
            self.wake_ms = min(self.wake_ms, max(now_ms + 1, self._due_ms(now_ms)))

    # Topics and targets

    def refresh(self, now_ms: int) -> None:
        """Read the subscribed topics again, if there may be others now."""
        head = self.group.head
        version = self._topics.version
        is_due = version != self._seen_version and now_ms >= self._refresh_ms
        if (head.digest and not is_due) or not self.group.is_resolved:
            return
        self._seen_version, self._refresh_ms = version, now_ms + REFRESH_MS
        self.change(Changes(head=self._looked(head)))

    def _looked(self, head: Head) -> Head | None:
        digest = digest_of(self._shapes())
        if digest == head.digest:
            return None
        # Without a digest the epoch has grown already, for this reading.
        return replace(grown(head) if head.digest else head, digest=digest)

    def _shapes(self) -> dict[str, TopicShape]:
        found = {name: self._topics.find(name) for name in self.group.subscribed()}
        return {name: topic for name, topic in found.items() if topic is not None}

    def work(self, now_ms: int) -> Work | None:
        """What is to be computed now, or continues; None if nothing is."""
        if self._work is None:
            if self._must_resolve(now_ms):
                self._work = self._resolve(now_ms)
            elif self._is_behind and now_ms >= self._due_ms(now_ms):
                self._work = self._assign(now_ms)
            elif self._is_behind:
                self.wake_ms = min(self.wake_ms, self._due_ms(now_ms))
        return self._work

    @property
    def _is_behind(self) -> bool:
        head = self.group.head
        return head.epoch > head.assignment_epoch and self.group.is_resolved

    def _due_ms(self, now_ms: int) -> int:
        if self._assigned_ms is None:
            return now_ms
        return self._assigned_ms + self._timing().assignment_ms

    def _must_resolve(self, now_ms: int) -> bool:
        group = self.group
        if not group.patterns:
            return False
        if not group.is_resolved:
            return True
        age_ms = now_ms - self._patterns_ms
        is_other = self._topics.version != self._patterns_version
        return age_ms >= (PATTERNS_MS if is_other else self._timing().patterns_refresh_ms)

    def _resolve(self, now_ms: int) -> Work:
        """Find the topics of every pattern."""
        group, sees = self.group, self._sees
        self._patterns_version, self._patterns_ms = self._topics.version, now_ms
        patterns = {regex: compile_pattern(regex) for regex in group.patterns}
        found: dict[str, set[str]] = {regex: set() for regex in patterns}
        steps = 0
        for name in self._topics.names():
            for regex, pattern in patterns.items():
                steps += 1
                if pattern.fullmatch(name) and sees(name):
                    found[regex].add(name)
                if not steps % PIECE:
                    yield
        self._work = None
        resolved = {regex: frozenset(names) for regex, names in found.items()}
        if self._is_restored:
            # Results do not last, but the epoch that they led to does: only a member that joined
            # just before the stop may still wait for its first target.
            has_changed = any(
                member.subscription.regex and member.id not in group.targets
                for member in group.members.values()
            )
        else:
            has_changed = any(
                names != group.resolved.get(regex, frozenset()) for regex, names in resolved.items()
            )
        if has_changed:
            self.change(Changes(head=grown(group.head)))
        group.resolved, self._is_restored = resolved, False
        if group.is_resolved:
            self.change(Changes(head=self._looked(group.head)))

    def _assign(self, now_ms: int) -> Work:
        """Compute the target of the group's epoch."""
        group, epoch = self.group, self.group.head.epoch
        shapes = self._capped()
        ids = {name: topic.id for name, topic in shapes.items()}
        counts = {topic.id: topic.queue_count for topic in shapes.values()}
        known: dict[tuple[frozenset[str], str], frozenset[TopicId]] = {}
        members: dict[str, Subscriber] = {}
        for at, member in enumerate(list(group.members.values())):
            said = member.subscription
            key = (said.names, said.regex)
            topics = known.get(key)
            if topics is None:
                names = said.names | group.resolved.get(said.regex, frozenset())
                topics = known[key] = frozenset(ids[name] for name in names if name in ids)
            members[member.id] = Subscriber(
                topics, said.instance_id, said.rack_id, group.target(member.id)
            )
            if at % PIECE == PIECE - 1:
                yield
        target = yield from ASSIGNORS[group.assignor(DEFAULT_ASSIGNOR)](counts, members)
        self._work = None
        self._assigned_ms = now_ms
        self.change(self._retargeted(epoch, target))
        if epoch == group.head.epoch:
            self._narrowed.clear()

    def _retargeted(self, epoch: int, target: Target) -> Changes:
        group = self.group
        targets: dict[str, Partitions | None] = {
            member_id: wanted
            for member_id, wanted in target.items()
            if member_id in group.members and wanted != group.target(member_id)
        }
        targets |= {each: None for each in group.targets if each not in group.members}
        return Changes(head=replace(group.head, assignment_epoch=epoch), targets=targets)

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

    def _read_by(self, member: Member) -> frozenset[TopicId] | None:
        """The ids of the topics that a member reads; None while they are not all known."""
        said, resolved = member.subscription, self.group.resolved
        if said.regex and said.regex not in resolved:
            return None
        names = said.names | resolved.get(said.regex, frozenset())
        return frozenset(
            topic.id for name in names if (topic := self._topics.find(name)) is not None
        )
