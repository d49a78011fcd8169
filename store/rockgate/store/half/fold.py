"""The fold of half messages: which are undecided, their group, and their number of checks.

docs/internals/half-messages.md specifies it. It holds names and numbers; the messages themselves
lie in the log, and are kept from retention for as long as they are undecided. Of those that are
decided it remembers how, for the latest million.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from rockgate.store.errors import StoreCorrupt
from rockgate.store.half.changes import (
    FORMAT,
    HALF_TOPIC,
    Checked,
    Decided,
    Outcome,
    Prepared,
    decode,
)
from rockgate.store.half.outcomes import Outcomes
from rockgate.store.state.fold import Change, check_format
from rockgate.store.state.roster import Roster
from rockgate.store.state.slicing import Measured, pack_array, sliced

_SLICE_PLACES: Final = 1_000
_SLICE_OUTCOMES: Final = 1 << 16
_VERSION: Final = bytes((FORMAT,))
MESSAGES: Final = b"RMQ_SYS_TRANS_HALF_TOPIC"
"""The topic in whose queue 0 half messages lie."""


class Half(msgspec.Struct, array_like=True, gc=False):
    """One undecided half message."""

    offset: int
    group: str
    immune_ms: int
    """How old it must be for the first check; -1 for the server's own setting."""
    prepared_ms: int
    check_count: int = 0
    checked_ms: int = -1
    position: int = -1


class Endings(msgspec.Struct, gc=False):
    """A slice of outcomes: the first offset, and a byte for each from there on."""

    first: int
    outcomes: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Half] | Endings).decode


class HalfMessages:
    """All undecided half messages, by their offsets."""

    name: Final = "halves"
    topics: Final = frozenset({HALF_TOPIC})

    def __init__(self, slice_places: int = _SLICE_PLACES) -> None:
        self._slice_places = slice_places
        self._roster: Roster[Half] = Roster()
        self._places: dict[int, int] = {}
        self._outcomes = Outcomes()

    def __len__(self) -> int:
        return len(self._places)

    def find(self, offset: int) -> Half | None:
        """Return an undecided half message."""
        place = self._places.get(offset)
        return None if place is None else self._roster[place]

    def outcome(self, offset: int) -> Outcome | None:
        """Return how one ended; None of one that is undecided, was never there, or is too old."""
        found = self._outcomes.find(offset)
        return Outcome(found) if found else None

    def all(self) -> list[Half]:
        """Return all that are undecided, as they are now, in the order of their offsets."""
        return [self._roster[self._places[offset]] for offset in sorted(self._places)]

    def walk(self) -> Iterator[Half | None]:
        """Yield all that are undecided, in no order, and None for what was passed over.

        The caller may pause after any; one that is undecided throughout is met exactly once.
        """
        for _, half in self._roster.walk():
            yield half

    def wants(self, topic: bytes, queue_id: int, first: int, end: int) -> bool:
        """Keep undecided ones from retention."""
        if topic != MESSAGES:
            return False
        if end - first <= len(self._places):
            return any(offset in self._places for offset in range(first, end))
        return any(first <= offset < end for offset in self._places)

    # The fold

    def apply(self, change: Change) -> None:
        """Take one change in."""
        what = decode(change)
        half = self.find(what.offset)
        if isinstance(what, Prepared):
            if half is None:
                self._add(
                    Half(
                        what.offset,
                        what.group,
                        what.immune_ms,
                        change.store_ms,
                        position=change.position,
                    )
                )
            return
        if half is None or half.position >= change.position:
            return
        half.position = change.position
        if isinstance(what, Checked):
            half.check_count += 1
            half.checked_ms = change.store_ms
        elif isinstance(what, Decided):
            self._roster.remove(self._places.pop(what.offset))
            self._outcomes.end(what.offset, what.outcome)

    def _add(self, half: Half) -> None:
        self._places[half.offset] = self._roster.add(half)
        self._outcomes.begin(half.offset)

    def snapshot(self) -> Iterator[bytes]:
        """Hand out all of them, a thousand places to a slice; then how others ended.

        In this order, so that one that is decided meanwhile is in one slice or the other.
        """
        for halves in sliced(self._encoded(), self._slice_places):
            yield _VERSION + pack_array(halves)
        for first, part in self._outcomes.slices(_SLICE_OUTCOMES):
            yield _VERSION + _encode(Endings(first, part))

    def _encoded(self) -> Iterator[Measured[bytes]]:
        for _, half in self._roster.walk():
            item = None if half is None else _encode(half)
            yield 1, len(item or b""), item

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace everything by what the slices hold."""
        self.clear()
        what = "snapshot of half messages"
        for piece in slices:
            check_format(piece[0] if piece else 0, FORMAT, what)
            try:
                read = _decode(piece[1:])
            except msgspec.MsgspecError as error:
                raise StoreCorrupt(what, 0, str(error)) from error
            if isinstance(read, Endings):
                self._outcomes.put(read.first, read.outcomes)
                continue
            for half in read:
                self._add(half)

    def clear(self) -> None:
        """Forget everything."""
        self._roster.clear()
        self._places.clear()
        self._outcomes.clear()
