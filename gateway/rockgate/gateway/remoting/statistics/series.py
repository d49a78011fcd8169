"""The history of one label: snapshots of its counters at fixed steps, as RocketMQ's brokers take.

    window   a snapshot every   snapshots
    minute   10 seconds         7
    hour     10 minutes         7
    day      1 hour             25

What a window reports is the difference between the counters now and its oldest snapshot. Times are
parameters, in milliseconds of a clock that is never set, so that no rate is negative. A rate is
taken over one step at least: a label that is a millisecond old has no huge one.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

_FIELDS: Final = 5
"""Numbers in a snapshot: its time and the counters."""


class Span(IntEnum):
    """The windows of a history."""

    MINUTE = 0
    HOUR = 1
    DAY = 2


STEP_MS: Final = (10_000, 600_000, 3_600_000)
SNAPSHOTS_MAX: Final = (7, 7, 25)


class Field(IntEnum):
    """The counters of a label; the number is their place in a snapshot."""

    TIMES = 1
    COUNT = 2
    SIZE = 3
    MS = 4


class Window(NamedTuple):
    """What happened in a window."""

    total: int
    times: int
    per_second: float

    @property
    def average(self) -> float:
        """The average of one time."""
        return self.total / self.times if self.times else 0.0


NOTHING: Final = Window(0, 0, 0.0)


class Series:
    """The counters of one label, which whoever counts adds to, and their history."""

    __slots__ = ("_first", "_rings", "_seen", "changed_ms", "count", "ms", "size", "times")

    def __init__(self, born_ms: int) -> None:
        self.times = 0
        """Requests or batches."""
        self.count = 0
        """Messages."""
        self.size = 0
        """Their bytes."""
        self.ms = 0
        """Milliseconds that they took."""
        self.changed_ms = born_ms
        """When a snapshot last found another value."""
        self._first: Sequence[int] = (born_ms, 0, 0, 0, 0)
        """What its first windows are compared with."""
        self._seen = 0
        self._rings = (array("q"), array("q"), array("q"))

    @property
    def snapshot_counts(self) -> tuple[int, ...]:
        """How many snapshots each window has."""
        return tuple(len(ring) // _FIELDS for ring in self._rings)

    def begin_at(self, times: int, count: int, size: int) -> None:
        """Begin with counters that are not zero, of which nothing before is known."""
        self.times, self.count, self.size = times, count, size
        self._first = (self._first[0], times, count, size, self.ms)
        self._seen = times

    def is_idle(self, now_ms: int) -> bool:
        """Whether it has not changed for the step of a minute."""
        if self.times != self._seen:
            return False
        return now_ms - self.changed_ms >= STEP_MS[Span.MINUTE]

    def sample(self, span: Span, now_ms: int) -> None:
        """Take a snapshot."""
        ring = self._rings[span]
        if not ring:
            ring.extend(self._first)
        ring.extend((now_ms, self.times, self.count, self.size, self.ms))
        if len(ring) > SNAPSHOTS_MAX[span] * _FIELDS:
            del ring[:_FIELDS]
        if self.times != self._seen:
            self._seen = self.times
            self.changed_ms = now_ms

    def window(self, span: Span, field: Field, now_ms: int) -> Window:
        """Return what one counter did in a window that ends now."""
        ring = self._rings[span]
        current = (now_ms, self.times, self.count, self.size, self.ms)
        oldest = ring[:_FIELDS] if ring else self._first
        total = current[field] - oldest[field]
        elapsed_ms = max(now_ms - oldest[0], STEP_MS[span])
        return Window(total, self.times - oldest[Field.TIMES], total * 1000 / elapsed_ms)


class GetSeries(Series):
    """What a group got of a topic."""

    __slots__ = ("pulled",)

    def __init__(self, born_ms: int) -> None:
        super().__init__(born_ms)
        self.pulled: dict[int, int] = {}
        """Of each queue, the offset behind what was last got of it."""
