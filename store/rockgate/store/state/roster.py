"""A roster: items in fixed numbered slots, so that an iteration can pause.

A dict cannot be walked while it changes, and listing a million keys first would hold the loop. A
walk over places can stop after any of them and go on later: what was there when it began and is
still there has been met exactly once; what came meanwhile may be met or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Roster(Generic[T]):
    """Numbered places, filled and emptied in constant time. Empty places are filled again."""

    __slots__ = ("_free", "_places")

    def __init__(self) -> None:
        self._places: list[T | None] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._places) - len(self._free)

    def __getitem__(self, place: int) -> T:
        thing = self._places[place]
        assert thing is not None, "the place is empty"
        return thing

    def add(self, thing: T) -> int:
        """Put a thing into a place of its own and return the place."""
        if self._free:
            place = self._free.pop()
            self._places[place] = thing
            return place
        self._places.append(thing)
        return len(self._places) - 1

    def remove(self, place: int) -> None:
        """Empty a place."""
        assert self._places[place] is not None, "the place is empty already"
        self._places[place] = None
        self._free.append(place)

    def clear(self) -> None:
        """Empty all places."""
        self._places.clear()
        self._free.clear()

    def walk(self, place: int = 0) -> Iterator[tuple[int, T | None]]:
        """Return each place from one on and what is in it now; None for an empty place.

        Empty places are shown so that the walker can count them as work: after a large removal
        there may be a million in a row.
        """
        while place < len(self._places):
            yield place, self._places[place]
            place += 1
