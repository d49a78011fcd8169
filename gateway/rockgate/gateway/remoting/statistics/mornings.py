"""Totals as of the last two midnights, by which brokers report how many messages a day had."""

from __future__ import annotations

import time


class Mornings:
    """Totals at midnight, by the local time of the wall clock.

    A clock that is set back begins no day; one that is set ahead begins one, and no difference of
    totals is ever negative, since totals only grow.
    """

    def __init__(self) -> None:
        self._day = 0
        self.today = (0, 0)
        """Messages put and got before today began."""
        self.yesterday = (0, 0)

    def turn(self, now_ms: int, put_count: int, get_count: int) -> None:
        """Begin a day, if the last one is over."""
        local = time.localtime(now_ms / 1000)
        day = local.tm_year * 1_000 + local.tm_yday
        if self._day and day > self._day:
            self.yesterday = self.today
            self.today = (put_count, get_count)
        self._day = day
