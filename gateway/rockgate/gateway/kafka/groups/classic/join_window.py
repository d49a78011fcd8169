"""How long a group waits for its members to join, before it continues with those that did.

The members of an existing group have the rebalance timeout of the slowest. A group
that was empty waits a short while for more members, because each that came later would cost a
rebalance; and as long again while more come, within the rebalance timeout.
"""

from __future__ import annotations

from typing import Final

NEVER_MS: Final = 1 << 62


class JoinWindow:
    """The time to join. At most one is active."""

    __slots__ = ("_delay_ms", "_has_newcomer", "_left_ms", "is_first", "until_ms")

    def __init__(self) -> None:
        self.is_first = False
        """Whether the group was empty: then it waits even when all have joined."""
        self.until_ms = NEVER_MS
        self._delay_ms = 0
        self._left_ms = 0
        self._has_newcomer = False

    def begin_first(self, now_ms: int, delay_ms: int, rebalance_ms: int) -> None:
        """An empty group got its first member."""
        self.is_first = True
        self.until_ms = now_ms + delay_ms
        self._delay_ms = delay_ms
        self._left_ms = max(0, rebalance_ms - delay_ms)
        self._has_newcomer = False

    def begin(self, now_ms: int, rebalance_ms: int) -> None:
        """Members have to rejoin."""
        self.is_first = False
        self.until_ms = now_ms + rebalance_ms

    def note_newcomer(self) -> None:
        """Another member has joined."""
        self._has_newcomer = self.is_first

    def is_extended(self, now_ms: int) -> bool:
        """The time is over: whether to wait as long again, because more have joined meanwhile."""
        if not (self.is_first and self._has_newcomer and self._left_ms > 0):
            return False
        delay_ms = min(self._delay_ms, self._left_ms)
        self._left_ms -= delay_ms
        self._has_newcomer = False
        self.until_ms = now_ms + delay_ms
        return True

    def end(self) -> None:
        """All members have joined."""
        self.is_first = False
        self.until_ms = NEVER_MS
