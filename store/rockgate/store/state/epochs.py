"""Epochs: each writer of the log appends one before anything else.

An epoch identifies one run of the server: everything between two epoch entries was appended by one
run. Kafka's leader epochs follow from it, and the position to which a replica cuts its log
(docs/internals/replication.md): two entries are the same epoch only if number, directory and nonce
agree, because a directory that was restored from a backup counts on from an older number.
"""

from __future__ import annotations

import secrets
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rockgate.store.directory_id import UNKNOWN
from rockgate.store.errors import StoreCorrupt
from rockgate.store.state.fold import Change, check_format
from rockgate.store.state.snapshot_slices import sliced

TOPIC = b"rmq_sys_rockgate_epoch"

_FORMAT = 2
_CHANGES = {1: struct.Struct(">BI"), _FORMAT: struct.Struct(">BI16s8s")}
_ITEMS = {1: struct.Struct(">IQ"), _FORMAT: struct.Struct(">IQ16s8s")}
_ITEM = _ITEMS[_FORMAT]
NONCE_SIZE = 8
_SLICE_ITEMS = 2_000


class Epoch(NamedTuple):
    """One run of the server, and where it begins in the log."""

    number: int
    position: int
    directory: bytes = UNKNOWN
    """The data directory that began it; zeros before format 2."""
    nonce: bytes = bytes(NONCE_SIZE)


class Assigned(NamedTuple):
    """An epoch that is to begin."""

    number: int
    nonce: bytes


class Epochs:
    """The fold of epoch entries, oldest first."""

    name = "epochs"
    topics = frozenset({TOPIC})

    def __init__(self) -> None:
        self._epochs: list[Epoch] = []
        self.awaited: Assigned | None = None
        """The entry of this run, while it is not appended for lack of space; writes are rejected
        until it is."""

    @property
    def current(self) -> int:
        """The newest epoch, which may belong to an entry to come; 0 before the first."""
        return (
            max(self.next_number, self.awaited.number) if self.awaited is not None else self._last
        )

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

    def assign(self, number: int = 0, nonce: bytes = b"") -> Assigned:
        """Return the epoch that is to begin: by default the next one, with a new nonce."""
        return Assigned(number or self.next_number, nonce or secrets.token_bytes(NONCE_SIZE))

    def next_change(
        self,
        number: int | None = None,
        directory: bytes = UNKNOWN,
        nonce: bytes = bytes(NONCE_SIZE),
    ) -> bytes:
        """Return the body of the entry that begins an epoch, by default the next one."""
        number = self.next_number if number is None else number
        if number < self.next_number:
            raise ValueError(f"Epoch {number} cannot follow epoch {self._last}.")
        return _CHANGES[_FORMAT].pack(_FORMAT, number, directory, nonce)

    def apply(self, change: Change) -> None:
        """Apply the beginning of an epoch."""
        what, body = "Epoch entry", change.body
        check_format(body[0] if body else 0, _FORMAT, what, change.position)
        form = _CHANGES[body[0]]
        if len(body) != form.size:
            raise StoreCorrupt(what, change.position, f"its body is {len(body)} bytes")
        _, number, *identity = form.unpack(body)
        if not self._epochs or change.position > self._epochs[-1].position:
            self._epochs.append(Epoch(number, change.position, *identity))

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
            form = _ITEMS[piece[0]]
            if (len(piece) - 1) % form.size:
                raise StoreCorrupt(what, 0, f"it is {len(piece) - 1} bytes")
            self._epochs.extend(Epoch(*item) for item in form.iter_unpack(piece[1:]))

    def clear(self) -> None:
        """Remove all epochs."""
        self._epochs = []
