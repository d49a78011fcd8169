"""All groups: the state machines of those with members, the saved state of the others.

A group has a kind. Classic ones have a machine here, and only while they have members or expect
some; a group without either is what the fold and the store's progress know of it. Those with
members of the consumer protocol are `consumers`, which serves their classic members too; those of
further protocols are `others`, one coordinator for each. A group that another part of the server
has members in (RocketMQ's) is held by its kind: clients of Kafka cannot join it meanwhile, and that
part cannot hold it while it has other members.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar, cast

from rockgate.gateway.groups.ownership import GroupType
from rockgate.gateway.kafka.groups.classic.events import (
    Commit,
    GroupState,
    Join,
    Joined,
    Leave,
    Left,
    MemberHeartbeat,
    Sync,
    Synced,
)
from rockgate.gateway.kafka.groups.classic.group import ClassicGroup
from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.classic.machines import ClassicMachines
from rockgate.gateway.kafka.groups.classic.memory import GroupMemory
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.consumer.coordinator import ConsumerGroups
from rockgate.gateway.kafka.groups.consumer.member import TopicId
from rockgate.gateway.kafka.groups.other_kinds import KINDS, OtherGroups, OtherKinds
from rockgate.gateway.kafka.groups.progress import GroupProgress, TransactionalOffsets
from rockgate.gateway.kafka.groups.subscription import CONSUMER
from rockgate.gateway.kafka.groups.view import GroupView
from rockgate.gateway.kafka.request.now import Durable, Now
from rockgate.gateway.net.clock import Clock
from rockgate.protocol.kafka.errors import ErrorCode

A = TypeVar("A")
PREFIX_CHARS_MAX = 200
_NONE = ErrorCode.NONE
_UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


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
        consumers: ConsumerGroups | None = None,
        config_of: Callable[[str], GroupsConfig] | None = None,
        others: Sequence[OtherGroups] = (),
    ) -> None:
        """`config_of` are the settings of a group that gets its first member, if they differ."""
        self._config = config
        self._saved = saved
        self._machines = ClassicMachines(
            config_of=config_of or (lambda name: config),
            saved=saved,
            durability=durability,
            new_id=new_id,
            clock=lambda: self.clock,
        )
        self._progress = progress
        self._durability = durability
        self._clock = clock
        self._pending = pending
        self._held: dict[str, GroupType] = {}
        self._is_finishing = False
        self._others = OtherKinds(others)
        self._others.attach(self)
        self.consumers = consumers
        if consumers is not None:
            consumers.classic = self

    @property
    def clock(self) -> Clock:
        """The clock of timeouts: the running loop's, unless a test has its own."""
        return self._clock or asyncio.get_running_loop()

    @property
    def active_count(self) -> int:
        """Groups with members, or with joining ones."""
        return len(self._machines) + len(self.consumers or ()) + len(self._others)

    def load(self) -> None:
        """Restore the members that groups had when the server stopped."""
        if self.consumers is not None:
            self.consumers.load()
        self._others.load()
        for name in list(self._saved.names()):
            record = self._saved.find(name)
            if record is not None and record.group.members and not self._is_modern(name):
                self._machines.activate(name, record.group)

    def finish(self) -> None:
        """Answer every waiter: the server stops, and no request may wait from now on."""
        self._is_finishing = True
        if self.consumers is not None:
            self.consumers.finish()
        self._others.finish()
        self._machines.finish()

    def resign(self, names: Iterable[str]) -> None:
        """Give groups up: another node coordinates them, and nothing of them is known here."""
        for name in names:
            if name in self._machines:
                self._machines.dismiss(name, ErrorCode.NOT_COORDINATOR)
            self._held.pop(name, None)
        self._saved.remove(names)

    # Requests of clients

    def join(self, name: str, join: Join) -> Joined | asyncio.Future[Joined]:
        """Join a group, or its next generation."""
        code = self._check_join(name, join)
        if code:
            return Joined(code, join.member_id)
        if (consumers := self._consumers(name)) is not None:
            return self._durability.after_changes(consumers.join(name, join))
        group = self._machines.find(name)
        if group is None:
            if join.member_id:
                return Joined(_UNKNOWN, join.member_id)
            if not self.has_room:
                return Joined(ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
            record = self._saved.find(name)
            if record is not None and record.group.kind in KINDS:
                self._others.forget([name])
            self._machines.activate(name, record.group if record is not None else None)
        return self._machines.ask(name, join, Joined)

    def _check_join(self, name: str, join: Join) -> ErrorCode:
        if self._is_finishing:
            return ErrorCode.NOT_COORDINATOR
        if not name:
            return ErrorCode.INVALID_GROUP_ID
        if not self._config.session_ms_min <= join.session_ms <= self._config.session_ms_max:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if name in self._held or self._others.find(name) is not None:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def sync(self, name: str, sync: Sync) -> Synced | asyncio.Future[Synced]:
        """Get an assignment, or set all of them."""
        group = self._machines.find(name)
        if self._is_finishing:
            return Synced(ErrorCode.NOT_COORDINATOR)
        if (consumers := self._consumers(name)) is not None:
            return consumers.sync(name, sync)
        if group is None:
            return Synced(_UNKNOWN if name else ErrorCode.INVALID_GROUP_ID)
        return self._machines.ask(name, sync, Synced)

    def heartbeat(self, name: str, beat: MemberHeartbeat) -> ErrorCode:
        """Handle a heartbeat of a member."""
        if (consumers := self._consumers(name)) is not None:
            return consumers.heartbeat(name, beat)
        group = self._machines.find(name)
        if group is None:
            return _UNKNOWN if name else ErrorCode.INVALID_GROUP_ID
        return cast(ErrorCode, self._machines.ask(name, beat, ErrorCode))

    def leave(self, name: str, leave: Leave) -> Left | asyncio.Future[Left]:
        """Remove members."""
        if (consumers := self._consumers(name)) is not None:
            return self._durability.after_changes(consumers.leave(name, leave))
        group = self._machines.find(name)
        if group is None:
            code = _UNKNOWN if name else ErrorCode.INVALID_GROUP_ID
            return [code] * len(leave.leavers)
        return self._machines.ask(name, leave, list)

    def check_commit(
        self,
        name: str,
        commit: Commit,
        partitions: Callable[[], Iterable[tuple[TopicId, int]]] | None = None,
    ) -> ErrorCode:
        """Return whether offsets may be committed, of these partitions if that matters."""
        if (consumers := self._consumers(name)) is not None:
            return consumers.check_commit(name, commit, partitions)
        if (other := self._others.find(name)) is not None:
            return other.check_commit(name, commit, partitions)
        group = self._machines.find(name)
        if group is not None:
            return cast(ErrorCode, self._machines.ask(name, commit, ErrorCode))
        if commit.generation < 0:
            return _UNKNOWN if name in self._held else ErrorCode.NONE
        # A group without members has no generation.
        return ErrorCode.ILLEGAL_GENERATION if self.describe(name) is None else _UNKNOWN

    def check_fetch(self, name: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Return whether offsets may be fetched by who says to be a member."""
        checker = self._consumers(name) or self._others.find(name)
        return _NONE if checker is None else checker.check_fetch(name, member_id, epoch)

    def may_commit_from_outside(self, name: str) -> bool:
        """Whether a client outside the group may commit offsets: while it has no members."""
        return self.member_count(name) == 0

    def has_others(self, name: str, kind: GroupType) -> bool:
        """Whether a group has members of another kind than this."""
        if name in self._held:
            return self._held[name] is not kind
        if self._is_consumer(name):
            return kind is not GroupType.CONSUMER
        if (other := self._others.find(name)) is not None:
            return kind is not other.kind
        group = self._machines.find(name)
        return group is not None and len(group.members) > 0

    # Requests of administrators

    def describe(self, name: str) -> GroupView | None:
        """Describe a group; None if it does not exist."""
        group = self._machines.find(name)
        if group is not None:
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
        modern = None if self.consumers is None else self.consumers.find(name)
        if modern is not None:
            state, read = modern.state, modern.subscribed
            return GroupView(GroupType.CONSUMER, state, CONSUMER, "", (), read)
        if (other := self._others.find(name)) is not None:
            return other.view(name)
        record = self._saved.find(name)
        if record is None and not self._has_offsets(name):
            return None
        saved = SavedGroup("", 0, "") if record is None else record.group
        kind = KINDS.get(saved.kind, GroupType.CLASSIC)
        return GroupView(kind, GroupState.EMPTY, saved.protocol_type, "", ())

    def is_active(self, name: str) -> bool:
        """Whether a group has members, or joining ones."""
        return name in self._machines or name in self._held or self._is_modern(name)

    def member_count(self, name: str) -> int:
        """The number of members of a group; those of RocketMQ count as one."""
        if self.consumers is not None and (modern := self.consumers.find(name)) is not None:
            return len(modern.members)
        if (other := self._others.find(name)) is not None:
            return other.member_count(name)
        group = self._machines.find(name)
        return len(group.members) if group is not None else int(name in self._held)

    def names(self) -> Iterator[str]:
        """The names of all groups; valid until the next change."""
        seen = dict.fromkeys(self._machines)
        seen.update(dict.fromkeys(self._saved.names()))
        seen.update(dict.fromkeys(self._progress.groups()))
        seen.update(dict.fromkeys(self._held))
        if self.consumers is not None:
            seen.update(dict.fromkeys(self.consumers.names()))
        seen.update(dict.fromkeys(self._others.names()))
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
            self.forget(gone)
        return codes

    async def _delete_after(
        self, deleting: Awaitable[None], gone: list[str], codes: list[ErrorCode]
    ) -> list[ErrorCode]:
        await deleting
        # Members that joined in the meantime stay, without the old offsets.
        self.forget([name for name in gone if not self.member_count(name)])
        return codes

    def forget(self, gone: list[str]) -> None:
        """Drop the records of groups without members."""
        self._others.forget(gone)
        self._saved.remove(gone)
        for name in gone:
            self._machines.retire(name)

    def _has_offsets(self, name: str) -> bool:
        if self._pending is not None and self._pending.has(name):
            return True
        return self._progress.has(name)

    # Other protocols

    def hold(self, name: str, kind: GroupType) -> bool:
        """Reserve a group for members of another protocol; False while it has others."""
        if name not in self._held and (self.member_count(name) or self._others.find(name)):
            return False
        self._machines.retire(name)
        return self._held.setdefault(name, kind) is kind

    def release(self, name: str, kind: GroupType) -> None:
        """Release a group, which has no members now; offset retention begins."""
        if self._held.get(name) is kind:
            del self._held[name]
            self.save(name, SavedGroup(kind.value, self.last_generation(name), ""))

    # The consumer protocol

    def _consumers(self, name: str) -> ConsumerGroups | None:
        """Who serves a group that has members of the consumer protocol."""
        consumers = self.consumers
        return consumers if consumers is not None and name in consumers else None

    def _is_consumer(self, name: str) -> bool:
        return self.consumers is not None and name in self.consumers

    def _is_modern(self, name: str) -> bool:
        return self._is_consumer(name) or self._others.find(name) is not None

    @property
    def has_room(self) -> bool:
        """Whether another group may have members."""
        return self.active_count < self._config.groups_max

    def holder(self, name: str) -> GroupType | None:
        """Who has a group to itself, with members or, of a modern protocol, without."""
        if name in self._held:
            return self._held[name]
        if self._is_consumer(name):
            return GroupType.CONSUMER
        if (other := self._others.find(name)) is not None:
            return other.kind
        if name in self._machines:
            return None
        record = self._saved.find(name)
        return None if record is None else KINDS.get(record.group.kind)

    def classic(self, name: str) -> ClassicGroup | None:
        """The machine of a classic group."""
        return self._machines.find(name)

    def last_generation(self, name: str) -> int:
        """The generation that a group without members had."""
        record = self._saved.find(name)
        return 0 if record is None else record.group.generation

    def hand_over(self, name: str) -> None:
        """Drop the machine of a group, and tell those who wait to join again."""
        self._machines.dismiss(name, ErrorCode.REBALANCE_IN_PROGRESS)

    def save(self, name: str, saved: SavedGroup) -> None:
        """Save the state of a group."""
        self._machines.save(name, saved)

    def adopt(self, name: str, saved: SavedGroup, *, is_changed: bool) -> None:
        """Take over a group as a classic one, which rebalances if it has changed."""
        self._machines.activate(name, saved, is_changed=is_changed)


def new_member_id(prefix: str) -> str:
    """A unique id: the client's id and random digits."""
    return f"{prefix[:PREFIX_CHARS_MAX]}-{uuid.uuid4()}"
