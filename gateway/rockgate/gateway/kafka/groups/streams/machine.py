"""The machine of one streams group: requests and time in, answers and changes out.

It follows docs/internals/groups-streams.md. There is no loop and no store: `write` gets every
change before it is made, and raises if it could not be written; then nothing has changed.

What may take long is `work`, a generator that yields between pieces. Whoever owns the machine runs
it, and wakes it when `wake_ms` has come.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol

import msgspec

from rockgate.gateway.kafka.groups.classic.join_window import NEVER_MS
from rockgate.gateway.kafka.groups.consumer.group import TopicShape, digest_of
from rockgate.gateway.kafka.groups.consumer.member import JOIN_EPOCH, MemberState
from rockgate.gateway.kafka.groups.streams.assignor import Assignee, TaskShape, sticky
from rockgate.gateway.kafka.groups.streams.configured import (
    ConfiguredTopology,
    GroupStatus,
    StatusCode,
    configure,
)
from rockgate.gateway.kafka.groups.streams.endpoints import EndpointTable
from rockgate.gateway.kafka.groups.streams.group import StreamsGroup
from rockgate.gateway.kafka.groups.streams.heartbeats import (
    StreamsBeat,
    StreamsOutcome,
    check_epoch,
    check_tasks,
    not_a_member,
    said_by,
)
from rockgate.gateway.kafka.groups.streams.member import StreamsMember
from rockgate.gateway.kafka.groups.streams.reconciliation import step
from rockgate.gateway.kafka.groups.streams.records import StreamsChanges, StreamsHead
from rockgate.gateway.kafka.groups.streams.topology import StreamsTopology
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode

REFRESH_MS: Final = 1_000
"""How often a group reads the shapes of its topics again while topics come and go."""
PIECE: Final = 200
_DELAYED: Final = "Assignment delayed due to the configured {}."
_SHUTDOWN: Final = (
    "Streams group member {} encountered a fatal error and requested a shutdown for the entire "
    "application."
)
AssignWork = Generator[None, None, None]


class StreamsTopics(Protocol):
    """The topics that there are."""

    @property
    def version(self) -> int:
        """A number that differs after every change of the list of topics."""
        ...

    def find(self, name: str, /) -> TopicShape | None:
        """A topic by name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsTiming:
    """The settings of one group."""

    session_ms: int
    heartbeat_ms: int
    assignment_ms: int
    initial_delay_ms: int
    standbys: int
    members_max: int
    tasks_max: int


