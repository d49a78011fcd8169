"""Outcomes of recent half messages, one byte each, to answer late decisions.

Offsets of half messages are dense, so the memory is a ring of bytes by offset: the newest have a
place in it, whatever is older has none. 0 is no outcome: undecided, never there, or forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

WINDOW: Final = 1 << 20


class Outcomes:
    """The outcomes of the newest `window` offsets."""

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._ring = bytearray()
        self._next = 0
        """The offset behind the newest."""

    def begin(self, offset: int) -> None:
        """A half message is there, undecided; the oldest make room for a newer one.

        One that is in already stays as it is: a replay may tell of it again.
        """
        if not self._ring:
            # Made with the first: most servers never have one.
            self._ring = bytearray(self._window)
        window = self._window
        if offset >= self._next:
            if offset - self._next >= window:
                self._ring = bytearray(window)
            else:
                for each in range(self._next, offset + 1):
                    self._ring[each % window] = 0
            self._next = offset + 1

    def end(self, offset: int, outcome: int) -> None:
        """One has ended, if it is young enough to be remembered."""
        if self._next - self._window <= offset < self._next:
            self._ring[offset % self._window] = outcome

    def find(self, offset: int) -> int:
        """Return how one ended; 0 if it did not, or nobody knows."""
        if not max(0, self._next - self._window) <= offset < self._next:
            return 0
        return self._ring[offset % self._window]

    # Snapshots

    def slices(self, size: int) -> Iterator[tuple[int, bytes]]:
        """Hand out all of it as it is at each step: a first offset, and the outcomes from there."""
        at = 0
        while True:
            at = max(at, self._next - self._window)
            if at >= self._next:
                return
            end = min(at + size, self._next)
            start, stop = at % self._window, (end - 1) % self._window + 1
            if start < stop:
                part = bytes(self._ring[start:stop])
            else:
                part = bytes(self._ring[start:] + self._ring[:stop])
            yield at, part
            at = end

    def put(self, first: int, part: bytes) -> None:
        """Take a slice in."""
        dropped = max(0, len(part) - self._window)
        first, part = first + dropped, part[dropped:]
        if not part:
            return
        self.begin(first + len(part) - 1)
        for offset, outcome in enumerate(part, start=first):
            if outcome:
                self.end(offset, outcome)
