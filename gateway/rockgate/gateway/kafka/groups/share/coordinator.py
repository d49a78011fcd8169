"""All share groups that have members: their machines, timers and records.

A group without members is what the fold of all groups knows of it, with its last epoch, and the
windows of its records; it is a share group until it is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic.events import Commit, GroupState
from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.consumer.active import Active
from rockgate.gateway.kafka.groups.consumer.member import TopicId
from rockgate.gateway.kafka.groups.consumer.surroundings import ClassicSide
from rockgate.gateway.kafka.groups.share.machine import (
    ShareMachine,
    ShareTiming,
    ShareTopics,
    unknown,
)
from rockgate.gateway.kafka.groups.share.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    Key,
    ShareBeat,
    ShareBeatAnswer,
    ShareMemory,
    load,
)
from rockgate.gateway.kafka.groups.view import GroupView
from rockgate.gateway.kafka.request.chunked import Turn
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.runtime.quoting import quoted
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.problems import DeferralLog
from rockgate.store.errors import StoreError

SHARE: Final = GroupType.SHARE.value
SURE_STEPS: Final = 16
RETRY_MS: Final = 1_000
"""How long a group waits after a change that could not be written."""
log = logging.getLogger(__name__)


class GroupRecords(Protocol):
    """What groups have read and not finished, and where they are."""

    def has(self, group: str, /) -> bool:
        """Whether a group has read anything."""
        ...

    def groups(self) -> Iterable[str]:
        """The groups that have."""
        ...

    def drop(self, group: str, /) -> None:
        """Forget everything of a group."""
        ...


class ShareGroups:
    """The share groups that have members, and what is known of all."""

    def __init__(
        self,
        *,
        memory: ShareMemory,
        records: GroupRecords,
        topics: ShareTopics,
        timing: Callable[[str], ShareTiming],
    ) -> None:
        self._memory = memory
        self._records = records
        self._topics = topics
        self._timing = timing
        self._active: dict[str, Active[ShareMachine]] = {}
        self._left_out: dict[str, int] = {}
        self._writes = DeferralLog(log, "share group records")
        self.written_count = 0
        """Changes that were written, so that an answer can wait for them."""
        self.on_left: list[Callable[[str, str], None]] = []
        """Called with group and member after a member was removed."""
        self.on_leaving: list[Callable[[str, str], None]] = []
        """Called instead after a member has left by itself."""
        self.registry: ClassicSide

    # Reading

    kind: Final = GroupType.SHARE

    def __len__(self) -> int:
        return len(self._active)

    def __contains__(self, name: str) -> bool:
        """Whether a group has members, or has read anything."""
        return name in self._active or self._records.has(name)

    def names(self) -> Iterable[str]:
        """The names of those with members or records; valid until the next change."""
        return {**dict.fromkeys(self._active), **dict.fromkeys(self._records.groups())}

    def forget(self, names: Iterable[str]) -> None:
        """Drop what groups without members have read: they are deleted."""
        for name in names:
            if name not in self._active and self._records.has(name):
                self._records.drop(name)

    def find(self, name: str) -> ShareMachine | None:
        """The machine of a group that has members."""
        active = self._active.get(name)
        return None if active is None else active.machine

    def view(self, name: str) -> GroupView:
        """Describe a group."""
        machine = self.find(name)
        if machine is None:
            return GroupView(GroupType.SHARE, GroupState.EMPTY, SHARE, "", ())
        return GroupView(GroupType.SHARE, machine.state, SHARE, "", (), machine.subscribed)

    def member_count(self, name: str) -> int:
        """The number of members of a group."""
        machine = self.find(name)
        return 0 if machine is None else len(machine.members)

    def check_commit(
        self,
        name: str,
        commit: Commit,
        partitions: Callable[[], Iterable[tuple[TopicId, int]]] | None,
    ) -> ErrorCode:
        """Share groups have no committed offsets."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_fetch(self, name: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Nor can any be fetched."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    # Start and stop

    def attach(self, registry: ClassicSide) -> None:
        """Be a part of all groups."""
        self.registry = registry

    def load(self) -> None:
        """Restore the groups that had members when the server stopped."""
        for name, (epoch, members) in load(self._memory.items()).items():
            active = self._activate(name, epoch)
            active.machine.restore(members, self._now_ms())
            self._arm(name, active)

    def finish(self) -> None:
        """Stop all timers: the server stops."""
        for active in self._active.values():
            active.stop()

    # Members

    def beat(self, name: str, beat: ShareBeat) -> ShareBeatAnswer:
        """Handle a heartbeat; RequestError if it is refused."""
        _check(name, beat)
        active = self._active.get(name)
        if active is None:
            active = self._enter(name, beat)
        machine = active.machine
        if beat.epoch == LEAVE_EPOCH:
            if beat.member_id not in machine.members:
                raise unknown(name, beat.member_id)
            self._remove(name, active, [beat.member_id], self.on_leaving)
            self._settle(name, active)
            return ShareBeatAnswer(member_id=beat.member_id, epoch=LEAVE_EPOCH)
        now_ms = self._now_ms()
        try:
            machine.admit(beat, now_ms)
            self._advance(name, active)
            return machine.follow(beat)
        finally:
            self._settle(name, active)

    def _enter(self, name: str, beat: ShareBeat) -> Active[ShareMachine]:
        view = self.registry.describe(name)
        if view is not None and view.kind is not GroupType.SHARE:
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {name} is not a share group.")
        if view is not None and beat.epoch != JOIN_EPOCH:
            raise unknown(name, beat.member_id)
        if beat.epoch != JOIN_EPOCH:
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {name} not found.")
        if not self.registry.has_room:
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too many groups have members.")
        return self._activate(name, self.registry.last_generation(name))

    def _remove(
        self,
        name: str,
        active: Active[ShareMachine],
        gone: list[str],
        listeners: Sequence[Callable[[str, str], None]],
    ) -> None:
        active.machine.remove(gone)
        for member_id in gone:
            for listener in listeners:
                listener(name, member_id)

    # Machines

    def _activate(self, name: str, epoch: int) -> Active[ShareMachine]:
        machine = ShareMachine(
            name,
            epoch,
            timing=partial(self._timing, name),
            topics=self._topics,
            write=self._write,
        )
        active = self._active[name] = Active(machine)
        return active

    def _write(self, changes: dict[Key, bytes | None]) -> None:
        self._memory.put(changes)
        self.written_count += 1
        self._writes.end()

    def _settle(self, name: str, active: Active[ShareMachine]) -> None:
        """After an event: retire a group without members, else set its timer."""
        if self._active.get(name) is not active:
            return
        machine = active.machine
        if machine.members:
            self._arm(name, active)
            return
        self._active.pop(name).stop()
        self._left_out.pop(name, None)
        if not machine.is_written:
            # Its first member was refused.
            return
        self.registry.save(name, SavedGroup(SHARE, machine.epoch, SHARE))
        try:
            self._memory.put({(name, ""): None})
        except StoreError as error:
            self._writes.report(error)

    # Time

    def _now_ms(self) -> int:
        return int(self.registry.clock.time() * 1000)

    def _arm(self, name: str, active: Active[ShareMachine]) -> None:
        wake = partial(self._wake, name, active)
        active.arm(self.registry.clock, self._now_ms(), wake)

    def _wake(self, name: str, active: Active[ShareMachine]) -> None:
        active.ring()
        if self._active.get(name) is not active:
            return
        now_ms, machine = self._now_ms(), active.machine
        try:
            late = machine.expired(now_ms)
            if late:
                log.info("share group members expired group=%s count=%d", quoted(name), len(late))
                self._remove(name, active, late, self.on_left)
            self._advance(name, active)
            machine.arm(now_ms)
        except StoreError as error:
            self._writes.report(error)
            machine.wake_ms = now_ms + RETRY_MS
        self._settle(name, active)

    def _advance(self, name: str, active: Active[ShareMachine]) -> None:
        """Do what has to be computed, a little at a time with other requests in between."""
        machine, turn = active.machine, Turn()
        while (work := machine.work(self._now_ms())) is not None:
            for at, _ in enumerate(work):
                # A small group is assigned in the request that changes it, on any machine.
                if at >= SURE_STEPS and turn.is_over:
                    active.resume_later(self.registry.clock, partial(self._resume, name, active))
                    return
        if machine.left_out_count and self._left_out.get(name) != machine.left_out_count:
            log.warning(
                "share group reads too many partitions group=%s unassigned=%d",
                quoted(name),
                machine.left_out_count,
            )
        self._left_out[name] = machine.left_out_count

    def _resume(self, name: str, active: Active[ShareMachine]) -> None:
        active.resumed()
        if self._active.get(name) is active:
            self._advance(name, active)
            self._settle(name, active)


def _check(name: str, beat: ShareBeat) -> None:
    """Refuse a heartbeat that no group could take."""
    reason = None
    if not beat.member_id:
        reason = "MemberId can't be empty."
    elif not name:
        reason = "GroupId can't be empty."
    elif beat.rack_id == "":
        reason = "RackId can't be empty."
    elif beat.epoch == JOIN_EPOCH and not beat.names:
        reason = "SubscribedTopicNames must be set in first request."
    elif beat.epoch < LEAVE_EPOCH:
        reason = "MemberEpoch is invalid."
    if reason is not None:
        raise RequestError(ErrorCode.INVALID_REQUEST, reason)
