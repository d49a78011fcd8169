"""Brokers that were slow or failed, and how long each is passed over for it.

    answered after   50 ms   100 ms   550 ms   1 s    2 s     3 s     15 s or not at all
    passed over      -       -        30 s     60 s   120 s   180 s   600 s

The steps are RocketMQ's. Where every broker is to be passed over, the better half of them takes
turns. Nothing is noted unless it is switched on.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

LATENCY_S: Final = (0.05, 0.1, 0.55, 1.0, 2.0, 3.0, 15.0)
PASSED_OVER_S: Final = (0.0, 0.0, 30.0, 60.0, 120.0, 180.0, 600.0)
FAILED_S: Final = 30.0
"""The latency that an error counts as."""
BROKER_COUNT_MAX: Final = 4096


def penalty_s(latency_s: float) -> float:
    """How long a broker with this latency is avoided."""
    for step_s, over_s in zip(reversed(LATENCY_S), reversed(PASSED_OVER_S), strict=True):
        if latency_s >= step_s:
            return over_s
    return 0.0


class Faults:
    """Until when each broker is avoided."""

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on
        self._until: dict[str, float] = {}
        self._latency_s: dict[str, float] = {}

    def note(self, broker: str, latency_s: float, now: float) -> None:
        """Record a broker's latency; an error is recorded as FAILED_S."""
        if not self.is_on:
            return
        if len(self._until) >= BROKER_COUNT_MAX:
            self._until = {name: until for name, until in self._until.items() if until > now}
            self._latency_s = {name: self._latency_s[name] for name in self._until}
        self._until[broker] = now + penalty_s(latency_s)
        self._latency_s[broker] = latency_s

    def is_avoided(self, broker: str, now: float) -> bool:
        """Whether it is avoided now, while there is another."""
        return self._until.get(broker, 0.0) > now

    def better_half(self, brokers: Collection[str]) -> set[str]:
        """The faster half of brokers that are all to be avoided; at least one."""
        by_latency = sorted(brokers, key=lambda broker: (self._latency_s.get(broker, 0.0), broker))
        return set(by_latency[: max(1, len(by_latency) // 2)])
