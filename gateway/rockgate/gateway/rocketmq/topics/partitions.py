"""Partition tables: which queue of which broker each partition of a topic is.

    a:4;b:2;a:2      partitions 0-3 are queues 0-3 of a, 4 and 5 are queues 0 and 1 of b,
                     6 and 7 are queues 4 and 5 of a

Routes shrink while a broker is away, so numbers taken from them would move keys. A table is written
down, and only ever grows at its end: a number, once given, keeps its queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

PARTITIONS_MAX: Final = 65_536
RUNS_MAX: Final = 4_096
TEXT_SIZE_MAX: Final = 32 << 10
"""A table travels as one field of a header, which may have 64 KiB."""


class InvalidTable(ValueError):
    """A text that is not a partition table."""


class QueuePlace(NamedTuple):
    """The queue that a partition is."""

    broker: str
    queue_id: int


class Run(NamedTuple):
    """Consecutive partitions on consecutive queues of one broker."""

    broker: str
    queue_count: int


class PartitionTable:
    """The table of one topic. Never changed: what grows is another one."""

    __slots__ = ("_firsts", "_last_of", "_starts", "count", "runs")

    def __init__(self, runs: Sequence[Run] = ()) -> None:
        self.runs = _joined(runs)
        """Neighbours differ in their broker."""
        self._firsts = [0, *accumulate(run.queue_count for run in self.runs)]
        """Where each run begins, and the number of partitions."""
        self.count = self._firsts[-1]
        self._last_of: Counter[str] = Counter()
        self._starts: list[int] = []
        """The first queue of each run."""
        for broker, count in self.runs:
            self._starts.append(self._last_of[broker])
            self._last_of[broker] += count

    @classmethod
    def parse(cls, text: str) -> PartitionTable:
        """The table that a text describes; InvalidTable if it is none."""
        if len(text) > TEXT_SIZE_MAX:
            raise InvalidTable(f"Partition table of {len(text):,} characters is too long.")
        runs: list[Run] = []
        total = 0
        for part in text.split(";") if text else ():
            broker, _, digits = part.rpartition(":")
            if not is_broker(broker) or not (digits.isascii() and digits.isdecimal()):
                raise InvalidTable(f"Partition table has {part[:80]!r}; expected BROKER:COUNT.")
            count = int(digits[:8])
            total += count
            if not count or len(digits) > 8 or total > PARTITIONS_MAX or len(runs) >= RUNS_MAX:
                raise InvalidTable(f"Partition table has {part[:80]!r}, an impossible count.")
            runs.append(Run(broker, count))
        return cls(runs)

    @property
    def text(self) -> str:
        """The table as a text, which `parse` reads."""
        return ";".join(f"{broker}:{count}" for broker, count in self.runs)

    @property
    def brokers(self) -> list[str]:
        """The brokers that it names, sorted."""
        return sorted(self._last_of)

    def count_of(self, broker: str) -> int:
        """The number of partitions that are queues of a broker."""
        return self._last_of.get(broker, 0)

    def place(self, partition: int) -> QueuePlace:
        """The queue of a partition; IndexError if there is no such partition."""
        if not 0 <= partition < self.count:
            raise IndexError(partition)
        at = self._run_of(partition)
        queue_id = self._starts[at] + partition - self._firsts[at]
        return QueuePlace(self.runs[at].broker, queue_id)

    def number(self, broker: str, queue_id: int) -> int | None:
        """The partition that is this queue; None if the table does not have it."""
        for at, run in enumerate(self.runs):
            start = self._starts[at]
            if run.broker == broker and start <= queue_id < start + run.queue_count:
                return self._firsts[at] + queue_id - start
        return None

    def spans(self, first: int, end: int) -> Iterator[tuple[int, int, str, int]]:
        """Partitions from one up to another by runs: first, end, broker and first queue."""
        at = self._run_of(first) if first < end else len(self.runs)
        while at < len(self.runs) and self._firsts[at] < end:
            begin, stop = max(first, self._firsts[at]), min(end, self._firsts[at + 1])
            queue_id = self._starts[at] + begin - self._firsts[at]
            yield begin, stop, self.runs[at].broker, queue_id
            at += 1

    def continues(self, other: PartitionTable) -> bool:
        """Whether this is the other table, or what it has grown to."""
        begun = [(span[2], span[3], span[1]) for span in self.spans(0, other.count)]
        return begun == [(span[2], span[3], span[1]) for span in other.spans(0, other.count)]

    # Growing

    def covering(self, counts: Mapping[str, int]) -> PartitionTable:
        """This table, grown by the queues of brokers that it does not have yet, by name."""
        more = [
            Run(broker, count - self._last_of[broker])
            for broker, count in sorted(counts.items())
            if count > self._last_of[broker]
        ]
        return PartitionTable([*self.runs, *more]) if more else self

    def spread(self, count: int, brokers: Sequence[str]) -> PartitionTable:
        """This table, grown to `count` partitions on the brokers that have the fewest."""
        more: Counter[str] = Counter()
        for _ in range(count - self.count):
            more[min(brokers, key=lambda name: (self._last_of[name] + more[name], name))] += 1
        return self.covering({name: self._last_of[name] + grown for name, grown in more.items()})

    def _run_of(self, partition: int) -> int:
        low, high = 0, len(self.runs) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._firsts[middle] <= partition else (low, middle - 1)
        return low


def is_broker(name: str) -> bool:
    """Whether a broker's name can stand in a table."""
    return 0 < len(name) <= 255 and name.isprintable() and not {":", ";"} & {*name}


def _joined(runs: Sequence[Run]) -> tuple[Run, ...]:
    joined: list[Run] = []
    for broker, count in runs:
        if joined and joined[-1].broker == broker:
            joined[-1] = Run(broker, joined[-1].queue_count + count)
        elif count:
            joined.append(Run(broker, count))
    return tuple(joined)
