"""How long puts took, by class and as percentiles, in the last minute that is over.

The classes are those of RocketMQ's store. Nothing is counted for them: they are read from the
histograms of request latency, whose bounds they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rockgate.gateway.telemetry.durations import BOUNDS, Durations

CLASSES: Final = (
    ("[<=0ms]", 0.001),
    ("[0~10ms]", 0.01),
    ("[10~50ms]", 0.05),
    ("[50~100ms]", 0.1),
    ("[100~200ms]", 0.2),
    ("[200~500ms]", 0.5),
    ("[500ms~1s]", 1.0),
    ("[1~2s]", 2.0),
    ("[2~3s]", 3.0),
    ("[3~4s]", 4.0),
    ("[4~5s]", 5.0),
    ("[5~10s]", 10.0),
    ("[10s~]", float("inf")),
)
"""Name and upper bound in seconds. The first has what took less than a millisecond."""
MINUTE_MS: Final = 60_000
_UPPER: Final = (*BOUNDS, float("inf"))
_NONE: Final = (0,) * len(_UPPER)


class PutLatency:
    """Puts of the last minute that is over, by latency."""

    def __init__(self, histograms: Sequence[Durations], now_ms: int) -> None:
        """`histograms` are those of the requests that put."""
        self._histograms = histograms
        self._began_ms = now_ms
        self._before: Sequence[int] = _NONE
        self.counts: Sequence[int] = _NONE
        """Puts of that minute, by the bounds of `BOUNDS`."""

    def turn(self, now_ms: int) -> None:
        """Begin another minute, if one is over."""
        if now_ms - self._began_ms < MINUTE_MS:
            return
        totals = self.totals()
        self.counts = [now - then for now, then in zip(totals, self._before, strict=True)]
        self._before = totals
        self._began_ms = now_ms

    def totals(self) -> list[int]:
        """Return the puts since the start, by the bounds of `BOUNDS`."""
        totals = list(_NONE)
        for each in self._histograms:
            totals = [one + other for one, other in zip(totals, each.counts, strict=True)]
        return totals

    def by_class(self) -> str:
        """Return the number of puts of each class, as RocketMQ's brokers write them."""
        words, at = [], 0
        for name, bound in CLASSES:
            count = 0
            while at < len(_UPPER) and _UPPER[at] <= bound:
                count += self.counts[at]
                at += 1
            words.append(f"{name}:{count} ")
        return "".join(words)

    def percentile_ms(self, part: float) -> float:
        """Return the latency that a part of the puts stayed within, in milliseconds."""
        rank, passed, lower = sum(self.counts) * part, 0, 0.0
        if not rank:
            return 0.0
        for count, upper in zip(self.counts, _UPPER, strict=True):
            if count and rank <= passed + count:
                if upper == float("inf"):
                    return lower * 1000
                return (lower + (upper - lower) * (rank - passed) / count) * 1000
            passed += count
            lower = upper
        return 0.0
