"""How fast a consumer pulls and consumes: rates and mean times over the last minute, and totals.

A window is a ring of seven ten-second slots: the last six complete ones and the current one. The
caller passes times in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SLOT_S: Final = 10.0
SLOT_COUNT: Final = 6


class Window:
    """Counts and sums of the last minute."""

    __slots__ = ("_counts", "_since_s", "_slot", "_sums", "count", "total")

    def __init__(self, now_s: float) -> None:
        self._slot = int(now_s // SLOT_S)
        self._since_s = now_s
        self._counts = [0] * (SLOT_COUNT + 1)
        self._sums = [0.0] * (SLOT_COUNT + 1)
        self.count = 0
        """Since the beginning."""
        self.total = 0.0

    def add(self, now_s: float, count: int, value: float = 0.0) -> None:
        """Count this many events now, with the sum of their times or sizes."""
        self._advance(now_s)
        at = self._slot % len(self._counts)
        self._counts[at] += count
        self._sums[at] += value
        self.count += count
        self.total += value

    def rate(self, now_s: float) -> float:
        """Events per second."""
        self._advance(now_s)
        covered_s = min(now_s - self._since_s, SLOT_COUNT * SLOT_S + now_s % SLOT_S)
        return sum(self._counts) / max(covered_s, 1.0)

    def mean(self, now_s: float) -> float:
        """The mean of one event; 0 if there was none."""
        self._advance(now_s)
        count = sum(self._counts)
        return sum(self._sums) / count if count else 0.0

    def _advance(self, now_s: float) -> None:
        slot = int(now_s // SLOT_S)
        if slot == self._slot:
            return
        for passed in range(self._slot + 1, min(slot, self._slot + len(self._counts)) + 1):
            self._counts[passed % len(self._counts)] = 0
            self._sums[passed % len(self._sums)] = 0.0
        self._slot = max(slot, self._slot)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatistics:
    """One topic of a consumer. Rates are in a second and means in seconds, over the last minute."""

    pull_rate: float
    """Messages that were pulled."""
    pull_s: float
    """How long a pull took that brought some; waiting at the broker counts."""
    ok_rate: float
    """Messages that listeners finished."""
    failed_rate: float
    """Messages to be redelivered."""
    consume_s: float
    """How long a listener took for a message."""
    pulled_count: int
    ok_count: int
    failed_count: int
    """Since the consumer was opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStatistics:
    """The statistics of one consumer at one time."""

    group: str
    topics: dict[str, TopicStatistics] = field(default_factory=dict)
    queue_count: int = 0
    cached_count: int = 0
    """Messages that were pulled and are not finished."""
    cached_size: int = 0
    """Bytes of their bodies."""
    lag_count: int = 0
    """Messages at brokers beyond those pulled, as last reported."""
    failed_pull_count: int = 0
    held_back_counts: dict[str, int] = field(default_factory=dict)
    """How often a queue was not pulled because a limit was reached, by limit."""


class _Topic:
    __slots__ = ("calls", "failed", "ok", "pulled", "pulls")

    def __init__(self, now_s: float) -> None:
        self.pulls = Window(now_s)
        self.pulled = Window(now_s)
        self.ok = Window(now_s)
        self.failed = Window(now_s)
        self.calls = Window(now_s)


class Statistics:
    """Counts for one consumer, by topic."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}

    def pulled(self, topic: str, now_s: float, *, took_s: float, count: int) -> None:
        """A pull has brought messages."""
        found = self._topic(topic, now_s)
        found.pulls.add(now_s, 1, took_s)
        found.pulled.add(now_s, count)

    def consumed(self, topic: str, now_s: float, *, took_s: float, ok: int, failed: int) -> None:
        """A listener has ended."""
        found = self._topic(topic, now_s)
        found.calls.add(now_s, ok + failed, took_s)
        if ok:
            found.ok.add(now_s, ok)
        if failed:
            found.failed.add(now_s, failed)

    def topics(self, now_s: float) -> dict[str, TopicStatistics]:
        """The statistics of each topic."""
        return {
            topic: TopicStatistics(
                pull_rate=found.pulled.rate(now_s),
                pull_s=found.pulls.mean(now_s),
                ok_rate=found.ok.rate(now_s),
                failed_rate=found.failed.rate(now_s),
                consume_s=found.calls.mean(now_s),
                pulled_count=found.pulled.count,
                ok_count=found.ok.count,
                failed_count=found.failed.count,
            )
            for topic, found in sorted(self._topics.items())
        }

    def _topic(self, topic: str, now_s: float) -> _Topic:
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = _Topic(now_s)
        return found
