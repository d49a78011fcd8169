"""The fold of half messages: which are undecided, their group, and their number of checks.

docs/internals/half-messages.md specifies it and lists the fields of its records. The fold holds
names and numbers; the messages themselves are in the log, and retention does not delete them while
they are undecided. The outcomes of the latest million are retained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any, Final

import msgspec

from rockgate.store.errors import StoreCorrupt
from rockgate.store.state.fold import Change, check_format
from rockgate.store.state.roster import Roster
from rockgate.store.state.snapshot_slices import Measured, pack_array, sliced

HALF_TOPIC: Final = b"rmq_sys_rockgate_half"
FORMAT: Final = 1


# Records in the log


class HalfChangeKind(IntEnum):
    """The kind of a change. Part of the format on disk: never change a value."""

    PREPARED = 1
    CHECKED = 2
    DECIDED = 3


class Outcome(IntEnum):
    """How a half message ended. Part of the format on disk: never change a value."""

    COMMITTED = 1
    ROLLED_BACK = 2
    GIVEN_UP = 3


class Prepared(msgspec.Struct, array_like=True, frozen=True):
    """A half message was accepted."""

    offset: int
    group: str
    immune_ms: int


class Checked(msgspec.Struct, array_like=True, frozen=True):
    """A producer was asked about a half message."""

    offset: int


class Decided(msgspec.Struct, array_like=True, frozen=True):
    """A half message was committed, rolled back or abandoned."""

    offset: int
    outcome: Outcome


_encode: Final = msgspec.msgpack.Encoder().encode
_DECODERS: Final[dict[int, msgspec.msgpack.Decoder[Any]]] = {
    HalfChangeKind.PREPARED: msgspec.msgpack.Decoder(Prepared),
    HalfChangeKind.CHECKED: msgspec.msgpack.Decoder(Checked),
    HalfChangeKind.DECIDED: msgspec.msgpack.Decoder(Decided),
}
_LEADS: Final = {
    Prepared: bytes((FORMAT, HalfChangeKind.PREPARED)),
    Checked: bytes((FORMAT, HalfChangeKind.CHECKED)),
    Decided: bytes((FORMAT, HalfChangeKind.DECIDED)),
}


def encode(change: Prepared | Checked | Decided) -> bytes:
    """Encode a change."""
    return _LEADS[type(change)] + _encode(change)


def decode(change: Change) -> Any:
    """Decode a change; StoreCorrupt if it cannot be decoded."""
    what, body = "Record of half messages", change.body
    if not body or body[0] != FORMAT:
        check_format(body[0] if body else 0, FORMAT, what, change.position)
    try:
        return _DECODERS[body[1]].decode(body[2:])
    except (KeyError, IndexError, msgspec.MsgspecError) as error:
        raise StoreCorrupt(what, change.position, f"{type(error).__name__} {error}") from error


# Outcomes

WINDOW: Final = 1 << 20


class Outcomes:
    """The outcomes of the newest `window` offsets, a byte each, to respond to late decisions.

    Offsets of half messages are dense, so a ring of bytes by offset is enough: the newest have a
    place in it, older ones do not. 0 means no outcome: undecided, never used, or evicted.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self.clear()

    def clear(self) -> None:
        """Remove everything."""
        self._ring = bytearray()
        self._next = 0
        """The offset after the newest."""

    def begin(self, offset: int) -> None:
        """Add an undecided half message, and evict the oldest to make space for it.

        One that is present already stays unchanged: a replay may repeat it.
        """
        if not self._ring:
            # Allocated with the first one: most servers never have any.
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
        """Set the outcome, unless the offset is evicted already."""
        if self._next - self._window <= offset < self._next:
            self._ring[offset % self._window] = outcome

    def find(self, offset: int) -> int:
        """Return an outcome; 0 if there is none, or it is evicted."""
        if not max(0, self._next - self._window) <= offset < self._next:
            return 0
        return self._ring[offset % self._window]

    # Snapshots

    def slices(self, size: int) -> Iterator[tuple[int, bytes]]:
        """Yield everything, as of each step: a first offset, and the outcomes from there."""
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
        """Add a slice."""
        dropped = max(0, len(part) - self._window)
        first, part = first + dropped, part[dropped:]
        if not part:
            return
        self.begin(first + len(part) - 1)
        for offset, outcome in enumerate(part, start=first):
            if outcome:
                self.end(offset, outcome)


# The fold

_SLICE_PLACES: Final = 1_000
_SLICE_OUTCOMES: Final = 1 << 16
_VERSION: Final = bytes((FORMAT,))
MESSAGES: Final = b"RMQ_SYS_TRANS_HALF_TOPIC"
"""The topic whose queue 0 holds the half messages."""


class Half(msgspec.Struct, array_like=True, gc=False):
    """One undecided half message."""

    offset: int
    group: str
    immune_ms: int
    """Its minimum age for the first check; -1 for the server's setting."""
    prepared_ms: int
    check_count: int = 0
    checked_ms: int = -1
    position: int = -1


class Endings(msgspec.Struct, gc=False):
    """A slice of outcomes: the first offset, and a byte for each offset from there on."""

    first: int
    outcomes: bytes


_decode_slice = msgspec.msgpack.Decoder(list[Half] | Endings).decode


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
        """Return an outcome; None if the message is undecided, never existed, or is too old."""
        found = self._outcomes.find(offset)
        return Outcome(found) if found else None

    def all(self) -> list[Half]:
        """Return all undecided ones as of now, in the order of their offsets."""
        return [self._roster[self._places[offset]] for offset in sorted(self._places)]

    def walk(self) -> Iterator[Half | None]:
        """Yield all undecided ones, unordered, and None for empty slots.

        The caller may pause after any; one that is undecided throughout is yielded exactly once.
        """
        for _, half in self._roster.walk():
            yield half

    def wants(self, topic: bytes, queue_id: int, first: int, end: int) -> bool:
        """Protect undecided messages from retention."""
        if topic != MESSAGES:
            return False
        if end - first <= len(self._places):
            return any(offset in self._places for offset in range(first, end))
        return any(first <= offset < end for offset in self._places)

    # Changes

    def apply(self, change: Change) -> None:
        """Apply a change."""
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
        """Yield all undecided ones, a thousand slots per slice; then the outcomes of others.

        In this order, so that one that is decided meanwhile is in at least one slice.
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
        """Replace everything with the contents of the slices."""
        self.clear()
        what = "Snapshot of half messages"
        for piece in slices:
            check_format(piece[0] if piece else 0, FORMAT, what)
            try:
                read = _decode_slice(piece[1:])
            except msgspec.MsgspecError as error:
                raise StoreCorrupt(what, 0, str(error)) from error
            if isinstance(read, Endings):
                self._outcomes.put(read.first, read.outcomes)
                continue
            for half in read:
                self._add(half)

    def clear(self) -> None:
        """Remove everything."""
        self._roster.clear()
        self._places.clear()
        self._outcomes.clear()
