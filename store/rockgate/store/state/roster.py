"""A roster: items in fixed numbered slots, so that an iteration can pause.

A dict cannot be iterated while it changes, and copying a million keys first would block the event
loop. An iteration over slots can pause after any of them and continue later: items present from
start to end are visited exactly once; items added meanwhile may be visited or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Roster(Generic[T]):
    """Numbered slots, filled and emptied in constant time. Empty slots are reused."""

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
        """Put an item into a slot and return the slot's number."""
        if self._free:
            place = self._free.pop()
            self._places[place] = thing
            return place
        self._places.append(thing)
        return len(self._places) - 1

    def remove(self, place: int) -> None:
        """Empty a slot."""
        assert self._places[place] is not None, "the place is empty already"
        self._places[place] = None
        self._free.append(place)

    def clear(self) -> None:
        """Empty all slots."""
        self._places.clear()
        self._free.clear()

    def walk(self, place: int = 0) -> Iterator[tuple[int, T | None]]:
        """Yield each slot from a number on with its current item; None for an empty slot.

        Empty slots are included so that the caller can count them as work: after a large removal
        there may be a million in a row.
        """
        while place < len(self._places):
            yield place, self._places[place]
            place += 1
