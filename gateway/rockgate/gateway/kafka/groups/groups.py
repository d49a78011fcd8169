"""All groups: the state machines of those with members, the saved state of the others.

A group has a kind. Classic ones have a machine here, and only while they have members or expect
some; a group without either is what the fold and the store's progress know of it. A group that
another part of the server has members in (RocketMQ's, later KIP-848's) is held by its kind:
classic members cannot join it meanwhile, and that part cannot hold it while it has classic ones.

One timer of the loop serves all deadlines of a group. What a machine wants written is written
before any client sees its effect; on a server that flushes before it answers, also flushed.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic.events import (
    Arm,
    Commit,
    Effect,
    Event,
    Finish,
    GroupState,
    Join,
    Joined,
    Leave,
    Left,
    MemberHeartbeat,
    Reply,
    Sync,
    Synced,
    Wake,
)
from rockgate.gateway.kafka.groups.classic.group import ClassicGroup
from rockgate.gateway.kafka.groups.classic.group_record import CLASSIC, SavedGroup, SavedMember
from rockgate.gateway.kafka.groups.classic.members import Member
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.memory import GroupMemory
from rockgate.gateway.kafka.groups.progress import GroupProgress, TransactionalOffsets
from rockgate.gateway.kafka.groups.waiters import Waiter
from rockgate.gateway.kafka.request.now import Durable, Now
from rockgate.gateway.net.clock import Clock, Timer
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.problems import DeferralLog
from rockgate.store.errors import StoreError

A = TypeVar("A")
PREFIX_CHARS_MAX = 200
_UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
log = logging.getLogger(__name__)


class GroupView(NamedTuple):
    """A group as ListGroups and DescribeGroups show it."""

    kind: GroupType
    state: GroupState
    protocol_type: str
    protocol_name: str
    members: Sequence[Member]


class _Active:
    """A group with a state machine."""

    __slots__ = ("group", "name", "timer")

    def __init__(self, name: str, group: ClassicGroup) -> None:
        self.name = name
        self.group = group
        self.timer: Timer | None = None


class Groups:
    """All groups of this server. Owned by the app."""

    def __init__(
        self,
        *,
        config: GroupsConfig,
        saved: GroupMemory,
        progress: GroupProgress,
        durability: Durable,
        new_id: Callable[[str], str],
        clock: Clock | None = None,
        pending: TransactionalOffsets | None = None,
    ) -> None:
        self._config = config
        self._saved = saved
        self._saves = DeferralLog(log, "group records")
        self._progress = progress
        self._durability = durability
        self._new_id = new_id
        self._clock = clock
        self._pending = pending
        self._active: dict[str, _Active] = {}
        self._held: dict[str, GroupType] = {}
        self._is_finishing = False

    @property
    def clock(self) -> Clock:
        """The clock of timeouts: the running loop's, unless a test has its own."""
        return self._clock or asyncio.get_running_loop()

    @property
    def active_count(self) -> int:
        """Groups with members, or with joining ones."""
        return len(self._active)

    def load(self) -> None:
        """Restore the members that groups had when the server stopped."""
        for name in list(self._saved.names()):
            record = self._saved.find(name)
            if record is not None and record.group.members:
                self._activate(name, record.group)

    def finish(self) -> None:
        """Answer every waiter: the server stops, and no request may wait from now on."""
        self._is_finishing = True
        for active in list(self._active.values()):
            self._happen(active, Finish())
            if active.timer is not None:
                active.timer.cancel()

    # Requests of clients

    def join(self, name: str, join: Join) -> Joined | asyncio.Future[Joined]:
        """Join a group, or its next generation."""
        code = self._check_join(name, join)
        if code:
            return Joined(code, join.member_id)
        active = self._find(name)
        if active is None:
            if join.member_id:
                return Joined(_UNKNOWN, join.member_id)
            if len(self._active) >= self._config.groups_max:
                return Joined(ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
            record = self._saved.find(name)
            active = self._activate(name, record.group if record is not None else None)
        return self._ask(active, join, Joined)

    def _check_join(self, name: str, join: Join) -> ErrorCode:
        if self._is_finishing:
            return ErrorCode.NOT_COORDINATOR
        if not name:
            return ErrorCode.INVALID_GROUP_ID
        if not self._config.session_ms_min <= join.session_ms <= self._config.session_ms_max:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if name in self._held:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def sync(self, name: str, sync: Sync) -> Synced | asyncio.Future[Synced]:
        """Get an assignment, or set all of them."""
        active = self._find(name)
        if self._is_finishing:
            return Synced(ErrorCode.NOT_COORDINATOR)
        if active is None:
            return Synced(_UNKNOWN if name else ErrorCode.INVALID_GROUP_ID)
        return self._ask(active, sync, Synced)

    def heartbeat(self, name: str, beat: MemberHeartbeat) -> ErrorCode:
        """Handle a heartbeat of a member."""
        active = self._find(name)
        if active is None:
            return _UNKNOWN if name else ErrorCode.INVALID_GROUP_ID
        return cast(ErrorCode, self._ask(active, beat, ErrorCode))

    def leave(self, name: str, leave: Leave) -> Left | asyncio.Future[Left]:
        """Remove members."""
        active = self._find(name)
        if active is None:
            code = _UNKNOWN if name else ErrorCode.INVALID_GROUP_ID
            return [code] * len(leave.leavers)
        return self._ask(active, leave, list)

    def check_commit(self, name: str, commit: Commit) -> ErrorCode:
        """Return whether these offsets may be committed."""
        active = self._find(name)
        if active is not None:
            return cast(ErrorCode, self._ask(active, commit, ErrorCode))
        if commit.generation < 0:
            return _UNKNOWN if name in self._held else ErrorCode.NONE
        # A group without members has no generation.
        return ErrorCode.ILLEGAL_GENERATION if self.describe(name) is None else _UNKNOWN

    def may_commit_from_outside(self, name: str) -> bool:
        """Whether a client outside the group may commit offsets: while it has no members."""
        return self.member_count(name) == 0

    def has_others(self, name: str, kind: GroupType) -> bool:
        """Whether a group has members of another kind than this."""
        if name in self._held:
            return self._held[name] is not kind
        active = self._active.get(name)
        return active is not None and len(active.group.members) > 0

    # Requests of administrators

    def describe(self, name: str) -> GroupView | None:
        """Describe a group; None if it does not exist."""
        active = self._find(name)
        if active is not None:
            group = active.group
            return GroupView(
                GroupType.CLASSIC,
                group.state,
                group.protocol_type,
                group.protocol_name or "",
                list(group.members),
            )
        kind = self._held.get(name)
        if kind is not None:
            return GroupView(kind, GroupState.STABLE, "", "", ())
        record = self._saved.find(name)
        if record is None and not self._has_offsets(name):
            return None
        protocol_type = record.group.protocol_type if record is not None else ""
        return GroupView(GroupType.CLASSIC, GroupState.EMPTY, protocol_type, "", ())

    def is_active(self, name: str) -> bool:
        """Whether a group has members, or joining ones."""
        return name in self._active or name in self._held

    def member_count(self, name: str) -> int:
        """The number of members of a group; those of another protocol count as one."""
        active = self._find(name)
        return len(active.group.members) if active is not None else int(name in self._held)

    def names(self) -> Iterator[str]:
        """The names of all groups; valid until the next change."""
        seen = dict.fromkeys(self._active)
        seen.update(dict.fromkeys(self._saved.names()))
        seen.update(dict.fromkeys(self._progress.groups()))
        seen.update(dict.fromkeys(self._held))
        if self._pending is not None:
            seen.update(dict.fromkeys(self._pending.groups()))
        return iter(seen)

    def delete(self, names: Iterable[str]) -> Now[list[ErrorCode]]:
        """Delete groups without members, with their offsets; a code for each."""
        codes, gone = [], []
        for name in names:
            view = self.describe(name)
            if view is None:
                codes.append(ErrorCode.GROUP_ID_NOT_FOUND)
            elif view.state is not GroupState.EMPTY:
                codes.append(ErrorCode.NON_EMPTY_GROUP)
            else:
                codes.append(ErrorCode.NONE)
                gone.append(name)
        if gone:
            deleting = self._progress.delete(gone)
            if deleting is not None:
                return self._delete_after(deleting, gone, codes)
            self._forget(gone)
        return codes

    async def _delete_after(
        self, deleting: Awaitable[None], gone: list[str], codes: list[ErrorCode]
    ) -> list[ErrorCode]:
        await deleting
        # Members that joined in the meantime stay, without the old offsets.
        self._forget([name for name in gone if not self.member_count(name)])
        return codes

    def _forget(self, gone: list[str]) -> None:
        self._saved.remove(gone)
        for name in gone:
            self._retire(name)

    def _has_offsets(self, name: str) -> bool:
        if self._pending is not None and self._pending.has(name):
            return True
        return self._progress.has(name)

    # Other protocols

    def hold(self, name: str, kind: GroupType) -> bool:
        """Reserve a group for members of another protocol; False while it has others."""
        if self._find(name) is not None and self.member_count(name):
            return False
        self._retire(name)
        return self._held.setdefault(name, kind) is kind

    def release(self, name: str, kind: GroupType) -> None:
        """Release a group, which has no members now; offset retention begins."""
        if self._held.get(name) is kind:
            del self._held[name]
            record = self._saved.find(name)
            generation = record.group.generation if record is not None else 0
            self._write(name, SavedGroup(kind.value, generation, ""))

    # State machines

    def _find(self, name: str) -> _Active | None:
        return self._active.get(name)

    def _activate(self, name: str, saved: SavedGroup | None) -> _Active:
        active = self._active[name] = _Active(name, ClassicGroup(self._config, self._new_id))
        if saved is not None:
            self._carry_out(active, active.group.restore(saved, self._now_ms()))
        return active

    def _retire(self, name: str) -> None:
        active = self._active.pop(name, None)
        if active is not None and active.timer is not None:
            active.timer.cancel()

    def _now_ms(self) -> int:
        return int(self.clock.time() * 1000)

    def _ask(self, active: _Active, event: Any, kind: Callable[..., A]) -> A | asyncio.Future[A]:
        waiter: Waiter[A] = event.waiter
        self._happen(active, event)
        return waiter.answer()

    def _happen(self, active: _Active, event: Event) -> None:
        self._carry_out(active, active.group.handle(event, self._now_ms()))
        if active.group.is_idle and self._active.get(active.name) is active:
            self._retire(active.name)

    def _carry_out(self, active: _Active, effects: Sequence[Effect]) -> None:
        replies: list[Reply] = []
        is_saved = False
        arm: Arm | None = None
        for effect in effects:
            if isinstance(effect, Reply):
                replies.append(effect)
            elif isinstance(effect, Arm):
                arm = effect
            else:
                is_saved = True
        if arm is not None:
            self._arm(active, arm.at_ms)
        if is_saved:
            self._write(active.name, saved_of(active.group))
            if replies:
                self._send_when_durable(replies)
                return
        _send(replies)

    def _arm(self, active: _Active, at_ms: int) -> None:
        if active.timer is not None:
            active.timer.cancel()
        # The next millisecond, because a timer may fire slightly early.
        seconds = max(0, at_ms + 1 - self._now_ms()) / 1000
        active.timer = self.clock.call_later(seconds, lambda: self._happen(active, Wake()))

    def _write(self, name: str, saved: SavedGroup) -> None:
        try:
            self._saved.save(name, saved)
        except StoreError as error:
            # The group continues; after a restart its members rejoin.
            self._saves.report(error)
        else:
            self._saves.end()

    def _send_when_durable(self, replies: Sequence[Reply]) -> None:
        outcome = self._durability.after_changes(None)
        if outcome is None:
            _send(replies)
            return

        def flushed(future: asyncio.Future[None]) -> None:
            if future.cancelled() or future.exception() is not None:
                log.warning("group record not flushed; members are notified anyway")
            _send(replies)

        outcome.add_done_callback(flushed)


def new_member_id(prefix: str) -> str:
    """A unique id: the client's id and random digits."""
    return f"{prefix[:PREFIX_CHARS_MAX]}-{uuid.uuid4()}"


def _send(replies: Iterable[Reply]) -> None:
    for waiter, answer in replies:
        cast(Waiter[object], waiter).resolve(answer)


def saved_of(group: ClassicGroup) -> SavedGroup:
    """The saved record of a group."""
    if group.state is not GroupState.STABLE:
        return SavedGroup(CLASSIC, group.generation, group.protocol_type)
    return SavedGroup(
        CLASSIC,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.members.leader,
        tuple(SavedMember.of(member) for member in group.members),
    )
