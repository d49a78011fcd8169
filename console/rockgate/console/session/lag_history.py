"""The lag of groups over the last hour, partition by partition, and how long it will last.

A group is watched from the first visit of its page on, for an hour after the last one, also while
no page is open.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rockgate.cli.client.kafka.view import Place

SAMPLES_MAX: Final = 720
GROUPS_MAX: Final = 20
PARTITIONS_MAX: Final = 1_000
"""Of a group with more, those with the largest lags are remembered."""
WATCHED_MS: Final = 3_600_000
PACE_MS: Final = 60_000
"""How much of the past says how fast a lag shrinks."""


class LagSample(NamedTuple):
    """A lag at a time."""

    at_ms: int
    lag: int


Line = deque[LagSample]


@dataclass(slots=True)
class Watched:
    """One group."""

    visited_ms: int = 0
    total: Line = field(default_factory=lambda: deque(maxlen=SAMPLES_MAX))
    places: dict[Place, Line] = field(default_factory=dict)


class LagHistory:
    """The watched groups; the one that was visited least recently gives way."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, Watched] = OrderedDict()

    def visit(self, group: str, now_ms: int) -> Watched:
        """Watch a group from now on."""
        found = self._groups.setdefault(group, Watched())
        found.visited_ms = now_ms
        self._groups.move_to_end(group)
        while len(self._groups) > GROUPS_MAX:
            self._groups.popitem(last=False)
        return found

    def watched(self, now_ms: int) -> list[str]:
        """The groups to sample; those that were not visited for an hour are forgotten."""
        for name, each in list(self._groups.items()):
            if now_ms - each.visited_ms > WATCHED_MS:
                del self._groups[name]
        return list(self._groups)

    def is_old(self, group: str, before_ms: int) -> bool:
        """Whether the newest sample of a group is older than a time."""
        found = self._groups.get(group)
        return found is not None and (not found.total or found.total[-1].at_ms <= before_ms)

    def add(self, group: str, lags: Mapping[Place, int], now_ms: int) -> None:
        """Add a sample of a group that is watched."""
        found = self._groups.get(group)
        if found is None:
            return
        found.total.append(LagSample(now_ms, sum(lags.values())))
        largest = sorted(lags, key=lambda place: -lags[place])[:PARTITIONS_MAX]
        found.places = {
            place: found.places.get(place) or deque(maxlen=SAMPLES_MAX) for place in largest
        }
        for place in largest:
            found.places[place].append(LagSample(now_ms, lags[place]))


def catch_up_ms(line: Line) -> int | None:
    """How long a lag lasts at the pace of the last minute: 0 for none, -1 for never.

    None while there is only one sample.
    """
    if not line:
        return None
    last = line[-1]
    if not last.lag:
        return 0
    first = next(each for each in line if each.at_ms >= last.at_ms - PACE_MS)
    if first.at_ms == last.at_ms:
        return None
    pace = (first.lag - last.lag) / (last.at_ms - first.at_ms)
    return int(last.lag / pace) if pace > 0 else -1
