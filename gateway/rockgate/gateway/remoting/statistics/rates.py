"""Rates of the last seconds: totals noted every second for ten minutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

SECONDS: Final = (10, 60, 600)
_NOTED_MAX: Final = SECONDS[-1] + 1


class Rates:
    """How fast some totals grew. Times are milliseconds of a clock that is never set."""

    def __init__(self) -> None:
        self._noted: deque[tuple[int, Sequence[int]]] = deque(maxlen=_NOTED_MAX)

    def is_due(self, now_ms: int) -> bool:
        """Whether a second has passed since the last note."""
        return not self._noted or now_ms - self._noted[-1][0] >= 1_000

    def note(self, now_ms: int, totals: Sequence[int]) -> None:
        """Note the totals; call it once a second."""
        self._noted.append((now_ms, totals))

    def rate(self, index: int, seconds: int) -> float:
        """Return by how much one total grew in a second, on average over the last seconds.

        Before that much time has passed it is the average since the first note.
        """
        if len(self._noted) < 2:
            return 0.0
        last_ms, last = self._noted[-1]
        first_ms, first = self._noted[max(0, len(self._noted) - 1 - seconds)]
        return max(0, last[index] - first[index]) * 1000 / max(1_000, last_ms - first_ms)

    def text(self, *indexes: int) -> str:
        """Return the rates of some totals together, over 10, 60 and 600 seconds."""
        return " ".join(
            str(sum(self.rate(index, seconds) for index in indexes)) for seconds in SECONDS
        )
