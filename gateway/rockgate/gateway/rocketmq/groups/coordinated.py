"""Groups of which only those are served whose slot this gateway holds.

All others are NOT_COORDINATOR, so that their members look for the coordinator again. When a slot
is lost its groups are given up: whoever waits is answered, and members join again elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol, cast

from rockgate.gateway.kafka.groups.classic.events import (
    Commit,
    Join,
    Joined,
    Leave,
    Left,
    MemberHeartbeat,
    Sync,
    Synced,
)
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.consumer.member import TopicId
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.view import GroupView
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode

_ELSEWHERE = ErrorCode.NOT_COORDINATOR
HASTE_MS = 500
"""The first rebalance of a group whose slot is new here: its members come from elsewhere, soon."""


class HeldSlots(Protocol):
    """Which groups are coordinated here."""

    def is_held(self, name: str) -> bool:
        """Whether a group is coordinated here now."""
        ...

    def is_new(self, name: str) -> bool:
        """Whether it has been coordinated here for a short time only."""
        ...


class OtherMembers(Protocol):
    """Whether groups have members of another protocol."""

    def known(self, group: str) -> bool | None:
        """Whether a group has any; None if that has to be asked."""
        ...

    async def ask(self, group: str) -> bool:
        """Whether a group has any."""
        ...


class CoordinatedGroups(Groups):
    """The groups of this gateway's slots."""

    def __init__(
        self,
        slots: HeldSlots,
        slot_of: Callable[[str], int],
        others: OtherMembers | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings, config_of=self._config_of)
        self._elsewhere = others
        self._slots = slots
        self._slot_of = slot_of

    def give_up(self, slots: Collection[int]) -> None:
        """Give up all groups of some slots."""
        self.resign([name for name in super().names() if self._slot_of(name) in slots])

    # Requests of clients

    def join(self, name: str, join: Join) -> Joined | asyncio.Future[Joined]:
        """Join a group, or its next generation."""
        if name and not self._slots.is_held(name):
            return Joined(_ELSEWHERE, join.member_id)
        if name and self._elsewhere is not None:
            found = self._elsewhere.known(name)
            if found is None:
                task = asyncio.get_running_loop().create_task(self._ask_and_join(name, join))
                return cast("asyncio.Future[Joined]", task)
            if found:
                return Joined(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, join.member_id)
        return super().join(name, join)

    async def _ask_and_join(self, name: str, join: Join) -> Joined:
        """Join when it is known that a group has no members on RocketMQ's side."""
        assert self._elsewhere is not None
        await self._elsewhere.ask(name)
        joined = self.join(name, join)
        return await joined if isinstance(joined, asyncio.Future) else joined

    def sync(self, name: str, sync: Sync) -> Synced | asyncio.Future[Synced]:
        """Get an assignment, or set all of them."""
        if name and not self._slots.is_held(name):
            return Synced(_ELSEWHERE)
        return super().sync(name, sync)

    def heartbeat(self, name: str, beat: MemberHeartbeat) -> ErrorCode:
        """Handle a heartbeat of a member."""
        if name and not self._slots.is_held(name):
            return _ELSEWHERE
        return super().heartbeat(name, beat)

    def leave(self, name: str, leave: Leave) -> Left | asyncio.Future[Left]:
        """Remove members."""
        if name and not self._slots.is_held(name):
            return [_ELSEWHERE] * len(leave.leavers)
        return super().leave(name, leave)

    def check_commit(
        self,
        name: str,
        commit: Commit,
        partitions: Callable[[], Iterable[tuple[TopicId, int]]] | None = None,
    ) -> ErrorCode:
        """Return whether these offsets may be committed."""
        if name and not self._slots.is_held(name):
            return _ELSEWHERE
        return super().check_commit(name, commit, partitions)

    def _config_of(self, name: str) -> GroupsConfig:
        if not self._slots.is_new(name):
            return self._config
        delay_ms = min(HASTE_MS, self._config.initial_delay_ms)
        return replace(self._config, initial_delay_ms=delay_ms)

    # Requests of administrators

    def describe(self, name: str) -> GroupView | None:
        """Describe a group; None if it does not exist, NOT_COORDINATOR if it is elsewhere."""
        if name and not self._slots.is_held(name):
            raise RequestError(_ELSEWHERE, f"Group '{name}' is coordinated by another gateway.")
        return super().describe(name)

    def names(self) -> Iterator[str]:
        """The names of the groups that are coordinated here."""
        return (name for name in super().names() if self._slots.is_held(name))
