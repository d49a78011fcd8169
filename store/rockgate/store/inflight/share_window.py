"""The offsets that one share group has in flight in one queue, as runs.

docs/internals/groups-share.md has the state table. What lasts is which offsets are not finished and
how often each was delivered. Who holds an offset, and until when, is known in memory only: a lock
ends with the process that gave it.

A run is made by one acquisition, however many records it has, and is cut where a part of it is
treated differently. Neighbours that are alike become one again, so there are never more runs than
differences.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

from rockgate.store.inflight.changes import Acquire, Extend
from rockgate.store.inflight.tracked import Key, Tracked

SHARE_IN_FLIGHT_MAX: Final = 10_000
"""Maximum number of offsets per window: the largest `group.share.max.partition.max.record.locks`
that Kafka accepts."""
SHARE_DELIVERIES_MAX: Final = 0x7FFF
FEW: Final = 8
"""Up to this many ranges are found one by one; for more, all runs are visited once."""
_RUN: Final = struct.Struct(">qIH")
_NOWHERE: Final = (1 << 63, 1 << 63)
Range: TypeAlias = tuple[int, int]
"""From the first offset to before the second."""


class Run:
    """Offsets with the same history: from `first` to before `end`."""

    __slots__ = ("deadline_ms", "deliveries", "end", "first", "holder")

    def __init__(
        self, first: int, end: int, deliveries: int, holder: str | None, deadline_ms: int
    ) -> None:
        self.first = first
        self.end = end
        self.deliveries = deliveries
        self.holder = holder
        """The member that acquired them; None if none holds them. In memory only."""
        self.deadline_ms = deadline_ms
        """Until when, by the monotonic clock. In memory only."""

    def is_held(self, now_ms: int) -> bool:
        """Say whether a member holds them."""
        return self.holder is not None and self.deadline_ms > now_ms

    def is_like(self, other: Run) -> bool:
        """Say whether another run has the same history."""
        return (
            self.deliveries == other.deliveries
            and self.holder == other.holder
            and self.deadline_ms == other.deadline_ms
        )


_FIRST: Final = attrgetter("first")


class ShareWindow(Tracked):
    """The offsets in flight, as runs in ascending order, and where the rest of the queue starts."""

    __slots__ = ("_count", "_runs")

    def __init__(self, key: Key, end: int, position: int) -> None:
        super().__init__(key, end, position)
        self._runs: list[Run] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def start(self) -> int:
        """Everything before this offset is finished."""
        return self._runs[0].first if self._runs else self.end

    @property
    def run_count(self) -> int:
        """How many runs there are."""
        return len(self._runs)

    def runs(self) -> Iterator[Run]:
        """Yield all runs; consume it before the next change."""
        return iter(self._runs)

    def available(self, now_ms: int) -> list[Run]:
        """Return the runs that no member holds."""
        return [run for run in self._runs if not run.is_held(now_ms)]

    def expired(self, now_ms: int) -> list[Run]:
        """Return the runs that a member held for too long."""
        return [run for run in self._runs if run.holder is not None and run.deadline_ms <= now_ms]

    def held_by(self, holder: str, now_ms: int) -> list[Run]:
        """Return the runs that a member holds."""
        return [run for run in self._runs if run.holder == holder and run.is_held(now_ms)]

    def within(self, first: int, end: int) -> list[Run]:
        """Return the runs that have offsets of a range."""
        low = bisect_right(self._runs, first, key=_FIRST)
        if low and self._runs[low - 1].end > first:
            low -= 1
        return self._runs[low : bisect_left(self._runs, end, lo=low, key=_FIRST)]

    def parts(self, ranges: Sequence[Range]) -> Iterator[tuple[int, int, Run]]:
        """Yield what is in flight of ascending ranges, as parts of one run each."""
        runs, count = self._runs, len(self._runs)
        at = bisect_right(runs, ranges[0][0], key=_FIRST) - 1 if ranges else 0
        at = max(at, 0)
        for first, end in ranges:
            while at < count and runs[at].end <= first:
                at += 1
            while at < count and (run := runs[at]).first < end:
                yield (
                    run.first if run.first > first else first,
                    run.end if run.end < end else end,
                    run,
                )
                if run.end > end:
                    break
                at += 1

    def is_held_by(self, holder: str, ranges: Sequence[Range], now_ms: int) -> bool:
        """Say whether a member holds every offset of ascending ranges."""
        held = 0
        for first, end, run in self.parts(ranges):
            if run.holder != holder or run.deadline_ms <= now_ms:
                return False
            held += end - first
        return held == sum(end - first for first, end in ranges)

    def next_deadline(self, after_ms: int = -1) -> int | None:
        """Return the earliest deadline after a time; None without any."""
        return min(
            (
                run.deadline_ms
                for run in self._runs
                if run.holder is not None and run.deadline_ms > after_ms
            ),
            default=None,
        )

    # Locks: in memory only

    def lock(self, first: int, end: int, holder: str | None, deadline_ms: int) -> None:
        """Let a member hold the offsets of a range that are in flight, or none."""
        low, high = self._cut(first), self._cut(end)
        for run in self._runs[low:high]:
            run.holder, run.deadline_ms = holder, deadline_ms
        self._join(low, high)

    def lock_all(self, ranges: Sequence[Range], holder: str | None, deadline_ms: int) -> None:
        """Do the same for many ranges, in ascending order, in one pass over the runs."""
        if len(ranges) <= FEW:
            for first, end in ranges:
                self.lock(first, end, holder, deadline_ms)
            return

        def change(run: Run) -> bool:
            run.holder, run.deadline_ms = holder, deadline_ms
            return True

        self._sweep(ranges, change)

    # Changes: only the fold makes them

    def acquired(self, change: Acquire) -> None:
        """Put offsets in flight, or deliver some again."""
        for first, count in _pairs(change.runs):
            self._acquire(first, first + count)
        self.end = max(self.end, change.end)

    def _acquire(self, first: int, end: int) -> None:
        low, high = self._cut(first), self._cut(end)
        made: list[Run] = []
        at = first
        for run in self._runs[low:high]:
            if run.first > at:
                made.append(Run(at, run.first, 1, None, 0))
            run.deliveries = min(run.deliveries + 1, SHARE_DELIVERIES_MAX)
            run.holder, run.deadline_ms = None, 0
            made.append(run)
            at = run.end
        if at < end:
            made.append(Run(at, end, 1, None, 0))
        self._count += (end - first) - sum(r.end - r.first for r in self._runs[low:high])
        self._runs[low:high] = made
        self._join(low, low + len(made))

    def extended(self, change: Extend) -> None:
        """Nothing: the locks of a share group are not in the log."""

    def ended(self, runs: Sequence[int]) -> None:
        """Remove runs of offsets."""
        if len(runs) > 2 * FEW:
            ranges = sorted((first, first + count) for first, count in _pairs(runs))
            self._sweep(ranges, lambda run: False)
            self._count = sum(run.end - run.first for run in self._runs)
            return
        for first, count in _pairs(runs):
            low, high = self._cut(first), self._cut(first + count)
            self._count -= sum(run.end - run.first for run in self._runs[low:high])
            del self._runs[low:high]

    def shift(self, by_ms: int) -> None:
        """Nothing: the locks of a share group are by the monotonic clock."""

    def reset(self, offset: int) -> None:
        """Start at another offset, with nothing in flight."""
        self._runs = []
        self._count = 0
        self.end = offset

    # Runs

    def _cut(self, at: int) -> int:
        """Let a run begin at an offset, if one has it; return the index of the first from it on."""
        runs = self._runs
        index = bisect_left(runs, at, key=_FIRST)
        if index and runs[index - 1].end > at:
            cut = runs[index - 1]
            rest = Run(at, cut.end, cut.deliveries, cut.holder, cut.deadline_ms)
            runs.insert(index, rest)
            cut.end = at
        return index

    def _sweep(self, ranges: Sequence[Range], change: Callable[[Run], bool]) -> None:
        """Change what is in flight of ascending ranges; it goes where `change` returns False."""
        made: list[Run] = []

        def add(run: Run) -> None:
            if made and made[-1].end == run.first and made[-1].is_like(run):
                made[-1].end = run.end
            else:
                made.append(run)

        rest = iter(ranges)
        first, end = next(rest)
        for run in self._runs:
            while run.end > first:
                if end <= run.first:
                    first, end = next(rest, _NOWHERE)
                    continue
                if run.first < first:
                    add(Run(run.first, first, run.deliveries, run.holder, run.deadline_ms))
                    run.first = first
                if run.end <= end:
                    if change(run):
                        add(run)
                    break
                part = Run(run.first, end, run.deliveries, run.holder, run.deadline_ms)
                if change(part):
                    add(part)
                run.first = end
            else:
                add(run)
        self._runs = made

    def _join(self, low: int, high: int) -> None:
        """Make one of neighbours that are alike, from one index on and up to another."""
        runs = self._runs
        low, high = max(0, low - 1), min(high + 1, len(runs))
        made: list[Run] = []
        for run in runs[low:high]:
            if made and made[-1].end == run.first and made[-1].is_like(run):
                made[-1].end = run.end
            else:
                made.append(run)
        if len(made) < high - low:
            runs[low:high] = made

    # Snapshots

    def packed(self) -> bytes:
        """Return for each run: first offset, count, deliveries. Locks are not part of it."""
        found: list[tuple[int, int, int]] = []
        for run in self._runs:
            if found and sum(found[-1][:2]) == run.first and found[-1][2] == run.deliveries:
                first, count, deliveries = found[-1]
                found[-1] = first, count + run.end - run.first, deliveries
            else:
                found.append((run.first, run.end - run.first, run.deliveries))
        return b"".join([_RUN.pack(*each) for each in found])

    def unpack(self, data: bytes) -> None:
        """Put in flight what a snapshot has."""
        for first, count, deliveries in _RUN.iter_unpack(data):
            if first < self._last_end() or not count:
                raise ValueError("the runs of a window are not in order")
            self._runs.append(Run(first, first + count, deliveries, None, 0))
            self._count += count
            if self._count > SHARE_IN_FLIGHT_MAX:
                raise ValueError("a window holds too many offsets")

    def _last_end(self) -> int:
        return self._runs[-1].end if self._runs else 0


def _pairs(runs: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(runs[::2], runs[1::2], strict=False)
