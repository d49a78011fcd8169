"""The machines of classic groups: their timers, their records, and the answers to who waits.

One timer of the loop serves all deadlines of a group. What a machine wants written is written
before any client sees its effect; on a server that flushes before it answers, also flushed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from rockgate.gateway.kafka.groups.classic.events import (
    Arm,
    Effect,
    Event,
    Finish,
    Joined,
    Reply,
    Save,
    Synced,
    Unsaved,
    Wake,
)
from rockgate.gateway.kafka.groups.classic.group import ClassicGroup
from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.classic.memory import GroupMemory, saved_of
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.waiters import Waiter
from rockgate.gateway.kafka.request.errors import code_of, coordinator_code
from rockgate.gateway.kafka.request.now import Durable
from rockgate.gateway.net.clock import Clock, Timer
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.problems import DeferralLog
from rockgate.store.errors import StoreError

A = TypeVar("A")
log = logging.getLogger(__name__)


class _Active:
    """A group with a state machine."""

    __slots__ = ("group", "name", "timer")

    def __init__(self, name: str, group: ClassicGroup) -> None:
        self.name = name
        self.group = group
        self.timer: Timer | None = None


class ClassicMachines:
    """The classic groups that have members, or joining ones."""

    def __init__(
        self,
        *,
        config_of: Callable[[str], GroupsConfig],
        saved: GroupMemory,
        durability: Durable,
        new_id: Callable[[str], str],
        clock: Callable[[], Clock],
    ) -> None:
        self._config_of = config_of
        self._saved = saved
        self._saves = DeferralLog(log, "group records")
        self._durability = durability
        self._new_id = new_id
        self._clock = clock
        self._active: dict[str, _Active] = {}

    def __len__(self) -> int:
        return len(self._active)

    def __contains__(self, name: str) -> bool:
        return name in self._active

    def __iter__(self) -> Iterator[str]:
        return iter(self._active)

    def find(self, name: str) -> ClassicGroup | None:
        """The machine of a group, or None."""
        active = self._active.get(name)
        return None if active is None else active.group

    def activate(
        self, name: str, saved: SavedGroup | None, *, is_changed: bool = False
    ) -> ClassicGroup:
        """Begin a machine; one that has changed since it was saved rebalances."""
        active = self._active[name] = _Active(
            name, ClassicGroup(self._config_of(name), self._new_id)
        )
        if saved is not None:
            effects = active.group.restore(saved, self._now_ms(), is_changed=is_changed)
            self._carry_out(active, effects)
        return active.group

    def retire(self, name: str) -> None:
        """Drop a machine."""
        active = self._active.pop(name, None)
        if active is not None and active.timer is not None:
            active.timer.cancel()

    def dismiss(self, name: str, code: ErrorCode) -> None:
        """Drop a machine, and tell those who wait why."""
        active = self._active[name]
        self._carry_out(active, active.group.handle(Finish(code), self._now_ms()))
        self.retire(name)

    def finish(self) -> None:
        """Answer every waiter: the server stops."""
        for active in list(self._active.values()):
            self._happen(active, Finish())
            if active.timer is not None:
                active.timer.cancel()

    def ask(self, name: str, event: Any, kind: Callable[..., A]) -> A | asyncio.Future[A]:
        """The answer of a group to an event, now or later."""
        waiter: Waiter[A] = event.waiter
        self._happen(self._active[name], event)
        return waiter.answer()

    def save(self, name: str, saved: SavedGroup) -> ErrorCode:
        """Save the state of a group; returns why it could not be."""
        try:
            self._saved.save(name, saved)
        except StoreError as error:
            self._saves.report(error)
            return coordinator_code(code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR)
        self._saves.end()
        return ErrorCode.NONE

    def _now_ms(self) -> int:
        return int(self._clock().time() * 1000)

    def _happen(self, active: _Active, event: Event) -> None:
        self._carry_out(active, active.group.handle(event, self._now_ms()))
        if active.group.is_idle and self._active.get(active.name) is active:
            self.retire(active.name)

    def _carry_out(self, active: _Active, effects: Sequence[Effect]) -> None:
        replies: list[Reply] = []
        save: Save | None = None
        arm: Arm | None = None
        for effect in effects:
            if isinstance(effect, Reply):
                replies.append(effect)
            elif isinstance(effect, Arm):
                arm = effect
            else:
                save = effect
        if arm is not None:
            self._arm(active, arm.at_ms)
        if save is not None:
            if code := self.save(active.name, saved_of(active.group)):
                # The next start restores what was saved before, so clients must not learn of this.
                if save.former is not None:
                    unsaved = active.group.handle(Unsaved(save.former), self._now_ms())
                    self._carry_out(active, unsaved)
                _send(_refused(reply, code) for reply in replies)
                return
            if replies:
                self._send_when_durable(replies)
                return
        _send(replies)

    def _arm(self, active: _Active, at_ms: int) -> None:
        if active.timer is not None:
            active.timer.cancel()
        # The next millisecond, because a timer may fire slightly early.
        seconds = max(0, at_ms + 1 - self._now_ms()) / 1000
        active.timer = self._clock().call_later(seconds, lambda: self._happen(active, Wake()))

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


def _refused(reply: Reply, code: ErrorCode) -> Reply:
    """The reply to a client that would have learned what could not be saved."""
    answer = reply.answer
    if isinstance(answer, Joined) and not answer.code:
        # The client has no other id than before.
        return Reply(reply.waiter, Joined(code, ""))
    if isinstance(answer, Synced) and not answer.code:
        return Reply(reply.waiter, Synced(code))
    return reply


def _send(replies: Iterable[Reply]) -> None:
    for waiter, answer in replies:
        cast(Waiter[object], waiter).resolve(answer)