class StreamsMachine:
    """One group with members."""

    def __init__(
        self,
        group: StreamsGroup,
        *,
        timing: Callable[[], StreamsTiming],
        topics: StreamsTopics,
        write: Callable[[StreamsChanges], None],
    ) -> None:
        self.group = group
        self._timing = timing
        self._topics = topics
        self._write = write
        self._sessions: dict[str, int] = {}
        self._limits: dict[str, int] = {}
        self._configured: ConfiguredTopology | None = None
        self._digest = b""
        self._seen_version: int | None = None
        self._refresh_ms = 0
        self._delay_until_ms: int | None = None
        self._assigned_ms: int | None = None
        self._work: AssignWork | None = None
        self._shutdown_by: str | None = None
        self.endpoints = EndpointTable()
        self.wake_ms = NEVER_MS
        """When it is to be woken, at the latest."""

    @property
    def configured(self) -> ConfiguredTopology | None:
        """The topology on the topics that there are; None before the first heartbeat."""
        return self._configured

    def restore(self, now_ms: int) -> None:
        """Begin with what was written before a start: every session starts over."""
        for member in self.group.members.values():
            self._extend(member, now_ms)
            if member.state is MemberState.REVOKING:
                self._limit(member, now_ms)

    # Members

    def admit(self, beat: StreamsBeat, now_ms: int) -> StreamsMember:
        """Take a heartbeat; returns the member as it is before its next step."""
        group, is_first = self.group, not self.group.members
        known = group.members.get(beat.member_id)
        if known is None:
            if beat.epoch != JOIN_EPOCH:
                raise not_a_member(group.name, beat.member_id)
            if len(group.members) >= (most := self._timing().members_max):
                raise RequestError(
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    f"The streams group has reached its maximum capacity of {most} members.",
                )
        member = known or StreamsMember(id=beat.member_id)
        check_epoch(member, beat)
        process = said_by(member.process, beat)
        changes = StreamsChanges()
        if known is None or process is not member.process:
            member = changes.members[member.id] = replace(member, process=process)
        changes.topology = self._new_topology(beat.topology)
        self._look(changes, now_ms, owned=beat)
        self.change(changes)
        if is_first:
            delay_ms = self._timing().initial_delay_ms
            self._delay_until_ms = now_ms + delay_ms if delay_ms else None
        if beat.shuts_down:
            self.shut_down(beat.member_id)
        self._extend(member, now_ms)
        return member

    def _new_topology(self, said: StreamsTopology | None) -> StreamsTopology | None:
        known = self.group.topology
        if said is None or known is None:
            return said
        if said.epoch >= known.epoch and said != known:
            raise RequestError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return None

    def follow(
        self, beat: StreamsBeat, before: StreamsMember, now_ms: int, *, is_new: bool = False
    ) -> StreamsOutcome:
        """Let a member take its next step, and answer with what has changed."""
        group, timing = self.group, self._timing()
        member = self._step(before.id, beat, now_ms)
        has_changed = beat.epoch == JOIN_EPOCH or member.assigned != before.assigned
        table = self.endpoints
        has_endpoint = member.process.endpoint is not None
        if has_changed and has_endpoint and not is_new:
            table.changed()
        reported = beat.reported
        # The answer that had the tasks may have been lost on its way.
        is_other = reported is not None and reported != member.assigned.without_epochs()
        configured = self._configured
        return StreamsOutcome(
            member_id=member.id,
            epoch=member.epoch,
            interval_ms=timing.heartbeat_ms,
            statuses=tuple(self._statuses(member, now_ms)),
            assigned=member.assigned if has_changed or is_other else None,
            endpoint_epoch=table.epoch,
            endpoints=table.of(group.members.values(), configured, self._topics.find)
            if table.epoch != beat.endpoint_epoch or (is_new and has_endpoint)
            else None,
            missing=() if configured is None else configured.missing,
        )

    def _statuses(self, member: StreamsMember, now_ms: int) -> Iterable[GroupStatus]:
        group, configured = self.group, self._configured
        topology = group.topology
        if topology is not None and member.process.topology_epoch < topology.epoch:
            yield GroupStatus(
                StatusCode.STALE_TOPOLOGY,
                f"The member's topology epoch {member.process.topology_epoch} is behind the "
                f"group's topology epoch {topology.epoch}.",
            )
        if self._delay_until_ms is not None and now_ms < self._delay_until_ms:
            detail = _DELAYED.format("initial rebalance delay")
            yield GroupStatus(StatusCode.ASSIGNMENT_DELAYED, detail)
        elif group.head.epoch > group.head.assignment_epoch:
            detail = _DELAYED.format("assignment interval")
            yield GroupStatus(StatusCode.ASSIGNMENT_DELAYED, detail)
        if configured is not None and configured.problem is not None:
            yield configured.problem
        if self._shutdown_by is not None:
            detail = _SHUTDOWN.format(self._shutdown_by)
            yield GroupStatus(StatusCode.SHUTDOWN_APPLICATION, detail)

    def _step(self, member_id: str, beat: StreamsBeat, now_ms: int) -> StreamsMember:
        group = self.group
        member = group.members[member_id]
        moved = step(
            member,
            target_epoch=group.head.assignment_epoch,
            target=group.target(member_id),
            is_free=group.is_free,
            reported=beat.reported,
        )
        if moved is not member:
            self.change(StreamsChanges(members={member_id: moved}))
            if moved.state is MemberState.REVOKING:
                self._limit(moved, now_ms)
            else:
                self._limits.pop(member_id, None)
        return moved

    def remove(self, member_ids: list[str]) -> None:
        """Remove members; what they had is assigned anew."""
        group = self.group
        if any(group.members[each].process.endpoint for each in member_ids):
            self.endpoints.changed()
        self.change(
            StreamsChanges(
                head=msgspec.structs.replace(group.head, epoch=group.head.epoch + 1),
                members=dict.fromkeys(member_ids),
                targets={each: None for each in member_ids if each in group.targets},
            )
        )

    def shut_down(self, member_id: str) -> None:
        """A member asks that the whole application stops; the first one counts."""
        self._shutdown_by = self._shutdown_by or member_id

    def change(self, changes: StreamsChanges) -> None:
        """Write a change, then make it."""
        if changes:
            self._write(changes)
            self.group.apply(changes)
            for member_id, member in changes.members.items():
                if member is None:
                    self._sessions.pop(member_id, None)
                    self._limits.pop(member_id, None)

    # Deadlines

    def _extend(self, member: StreamsMember, now_ms: int) -> None:
        until_ms = self._sessions[member.id] = now_ms + self._timing().session_ms
        self.wake_ms = min(self.wake_ms, until_ms)

    def _limit(self, member: StreamsMember, now_ms: int) -> None:
        until_ms = now_ms + max(0, member.process.rebalance_ms)
        self._limits[member.id] = until_ms
        self.wake_ms = min(self.wake_ms, until_ms)

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
        """Read the shapes of the topics again, if there may be others now."""
        if self.group.topology is not None:
            changes = StreamsChanges()
            self._look(changes, now_ms)
            self.change(changes)

    def _look(self, changes: StreamsChanges, now_ms: int, owned: StreamsBeat | None = None) -> None:
        """Let the epoch grow if members, topics or settings are others; check owned tasks."""
        head, timing = self.group.head, self._timing()
        topology = changes.topology or self.group.topology
        if topology is None:
            raise RequestError(ErrorCode.INVALID_REQUEST, "The group has no topology.")
        configured = self._configure(topology, now_ms, timing.tasks_max)
        digest = self._digest
        if owned is not None and configured.is_ready:
            check_tasks(configured.task_counts, owned.reported)
        validated = topology.epoch if configured.is_ready else -1
        grown = StreamsHead(
            head.epoch + 1, head.assignment_epoch, digest, validated, timing.standbys
        )
        is_same = (
            not changes.members
            and changes.topology is None
            and (digest, validated, timing.standbys)
            == (head.digest, head.validated_epoch, head.standbys)
        )
        if not is_same:
            changes.head = grown

    def _configure(
        self, topology: StreamsTopology, now_ms: int, tasks_max: int
    ) -> ConfiguredTopology:
        version, known = self._topics.version, self._configured
        is_due = version != self._seen_version and now_ms >= self._refresh_ms
        if known is not None and known.topology == topology and not is_due:
            return known
        self._seen_version, self._refresh_ms = version, now_ms + REFRESH_MS
        shapes = {name: self._topics.find(name) for name in topology.required()}
        there = {name: topic for name, topic in shapes.items() if topic is not None}
        digest = digest_of(there)
        if known is None or known.topology != topology or digest != self._digest:
            counts = {name: topic.queue_count for name, topic in there.items()}
            self._configured = known = configure(topology, counts.get, tasks_max)
            self._digest = digest
        return known

    def work(self, now_ms: int) -> AssignWork | None:
        """What is to be computed now, or continues; None if nothing is."""
        if self._work is None and self._is_behind:
            if now_ms >= (due_ms := self._due_ms(now_ms)):
                self._work = self._assign(now_ms)
            else:
                self.wake_ms = min(self.wake_ms, due_ms)
        return self._work

    @property
    def _is_behind(self) -> bool:
        head = self.group.head
        return head.epoch > head.assignment_epoch and self._configured is not None

    def _due_ms(self, now_ms: int) -> int:
        due_ms = now_ms
        if self._assigned_ms is not None:
            due_ms = self._assigned_ms + self._timing().assignment_ms
        return max(due_ms, self._delay_until_ms or 0)

    def _assign(self, now_ms: int) -> AssignWork:
        """Compute the target of the group's epoch."""
        group, head, configured = self.group, self.group.head, self._configured
        assert configured is not None, "a group is configured before it is assigned"
        subtopologies = configured.topology.subtopologies if configured.is_ready else ()
        shapes = {
            each.id: TaskShape(configured.task_counts[each.id], bool(each.changelogs))
            for each in subtopologies
        }
        members = {}
        for at, member in enumerate(list(group.members.values())):
            members[member.id] = Assignee(member.process.id, group.target(member.id))
            if at % PIECE == PIECE - 1:
                yield
        target = yield from sticky(shapes, members, head.standbys)
        self._work, self._assigned_ms, self._delay_until_ms = None, now_ms, None
        changes = StreamsChanges(
            head=msgspec.structs.replace(group.head, assignment_epoch=head.epoch)
        )
        for member_id, tasks in target.items():
            if member_id in group.members and tasks != group.target(member_id):
                changes.targets[member_id] = tasks
        changes.targets |= {each: None for each in group.targets if each not in group.members}
        self.change(changes)
