"""Records of share groups: what is acquired, acknowledged, released, and expires.

docs/internals/groups-share.md specifies it. Every method is one step: what lasts is appended first,
and when that fails nothing has changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from rockgate.gateway.kafka.groups.share.config import SharePolicy
from rockgate.gateway.kafka.share.acknowledgements import Acknowledged, AcknowledgeType
from rockgate.gateway.kafka.share.plan import Plan, Range
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.append import StateAppender
from rockgate.store.api.inflight import (
    SHARE_TOPIC,
    Acquire,
    Drop,
    End,
    EndReason,
    Forget,
    Reset,
    ShareState,
    ShareWindow,
    encode,
)
from rockgate.store.api.problems import DeferralLog
from rockgate.store.api.queues import Queue
from rockgate.store.errors import StoreError

WINDOWS_MAX: Final = 200_000
"""Windows of all groups together: a client may invent group names."""
OFFSETS_MAX: Final = 4_000_000
"""Offsets in flight, of all groups together."""
RUNS_AT_ONCE: Final = 10_000
"""Runs that one step goes through: a few milliseconds, whatever clients have made of them."""
REFUSED_MS: Final = 10_000
_RELEASE: Final = int(AcknowledgeType.RELEASE)
_RENEW: Final = int(AcknowledgeType.RENEW)
"""Plain numbers: they are compared for every range, and looking an enum up takes longer."""
_REASONS: Final[dict[int, EndReason]] = {
    AcknowledgeType.GAP: EndReason.LOST,
    AcknowledgeType.ACCEPT: EndReason.ACKNOWLEDGED,
    AcknowledgeType.REJECT: EndReason.DISCARDED,
}
log = logging.getLogger(__name__)


class Acquired(NamedTuple):
    """Offsets that a member got, with how often they were delivered, this time included."""

    first: int
    last: int
    deliveries: int


class ShareRecords:
    """The records of all share groups."""

    def __init__(
        self,
        *,
        state: ShareState,
        journal: StateAppender,
        policy: Callable[[str], SharePolicy],
        monotonic_ms: Callable[[], int],
        wake: Callable[[bytes, int], None],
    ) -> None:
        """`wake` is called with topic id and queue id when a fetch that waits may get something."""
        self._state = state
        self._journal = journal
        self._policy = policy
        self._monotonic_ms = monotonic_ms
        self._wake = wake
        self._deferrals = DeferralLog(log, "share groups: cannot archive records")
        self._leaving: dict[tuple[str, str], dict[tuple[str, bytes, int], None]] = {}
        """Of members that are gone, by group and id: the windows that they may still hold."""
        self.acquired_count = 0
        self.acknowledged: dict[int, int] = dict.fromkeys(AcknowledgeType, 0)
        """Records that were acknowledged, by what was said of them."""
        self.late_count = 0
        """Records whose lock expired."""
        self.archived_count = 0
        """Records that were delivered as often as the limit says, and not accepted."""

    # Groups

    def has(self, group: str) -> bool:
        """Whether a group has read anything."""
        return self._state.has_group(group)

    def groups(self) -> Iterable[str]:
        """The groups that have."""
        return self._state.groups()

    def drop(self, group: str) -> None:
        """Forget everything of a group."""
        self._journal.append_state(SHARE_TOPIC, encode(Drop(group)))

    def windows(self, group: str) -> list[ShareWindow]:
        """The partitions that a group has read."""
        return self._state.of_group(group)

    # Partitions

    @property
    def in_flight_count(self) -> int:
        """Records that were delivered and are not finished, of all groups."""
        return self._state.count

    @property
    def window_count(self) -> int:
        """Pairs of a group and a partition that it reads."""
        return len(self._state)

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be in flight."""
        return self._state.count >= OFFSETS_MAX

    def find(self, group: str, queue: Queue) -> ShareWindow | None:
        """The window of a group in a partition."""
        return self._state.find(group, queue.topic_id, queue.queue_id)

    def begin(self, group: str, queue: Queue, offset: int) -> ShareWindow | None:
        """Let a group begin at an offset; None if there are too many windows."""
        if len(self._state) >= WINDOWS_MAX:
            return None
        key = group, queue.topic_id, queue.queue_id
        change = encode(Acquire(*key, offset, offset, 0, True, []))
        self._journal.append_state(SHARE_TOPIC, change)
        return self.find(group, queue)

    def move(self, group: str, queue: Queue, offset: int) -> bool:
        """Let a group continue at an offset, with nothing in flight; False if there is no room."""
        if self.find(group, queue) is None and len(self._state) >= WINDOWS_MAX:
            return False
        key = group, queue.topic_id, queue.queue_id
        self._journal.append_state(SHARE_TOPIC, encode(Reset(*key, offset)))
        return True

    def forget(self, group: str, topic_id: bytes, queue_id: int) -> None:
        """Forget where a group is in a partition."""
        self._journal.append_state(SHARE_TOPIC, encode(Forget(group, topic_id, queue_id)))

    def trim(self, window: ShareWindow, queue: Queue, policy: SharePolicy) -> None:
        """Finish what retention took, and what was delivered too often and is not held."""
        log_start, now_ms = queue.log_start, self._monotonic_ms()
        changes = []
        lost = [(run.first, min(run.end, log_start)) for run in window.within(0, log_start)]
        if lost:
            changes.append(_end(window, EndReason.LOST, lost))
        tired = [
            (max(run.first, log_start), run.end)
            for run in window.available(now_ms)
            if run.deliveries >= policy.deliveries_max and run.end > log_start
        ]
        if tired:
            changes.append(_end(window, EndReason.DISCARDED, tired))
        if window.end < log_start:
            change = Acquire(*window.key, log_start, log_start, 0, True, [])
            changes.append((SHARE_TOPIC, encode(change)))
        if changes:
            self._journal.append_states(changes)
            self.archived_count += _count(tired)

    # Acquiring

    def acquire(self, window: ShareWindow, member_id: str, plan: Plan) -> list[Acquired]:
        """Acquire what was planned; when this returns, that is in the log."""
        changes = []
        if plan.gone:
            changes.append(_end(window, EndReason.LOST, plan.gone))
        if plan.taken or plan.end > window.end:
            first = plan.taken[0][0] if plan.taken else window.end
            change = Acquire(*window.key, first, plan.end, 0, True, _runs(plan.taken))
            changes.append((SHARE_TOPIC, encode(change)))
        if changes:
            self._journal.append_states(changes)
        deadline_ms = self._monotonic_ms() + self._policy(window.key[0]).lock_ms
        acquired: list[Acquired] = []
        for first, end, run in window.parts(plan.taken):
            self._append(acquired, first, end, run.deliveries)
        window.lock_all(plan.taken, member_id, deadline_ms)
        if plan.taken:
            self._state.look_at(window, deadline_ms)
            self.acquired_count += plan.count
        return acquired

    @staticmethod
    def _append(acquired: list[Acquired], first: int, end: int, deliveries: int) -> None:
        if acquired and (acquired[-1].last + 1, acquired[-1].deliveries) == (first, deliveries):
            first = acquired.pop().first
        acquired.append(Acquired(first, end - 1, deliveries))

    # Acknowledging

    def acknowledge(
        self, window: ShareWindow, member_id: str, ranges: Sequence[Acknowledged]
    ) -> ErrorCode:
        """Take all of a member's acknowledgements for a partition, or with an error none."""
        self.settle(window, member_id)
        now_ms, start = self._monotonic_ms(), window.start
        policy = self._policy(window.key[0])
        ended: dict[EndReason, list[Range]] = {}
        released: list[Range] = []
        renewed: list[Range] = []
        code = self._check(window, member_id, ranges, policy)
        if code:
            return code
        counts: dict[int, int] = dict.fromkeys(AcknowledgeType, 0)
        for first, end, type_ in ranges:
            # What is before the start is finished, whoever had it.
            if first < start:
                if end <= start:
                    continue
                first = start
            counts[type_] += end - first
            if type_ == _RENEW:
                renewed.append((first, end))
            elif type_ == _RELEASE:
                released.append((first, end))
            else:
                ended.setdefault(_REASONS[type_], []).append((first, end))
        is_full = len(window) >= policy.locks_max
        self._finish(window, ended, released, policy)
        if renewed:
            window.lock_all(renewed, member_id, now_ms + policy.lock_ms)
            self._state.look_at(window, now_ms + policy.lock_ms)
        for type_, count in counts.items():
            self.acknowledged[type_] += count
        if released or (is_full and ended):
            self._wake(*window.key[1:])
        return ErrorCode.NONE

    def _check(
        self,
        window: ShareWindow,
        member_id: str,
        ranges: Sequence[Acknowledged],
        policy: SharePolicy,
    ) -> ErrorCode:
        """Why acknowledgements cannot be taken, by the first of them that cannot."""
        start, code = window.start, ErrorCode.NONE
        held: list[Range] = []
        for first, end, type_ in ranges:
            if end <= start:
                continue
            if end > window.end:
                is_empty = window.end == start
                code = ErrorCode.INVALID_RECORD_STATE if is_empty else ErrorCode.INVALID_REQUEST
                break
            if type_ == _RENEW and not policy.may_renew:
                code = ErrorCode.INVALID_RECORD_STATE
                break
            held.append((first if first > start else start, end))
        is_held = window.is_held_by(member_id, held, self._monotonic_ms())
        return code if is_held else ErrorCode.INVALID_RECORD_STATE

    def _finish(
        self,
        window: ShareWindow,
        ended: dict[EndReason, list[Range]],
        released: Sequence[Range],
        policy: SharePolicy,
    ) -> None:
        """End offsets, and give others back, which ends those that were delivered too often."""
        tired: list[Range] = []
        rest: list[Range] = []
        for first, end, run in window.parts(released):
            (tired if run.deliveries >= policy.deliveries_max else rest).append((first, end))
        if tired:
            ended.setdefault(EndReason.DISCARDED, []).extend(tired)
        if ended:
            changes = [_end(window, reason, sorted(some)) for reason, some in ended.items()]
            self._journal.append_states(changes)
            self.archived_count += _count(tired)
        window.lock_all(rest, None, 0)

    # Members that are gone

    def release(self, group: str, member_id: str) -> None:
        """Give back what a member holds, because its session is closed or it has left.

        What takes long is done by `expire`.
        """
        keys = dict.fromkeys(window.key for window in self._state.of_group(group))
        if keys:
            self._leaving[group, member_id] = keys
            self._release_some(RUNS_AT_ONCE)

    def settle(self, window: ShareWindow, member_id: str) -> None:
        """Give back at once what a member held of a partition before it came again."""
        keys = self._leaving.get((window.key[0], member_id))
        if keys is not None and window.key in keys:
            del keys[window.key]
            self._give_back(window, member_id)

    def _release_some(self, left: int) -> int:
        """Release at most `left` runs; return how many of them remain."""
        while self._leaving and left > 0:
            (group, member_id), keys = next(iter(self._leaving.items()))
            while keys and left > 0:
                key, _ = keys.popitem()
                window = self._state.find(*key)
                if window is not None:
                    left -= 1 + window.run_count
                    self._give_back(window, member_id)
            if not keys:
                del self._leaving[group, member_id]
        return left

    def _give_back(self, window: ShareWindow, member_id: str) -> None:
        held = [(run.first, run.end) for run in window.held_by(member_id, self._monotonic_ms())]
        if held:
            try:
                self._finish(window, {}, held, self._policy(window.key[0]))
            except StoreError as error:
                # They expire, and are ended then.
                self._deferrals.report(error)
            self._wake(*window.key[1:])

    # Upkeep

    def expire(self) -> bool:
        """Give back what was held for too long, or by who is gone; return whether there is more."""
        now_ms = self._monotonic_ms()
        left = self._release_some(RUNS_AT_ONCE)
        while left > 0 and (due := self._state.due(now_ms, 1)):
            (window,) = due
            left -= 1 + window.run_count
            self._expire(window, now_ms)
        due_ms = self._state.next_due_ms
        return bool(self._leaving) or (due_ms is not None and due_ms <= now_ms)

    def _expire(self, window: ShareWindow, now_ms: int) -> None:
        late = [(run.first, run.end) for run in window.expired(now_ms)]
        if not late:
            return
        try:
            self._finish(window, {}, late, self._policy(window.key[0]))
            self._deferrals.end()
            self.late_count += _count(late)
        except StoreError as error:
            self._deferrals.report(error)
            self._state.look_at(window, now_ms + REFUSED_MS)
        self._wake(*window.key[1:])


def _end(window: ShareWindow, reason: EndReason, ranges: Iterable[Range]) -> tuple[bytes, bytes]:
    return SHARE_TOPIC, encode(End(*window.key, reason, _runs(ranges)))


def _runs(ranges: Iterable[Range]) -> list[int]:
    """Ranges as runs: first, count, first, count."""
    runs: list[int] = []
    for first, end in ranges:
        if runs and runs[-2] + runs[-1] == first:
            runs[-1] += end - first
        else:
            runs += (first, end - first)
    return runs


def _count(ranges: Iterable[Range]) -> int:
    return sum(end - first for first, end in ranges)
