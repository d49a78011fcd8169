"""The last hour of each topic: its size, and the messages that came in, from pages of metrics.

Samples are further apart than those of the whole server, and packed: ten thousand topics take about
ten megabytes.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from rockgate.cli.admin.metrics import Metrics

INTERVAL_MS: Final = 30_000
SAMPLES_MAX: Final = 120
TOPICS_MAX: Final = 20_000
GAP_MS: Final = 4 * INTERVAL_MS
_ABSENT: Final = -1.0


class TopicSample(NamedTuple):
    """One topic at one time; a rate is None at first, after a gap and after a restart."""

    at_ms: int
    size: float
    rate: float | None


class TopicHistory:
    """Samples of all topics, a column each."""

    def __init__(self) -> None:
        self._times: deque[int] = deque(maxlen=SAMPLES_MAX)
        self._index: dict[str, int] = {}
        self._sizes: deque[array[float]] = deque(maxlen=SAMPLES_MAX)
        self._rates: deque[array[float]] = deque(maxlen=SAMPLES_MAX)
        self._counts: dict[str, float] = {}

    def add(self, metrics: Metrics, at_ms: int) -> None:
        """Take a sample, if the last one is old enough."""
        # The timers of both drift: a little early is on time.
        if self._times and at_ms - self._times[-1] < INTERVAL_MS - 2_000:
            return
        counts = metrics.by("rockgate_topic_messages_total", "topic")
        sizes = metrics.by("rockgate_topic_bytes", "topic")
        if not counts:
            return
        passed_ms = at_ms - self._times[-1] if self._times else 0
        self._learn(counts)
        size_row = array("f", [_ABSENT]) * len(self._index)
        rate_row = array("f", [_ABSENT]) * len(self._index)
        for name, count in counts.items():
            index = self._index.get(name)
            if index is None:
                continue
            size_row[index] = sizes.get(name, 0.0)
            before = self._counts.get(name)
            if before is not None and count >= before and 0 < passed_ms <= GAP_MS:
                rate_row[index] = (count - before) / (passed_ms / 1000)
        self._counts = counts
        self._times.append(at_ms)
        self._sizes.append(size_row)
        self._rates.append(rate_row)

    def of(self, topic: str) -> list[TopicSample]:
        """The samples of a topic, oldest first."""
        index = self._index.get(topic)
        if index is None:
            return []
        found = []
        for at_ms, sizes, rates in zip(self._times, self._sizes, self._rates, strict=True):
            if index < len(sizes) and sizes[index] != _ABSENT:
                rate = rates[index]
                found.append(TopicSample(at_ms, sizes[index], None if rate == _ABSENT else rate))
        return found

    def _learn(self, counts: Mapping[str, float]) -> None:
        for name in counts:
            if name not in self._index and len(self._index) < TOPICS_MAX:
                self._index[name] = len(self._index)
