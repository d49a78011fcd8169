"""Epochs: each writer of the log appends one before anything else.

An epoch identifies one run of the server: everything between two epoch entries was appended by one
run. Kafka's leader epochs follow from it, and later the position to which a replica truncates.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rockgate.store.errors import StoreCorrupt
from rockgate.store.state.fold import Change, check_format
from rockgate.store.state.snapshot_slices import sliced

TOPIC = b"rmq_sys_rockgate_epoch"

_FORMAT = 1
_CHANGE = struct.Struct(">BI")
_ITEM = struct.Struct(">IQ")
_SLICE_ITEMS = 2_000


class Epoch(NamedTuple):
    """One run of the server, and where it begins in the log."""

    number: int
    position: int


class Epochs:
    """The fold of epoch entries, oldest first."""

    name = "epochs"
    topics = frozenset({TOPIC})

    def __init__(self) -> None:
        self._epochs: list[Epoch] = []
        self.is_awaited = False
        """Whether the entry of this run is not appended yet, for lack of space; writes are
        rejected."""
        self.awaited_number = 0
        """The number of that entry, if it is not simply the next."""

    @property
    def current(self) -> int:
        """The newest epoch, which may belong to an entry to come; 0 before the first."""
        return max(self.next_number, self.awaited_number) if self.is_awaited else self._last

    @property
    def _last(self) -> int:
        return self._epochs[-1].number if self._epochs else 0

    @property
    def all(self) -> list[Epoch]:
        """Every epoch known, oldest first."""
        return list(self._epochs)

    def at(self, position: int) -> int:
        """Return the epoch in which a position of the log was written."""
        index = bisect_right(self._epochs, position, key=lambda epoch: epoch.position) - 1
        return self._epochs[index].number if index >= 0 else 0

    @property
    def next_number(self) -> int:
        """The number of the next epoch, unless one is assigned from elsewhere."""
        return self._last + 1

    def next_change(self, number: int | None = None) -> bytes:
        """Return the body of the entry that begins an epoch, by default the next one."""
        number = self.next_number if number is None else number
        if number < self.next_number:
            raise ValueError(f"Epoch {number} cannot follow epoch {self._last}.")
        return _CHANGE.pack(_FORMAT, number)

    def apply(self, change: Change) -> None:
        """Apply the beginning of an epoch."""
        what, body = "Epoch entry", change.body
        check_format(body[0] if body else 0, _FORMAT, what, change.position)
        if len(body) != _CHANGE.size:
            raise StoreCorrupt(what, change.position, f"its body is {len(body)} bytes")
        _, number = _CHANGE.unpack(body)
        if not self._epochs or change.position > self._epochs[-1].position:
            self._epochs.append(Epoch(number, change.position))

    def snapshot(self) -> Iterator[bytes]:
        """Yield all epochs: there is one per start, and none is ever removed."""
        items = ((1, _ITEM.size, _ITEM.pack(*epoch)) for epoch in self._epochs)
        for part in sliced(items, _SLICE_ITEMS):
            yield bytes([_FORMAT]) + b"".join(part)

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace the epochs."""
        self.clear()
        for piece in slices:
            what = "Snapshot of epochs"
            check_format(piece[0] if piece else 0, _FORMAT, what)
            if (len(piece) - 1) % _ITEM.size:
                raise StoreCorrupt(what, 0, f"it is {len(piece) - 1} bytes")
            self._epochs.extend(Epoch._make(item) for item in _ITEM.iter_unpack(piece[1:]))

    def clear(self) -> None:
        """Remove all epochs."""
        self._epochs = []
