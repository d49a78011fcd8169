"""All streams groups that have members: their machines, timers and records.

Of a group without members the fold of all groups knows the kind and the last epoch; its topology
and its epochs remain records here, until it is deleted or becomes a group of another kind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Protocol

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic.events import Commit
from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.consumer.active import Active
from rockgate.gateway.kafka.groups.consumer.member import JOIN_EPOCH, TopicId
from rockgate.gateway.kafka.groups.consumer.surroundings import ClassicSide, NameLookup
from rockgate.gateway.kafka.groups.streams.fencing import check_task_commit, check_task_fetch
from rockgate.gateway.kafka.groups.streams.group import StreamsGroup
from rockgate.gateway.kafka.groups.streams.heartbeats import (
    StreamsBeat,
    StreamsOutcome,
    check,
    not_a_member,
)
from rockgate.gateway.kafka.groups.streams.machine import (
    StreamsMachine,
    StreamsTiming,
    StreamsTopics,
)
from rockgate.gateway.kafka.groups.streams.records import (
    StreamsChanges,
    StreamsMemory,
    load,
    records_of,
    removal_of,
    rest,
)
from rockgate.gateway.kafka.groups.view import GroupView
from rockgate.gateway.kafka.request.chunked import Turn
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.runtime.quoting import quoted
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.problems import DeferralLog
from rockgate.store.errors import StoreError

STREAMS: Final = GroupType.STREAMS.value
SURE_STEPS: Final = 16
RETRY_MS: Final = 1_000
"""How long a group waits after a change that could not be written."""
log = logging.getLogger(__name__)


class TaskTopics(StreamsTopics, NameLookup, Protocol):
    """The topics that there are, for streams groups."""


class StreamsGroups:
    """The groups that have members of the streams protocol."""

    kind: Final = GroupType.STREAMS

    def __init__(
        self,
        *,
        memory: StreamsMemory,
        topics: TaskTopics,
        timing: Callable[[str], StreamsTiming],
    ) -> None:
        self._memory = memory
        self._topics = topics
        self._timing = timing
        self._active: dict[str, Active[StreamsMachine]] = {}
        self._writes = DeferralLog(log, "streams group records")
        self.written_count = 0
        """Changes that were written, so that an answer can wait for them."""
        self._registry: ClassicSide

    def attach(self, registry: ClassicSide) -> None:
        """Be a part of all groups."""
        self._registry = registry

    # Reading

    def __len__(self) -> int:
        return len(self._active)

    def __contains__(self, name: str) -> bool:
        return name in self._active

    def names(self) -> Iterable[str]:
        """The names of all; valid until the next change."""
        return self._active

    def machine(self, name: str) -> StreamsMachine | None:
        """The machine of a group that has members."""
        active = self._active.get(name)
        return None if active is None else active.machine

    def without_members(self, name: str) -> StreamsGroup:
        """What remains of a group that has no members."""
        group = StreamsGroup(name)
        group.apply(rest(name, self._memory))
        return group

    def view(self, name: str) -> GroupView:
        """Describe a group that has members."""
        group = self._active[name].machine.group
        return GroupView(GroupType.STREAMS, group.state, STREAMS, "", (), group.read)

    def member_count(self, name: str) -> int:
        """The number of members of a group that has some."""
        return len(self._active[name].machine.group.members)

    def check_commit(
        self,
        name: str,
        commit: Commit,
        partitions: Callable[[], Iterable[tuple[TopicId, int]]] | None,
    ) -> ErrorCode:
        """Return whether a client may commit these offsets."""
        group = self._active[name].machine.group
        return check_task_commit(group, commit, partitions, self._topics.name_of)

    def check_fetch(self, name: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Return whether a client may fetch offsets."""
        return check_task_fetch(self._active[name].machine.group, member_id, epoch)

    # Start and stop

    def load(self) -> None:
        """Restore the groups that had members when the server stopped."""
        for name, changes in load(self._memory.items()).items():
            if not changes.members:
                continue
            changes.targets = {
                each: target for each, target in changes.targets.items() if each in changes.members
            }
            active = self._activate(name, changes)
            active.machine.restore(self._now_ms())
            self._arm(name, active)

    def finish(self) -> None:
        """Stop all timers: the server stops."""
        for active in self._active.values():
            active.stop()

    def forget(self, names: Iterable[str]) -> None:
        """Drop the topologies of groups without members."""
        removal = removal_of((name for name in names if name not in self._active), self._memory)
        if removal:
            self._memory.put(removal)

    # Members

    def beat(self, name: str, beat: StreamsBeat) -> StreamsOutcome:
        """Handle a heartbeat; RequestError if it is refused."""
        if not name:
            raise RequestError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
        check(beat)
        if beat.is_leaving:
            return self._leave(name, beat)
        is_new = name not in self._active and self._registry.holder(name) is None
        active = self._active.get(name) or self._enter(name, beat)
        now_ms, machine = self._now_ms(), active.machine
        try:
            before = machine.admit(beat, now_ms)
            self._advance(name, active)
            return machine.follow(beat, before, now_ms, is_new=is_new)
        finally:
            self._settle(name, active)

    def _enter(self, name: str, beat: StreamsBeat) -> Active[StreamsMachine]:
        """Begin a group, take up one without members, or take over an empty classic one."""
        registry = self._registry
        holder, group = registry.holder(name), registry.classic(name)
        if holder not in (None, GroupType.STREAMS) or (group is not None and group.members):
            raise _not_streams(name)
        if beat.epoch != JOIN_EPOCH:
            if holder is GroupType.STREAMS:
                raise not_a_member(name, beat.member_id)
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {name} not found.")
        if not registry.has_room:
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too many groups have members.")
        remains = rest(name, self._memory) if holder is GroupType.STREAMS else StreamsChanges()
        if group is not None:
            registry.hand_over(name)
        return self._activate(name, remains)

    def _leave(self, name: str, beat: StreamsBeat) -> StreamsOutcome:
        active = self._active.get(name)
        if active is None:
            registry = self._registry
            holder = registry.holder(name)
            if holder is GroupType.STREAMS:
                raise not_a_member(name, beat.member_id)
            if holder is not None or registry.classic(name) is not None:
                raise _not_streams(name)
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {name} not found.")
        machine = active.machine
        if beat.member_id not in machine.group.members:
            raise not_a_member(name, beat.member_id)
        if beat.shuts_down:
            machine.shut_down(beat.member_id)
        try:
            machine.remove([beat.member_id])
        finally:
            self._settle(name, active)
        return StreamsOutcome(member_id=beat.member_id, epoch=beat.epoch)

    # Machines

    def _activate(self, name: str, remains: StreamsChanges) -> Active[StreamsMachine]:
        group = StreamsGroup(name)
        group.apply(remains)
        machine = StreamsMachine(
            group,
            timing=partial(self._timing, name),
            topics=self._topics,
            write=partial(self._write, group),
        )
        active = self._active[name] = Active(machine)
        return active

    def _write(self, group: StreamsGroup, changes: StreamsChanges) -> None:
        self._memory.put(records_of(group.name, changes, group.members))
        self.written_count += 1
        self._writes.end()

    def _settle(self, name: str, active: Active[StreamsMachine]) -> None:
        """After an event: retire a group without members, else set its timer."""
        if self._active.get(name) is not active:
            return
        group = active.machine.group
        if group.members:
            self._arm(name, active)
            return
        registry, epoch = self._registry, group.head.epoch
        if group.topology is not None and registry.last_generation(name) != epoch:
            registry.save(name, SavedGroup(STREAMS, epoch, STREAMS))
        self._active.pop(name).stop()

    # Time

    def _now_ms(self) -> int:
        return int(self._registry.clock.time() * 1000)

    def _arm(self, name: str, active: Active[StreamsMachine]) -> None:
        active.arm(self._registry.clock, self._now_ms(), partial(self._wake, name, active))

    def _wake(self, name: str, active: Active[StreamsMachine]) -> None:
        active.ring()
        if self._active.get(name) is not active:
            return
        now_ms, machine = self._now_ms(), active.machine
        try:
            late = machine.expired(now_ms)
            if late:
                log.info("streams group members expired group=%s count=%d", quoted(name), len(late))
                machine.remove(late)
            if machine.group.members:
                machine.refresh(now_ms)
                self._advance(name, active)
            machine.arm(now_ms)
        except StoreError as error:
            self._writes.report(error)
            machine.wake_ms = now_ms + RETRY_MS
        self._settle(name, active)

    def _advance(self, name: str, active: Active[StreamsMachine]) -> None:
        """Do what has to be computed, a little at a time with other requests in between."""
        machine, turn = active.machine, Turn()
        try:
            while (work := machine.work(self._now_ms())) is not None:
                for at, _ in enumerate(work):
                    # A small group is assigned in the request that changes it, on any machine.
                    if at >= SURE_STEPS and turn.is_over:
                        resume = partial(self._resume, name, active)
                        active.resume_later(self._registry.clock, resume)
                        return
        except StoreError as error:
            self._writes.report(error)

    def _resume(self, name: str, active: Active[StreamsMachine]) -> None:
        active.resumed()
        if self._active.get(name) is active:
            self._advance(name, active)
            self._settle(name, active)


def _not_streams(name: str) -> RequestError:
    return RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {name} is not a streams group.")
