"""All groups of the consumer protocol that have members: their machines, timers and records.

A group without members is what the fold of all groups and the store's progress know of it, as a
classic one is; only the epoch that it had is saved there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic import events
from rockgate.gateway.kafka.groups.classic.events import Join, Joined, Left, Sync, Synced
from rockgate.gateway.kafka.groups.classic.group import ClassicGroup
from rockgate.gateway.kafka.groups.classic.group_record import CLASSIC
from rockgate.gateway.kafka.groups.consumer import classic_members, fencing
from rockgate.gateway.kafka.groups.consumer.active import Active
from rockgate.gateway.kafka.groups.consumer.classic_members import CONSUMER
from rockgate.gateway.kafka.groups.consumer.group import ConsumerGroup
from rockgate.gateway.kafka.groups.consumer.heartbeats import Beat, HeartbeatOutcome, check, unknown
from rockgate.gateway.kafka.groups.consumer.machine import ConsumerMachine, Timing
from rockgate.gateway.kafka.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, TopicId
from rockgate.gateway.kafka.groups.consumer.migration import (
    MigrationPolicy,
    can_downgrade,
    check_upgrade,
    downgraded,
    empty,
    upgraded,
)
from rockgate.gateway.kafka.groups.consumer.records import (
    Changes,
    ConsumerMemory,
    load,
    records_of,
    removal,
)
from rockgate.gateway.kafka.groups.consumer.surroundings import ClassicSide, GroupTopics
from rockgate.gateway.kafka.request.chunked import Turn
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.runtime.quoting import quoted
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.problems import DeferralLog
from rockgate.store.errors import StoreError

SURE_STEPS: Final = 16
RETRY_MS: Final = 1_000
"""How long a group waits after a change that could not be written."""
log = logging.getLogger(__name__)


class ConsumerGroups:
    """The groups that have members, and at least one of the consumer protocol."""

    def __init__(
        self,
        *,
        memory: ConsumerMemory,
        topics: GroupTopics,
        timing: Callable[[str], Timing],
        policy: MigrationPolicy,
        new_id: Callable[[str], str],
    ) -> None:
        self._memory = memory
        self._topics = topics
        self._timing = timing
        self._policy = policy
        self._new_id = new_id
        self._active: dict[str, Active[ConsumerMachine]] = {}
        self._left_out: dict[str, int] = {}
        self._writes = DeferralLog(log, "consumer group records")
        self.written_count = 0
        """Changes that were written, so that an answer can wait for them."""
        self.classic: ClassicSide

    # Reading

    def __len__(self) -> int:
        return len(self._active)

    def __contains__(self, name: str) -> bool:
        return name in self._active

    def names(self) -> Iterable[str]:
        """The names of all; valid until the next change."""
        return self._active

    def find(self, name: str) -> ConsumerGroup | None:
        """The state of a group that has members."""
        active = self._active.get(name)
        return None if active is None else active.machine.group

    def new_member_id(self) -> str:
        """An id for a client that has none."""
        return self._new_id("")

    # Start and stop

    def load(self) -> None:
        """Restore the groups that had members when the server stopped."""
        for name, changes in load(self._memory.items()).items():
            if not changes.members:
                continue
            active = self._activate(name, 0)
            group = active.machine.group
            changes.targets = {
                each: target for each, target in changes.targets.items() if each in changes.members
            }
            group.apply(changes)
            active.machine.restore(self._now_ms())
            self._arm(name, active)

    def finish(self) -> None:
        """Stop all timers: the server stops."""
        for active in self._active.values():
            active.stop()

    # Members

    def beat(self, name: str, beat: Beat) -> HeartbeatOutcome:
        """Handle a heartbeat; RequestError if it is refused."""
        if not name:
            raise RequestError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
        check(beat)
        if beat.is_leaving:
            return self._leave(name, beat)
        active = self._active.get(name) or self._enter(name, beat)
        now_ms, machine = self._now_ms(), active.machine
        try:
            before = machine.admit(beat, now_ms)
            self._advance(name, active)
            return machine.follow(beat, before, now_ms)
        finally:
            self._settle(name, active)

    def _enter(self, name: str, beat: Beat) -> Active[ConsumerMachine]:
        """Begin a group, or take over a classic one."""
        side = self.classic
        holder = side.holder(name)
        if holder is not None and holder is not GroupType.CONSUMER:
            raise RequestError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Group {name} is not a consumer group: it is a {holder.value} group.",
            )
        group = side.classic(name)
        if group is not None and group.members:
            if beat.epoch != JOIN_EPOCH:
                raise _not_consumer(name)
            return self._upgrade(name, group)
        if beat.epoch != JOIN_EPOCH:
            if holder is GroupType.CONSUMER:
                raise unknown(name, beat.member_id)
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {name} not found.")
        if not side.has_room:
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too many groups have members.")
        generation = side.last_generation(name)
        if group is not None:
            side.hand_over(name)
        return self._activate(name, generation)

    def _upgrade(self, name: str, group: ClassicGroup) -> Active[ConsumerMachine]:
        timing = self._timing(name)
        check_upgrade(name, group, self._policy, timing.members_max)
        changes = upgraded(name, group, self._topics.find)
        active = self._activate(name, group.generation)
        try:
            active.machine.change(changes)
        except StoreError:
            self._retire(name)
            raise
        now_ms = self._now_ms()
        for member in active.machine.group.members.values():
            active.machine.extend(member, now_ms)
        self.classic.save(name, empty(CONSUMER, group.generation))
        self.classic.hand_over(name)
        return active

    def _leave(self, name: str, beat: Beat) -> HeartbeatOutcome:
        active = self._active.get(name)
        if active is None:
            if self.classic.classic(name) is not None:
                raise _not_consumer(name)
            if self.classic.holder(name) is GroupType.CONSUMER:
                raise unknown(name, beat.member_id)
            # The group is gone, and so is the member.
            return HeartbeatOutcome(member_id=beat.member_id, epoch=beat.epoch)
        machine = active.machine
        if beat.epoch == LEAVE_EPOCH:
            self._check_leaver(machine.group, beat)
            self._remove(name, active, [beat.member_id])
            self._settle(name, active)
            return HeartbeatOutcome(member_id=beat.member_id, epoch=beat.epoch)
        try:
            return machine.leave(beat)
        finally:
            self._settle(name, active)

    def _check_leaver(self, group: ConsumerGroup, beat: Beat) -> None:
        leaver = events.Leaver(beat.member_id, beat.instance_id)
        (code,), _ = classic_members.leaving(group, [leaver])
        if code is ErrorCode.FENCED_INSTANCE_ID:
            raise RequestError(code, f"Static member {beat.member_id} was fenced.")
        if code:
            raise unknown(group.name, beat.member_id)

    # Members of the classic protocol

    def join(self, name: str, join: Join) -> Joined:
        """Let a classic member join a consumer group."""
        active = self._active[name]
        now_ms, machine = self._now_ms(), active.machine
        group, members_max = machine.group, self._timing(name).members_max
        known = None if join.instance_id is None else group.static(join.instance_id)
        new_id = self._new_id(join.instance_id or join.client_id)
        if not join.member_id and join.needs_id and join.instance_id is None:
            return Joined(ErrorCode.MEMBER_ID_REQUIRED, new_id)
        try:
            member_id = classic_members.admit(machine, join, new_id, members_max, now_ms)
            self._advance(name, active)
            joined = classic_members.follow(machine, join, member_id, self._id_of, now_ms)
            if known is not None and known.id != member_id and not known.is_classic:
                self._downgrade(name, active, set(), is_changed=False)
            return joined
        except RequestError as error:
            return Joined(error.code, join.member_id)
        finally:
            self._settle(name, active)

    def sync(self, name: str, sync: Sync) -> Synced:
        """Tell a classic member its assignment."""
        machine = self._active[name].machine
        return classic_members.sync(machine, sync, self._topics.name_of, self._now_ms())

    def heartbeat(self, name: str, beat: events.MemberHeartbeat) -> ErrorCode:
        """Handle a heartbeat of a classic member."""
        active = self._active[name]
        now_ms = self._now_ms()
        active.machine.refresh(now_ms)
        self._advance(name, active)
        code = classic_members.heartbeat(active.machine, beat, now_ms)
        self._settle(name, active)
        return code

    def leave(self, name: str, leave: events.Leave) -> Left:
        """Remove members."""
        active = self._active[name]
        codes, gone = classic_members.leaving(active.machine.group, leave.leavers)
        if gone:
            self._remove(name, active, gone)
            self._settle(name, active)
        return codes

    # Offsets

    def check_commit(
        self,
        name: str,
        commit: events.Commit,
        partitions: Callable[[], Iterable[tuple[TopicId, int]]] | None,
    ) -> ErrorCode:
        """Return whether a client may commit these offsets."""
        return fencing.check_commit(self._active[name].machine.group, commit, partitions)

    def check_fetch(self, name: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Return whether a client may fetch offsets."""
        return fencing.check_fetch(self._active[name].machine.group, member_id, epoch)

    # Machines

    def _activate(self, name: str, generation: int) -> Active[ConsumerMachine]:
        group = ConsumerGroup(name, generation)
        machine = ConsumerMachine(
            group,
            timing=partial(self._timing, name),
            topics=self._topics,
            write=partial(self._write, group),
        )
        active = self._active[name] = Active(machine)
        return active

    def _write(self, group: ConsumerGroup, changes: Changes) -> None:
        self._memory.put(records_of(group.name, changes, group.members))
        self.written_count += 1
        self._writes.end()

    def _remove(self, name: str, active: Active[ConsumerMachine], gone: list[str]) -> None:
        group = active.machine.group
        if can_downgrade(group, set(gone), self._policy, self._timing(name).members_max):
            self._downgrade(name, active, set(gone), is_changed=True)
        else:
            active.machine.remove(gone)

    def _downgrade(
        self, name: str, active: Active[ConsumerMachine], gone: set[str], *, is_changed: bool
    ) -> None:
        group = active.machine.group
        if not can_downgrade(group, gone, self._policy, self._timing(name).members_max):
            return
        saved = downgraded(group, gone, self._topics.name_of)
        epoch = group.head.assignment_epoch
        is_changed = is_changed or not all(each.is_at(epoch) for each in group.members.values())
        # Saved first: were these records left by a failure, the group would be a consumer group.
        # A group that is to rebalance is saved without members, or a restart would make it stable.
        self.classic.save(name, empty(CLASSIC, saved.generation) if is_changed else saved)
        self._erase(group)
        self._retire(name)
        self.classic.adopt(name, saved, is_changed=is_changed)

    def _erase(self, group: ConsumerGroup) -> None:
        known = dict.fromkeys((*group.members, *group.targets))
        self._memory.put(removal(group.name, known))

    def _settle(self, name: str, active: Active[ConsumerMachine]) -> None:
        """After an event: retire a group without members, else set its timer."""
        if self._active.get(name) is not active:
            return
        group = active.machine.group
        if group.members:
            self._arm(name, active)
            return
        self.classic.save(name, empty(CONSUMER, group.head.epoch))
        try:
            self._erase(group)
        except StoreError as error:
            self._writes.report(error)
        self._retire(name)

    def _retire(self, name: str) -> None:
        self._active.pop(name).stop()
        self._left_out.pop(name, None)

    # Time

    def _now_ms(self) -> int:
        return int(self.classic.clock.time() * 1000)

    def _arm(self, name: str, active: Active[ConsumerMachine]) -> None:
        wake = partial(self._wake, name, active)
        active.arm(self.classic.clock, self._now_ms(), wake)

    def _wake(self, name: str, active: Active[ConsumerMachine]) -> None:
        active.ring()
        if self._active.get(name) is not active:
            return
        now_ms, machine = self._now_ms(), active.machine
        try:
            late = machine.expired(now_ms)
            if late:
                log.info(
                    "consumer group members expired group=%s count=%d", quoted(name), len(late)
                )
                self._remove(name, active, late)
            if self._active.get(name) is active:
                self._advance(name, active)
                machine.arm(now_ms)
        except StoreError as error:
            self._writes.report(error)
            machine.wake_ms = now_ms + RETRY_MS
        self._settle(name, active)

    def _advance(self, name: str, active: Active[ConsumerMachine]) -> None:
        """Do what has to be computed, a little at a time with other requests in between."""
        machine, turn = active.machine, Turn()
        try:
            while (work := machine.work(self._now_ms())) is not None:
                for at, _ in enumerate(work):
                    # A small group is assigned in the request that changes it, on any machine.
                    if at >= SURE_STEPS and turn.is_over:
                        active.resume_later(self.classic.clock, partial(self._resume, name, active))
                        return
        except StoreError as error:
            self._writes.report(error)
        self._warn(name, machine.left_out_count)

    def _resume(self, name: str, active: Active[ConsumerMachine]) -> None:
        active.resumed()
        if self._active.get(name) is active:
            self._advance(name, active)
            self._settle(name, active)

    def _warn(self, name: str, left_out: int) -> None:
        if left_out and self._left_out.get(name) != left_out:
            log.warning(
                "consumer group exceeds partitions_max group=%s unassigned=%d",
                quoted(name),
                left_out,
            )
        self._left_out[name] = left_out

    def _id_of(self, name: str) -> TopicId | None:
        topic = self._topics.find(name)
        return None if topic is None else topic.id


def _not_consumer(name: str) -> RequestError:
    return RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {name} is not a consumer group.")
