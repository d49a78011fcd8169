"""A fold of small records by key, each set or removed.

docs/internals/state.md describes the bytes. A change is its format and a msgpack array of items,
each a key and a value; no value removes the record. All items of one call are one atomic group. The
last writer of a record wins by position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from rockgate.store.errors import StoreCorrupt
from rockgate.store.state.fold import CHANGE_SIZE_MAX, Change, Journal, check_format
from rockgate.store.state.roster import Roster
from rockgate.store.state.snapshot_slices import Measured, pack_array, sliced

FORMAT: Final = 1
_BODY_BYTES: Final = CHANGE_SIZE_MAX // 4
_SLICE_PLACES: Final = 500

K = TypeVar("K")
V = TypeVar("V")
Followed = TypeVar("Followed", contravariant=True)
Held = TypeVar("Held", contravariant=True)


class Follower(Protocol[Followed, Held]):
    """An index over a fold's records, notified of each, whether a change or a snapshot has it."""

    def was_set(self, key: Followed, value: Held, /) -> None:
        """A record was added, or has another value."""

    def was_removed(self, key: Followed, /) -> None:
        """A record was removed."""

    def was_cleared(self) -> None:
        """All records were removed."""


class Record(Generic[K, V]):
    """A record and its slot."""

    __slots__ = ("key", "place", "position", "value")

    def __init__(self, key: K, value: V, position: int) -> None:
        self.key = key
        self.value = value
        self.position = position
        self.place = -1


class KeyedFold(Generic[K, V]):
    """The fold, and the only way to change it. Keys must be hashable as decoded."""

    def __init__(
        self,
        journal: Journal,
        *,
        name: str,
        topic: bytes,
        key: Any,
        value: Any,
        slice_places: int = _SLICE_PLACES,
        follower: Follower[K, V] | None = None,
    ) -> None:
        """`key` and `value` are the types of decoded records."""
        self.name = name
        self.topics = frozenset({topic})
        self._topic = topic
        self._what = f"Record of {name}"
        self._journal = journal
        self._slice_places = slice_places
        self._follower = follower
        self._records: dict[K, Record[K, V]] = {}
        self.has: Callable[[K], bool] = self._records.__contains__
        """Whether there is a record; the dictionary's own method, for every pull asks."""
        self._roster: Roster[Record[K, V]] = Roster()
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(list[tuple[key, value | None]]).decode
        self._decode_slice = msgspec.msgpack.Decoder(list[tuple[key, value, int]]).decode
        self.on_changed: list[Callable[[], None]] = []
        """Called after a change; not by `restore`."""

    # Reading

    def __len__(self) -> int:
        return len(self._records)

    def find(self, key: K) -> V | None:
        """Return the value of a record, or None."""
        record = self._records.get(key)
        return record.value if record is not None else None

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield all records; consume it before the next change."""
        return ((record.key, record.value) for record in self._records.values())

    # Changing

    def put(self, items: Mapping[K, V | None]) -> None:
        """Set records, and remove those whose value is None: all of them or none."""
        bodies: list[bytes] = []
        part: list[bytes] = []
        size = 0
        for item in items.items():
            encoded = self._encode(item)
            part.append(encoded)
            size += len(encoded)
            if size >= _BODY_BYTES:
                bodies.append(_body(part))
                part, size = [], 0
        if part:
            bodies.append(_body(part))
        if bodies:
            self._journal.append_states([(self._topic, body) for body in bodies])

    def change(self, items: Mapping[K, V | None]) -> bytes:
        """Return the body of a change of some items, to be appended in a group."""
        return _body([self._encode(item) for item in items.items()])

    # The fold

    def apply(self, change: Change) -> None:
        """Apply a change."""
        body = change.body
        check_format(body[0] if body else 0, FORMAT, self._what, change.position)
        try:
            items = self._decode(body[1:])
        except msgspec.MsgspecError as error:
            raise StoreCorrupt(self._what, change.position, str(error)) from error
        for key, value in items:
            if value is not None:
                self._set(key, value, change.position)
            else:
                self._remove(key, change.position)
        for listener in self.on_changed:
            listener()

    def _set(self, key: K, value: V, position: int) -> None:
        record = self._records.get(key)
        if record is None:
            record = self._records[key] = Record(key, value, position)
            record.place = self._roster.add(record)
        elif record.position < position:
            record.value, record.position = value, position
        else:
            return
        if self._follower is not None:
            self._follower.was_set(key, value)

    def _remove(self, key: K, position: int) -> None:
        record = self._records.get(key)
        if record is not None and record.position < position:
            self._roster.remove(record.place)
            del self._records[key]
            if self._follower is not None:
                self._follower.was_removed(key)

    def snapshot(self) -> Iterator[bytes]:
        """Yield all records, some hundred per slice."""
        for part in sliced(self._encoded(), self._slice_places):
            yield bytes((FORMAT,)) + pack_array(part)

    def _encoded(self) -> Iterator[Measured[bytes]]:
        for _, record in self._roster.walk():
            if record is None:
                yield 1, 0, None
                continue
            item = self._encode((record.key, record.value, record.position))
            yield 1, len(item), item

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace everything with the contents of the slices."""
        self.clear()
        what = f"Snapshot of {self.name}"
        for data in slices:
            check_format(data[0] if data else 0, FORMAT, what)
            try:
                part = self._decode_slice(memoryview(data)[1:])
            except msgspec.MsgspecError as error:
                raise StoreCorrupt(what, 0, str(error)) from error
            for key, value, position in part:
                self._set(key, value, position)

    def clear(self) -> None:
        """Remove everything."""
        self._records.clear()
        self._roster.clear()
        if self._follower is not None:
            self._follower.was_cleared()


def _body(items: Sequence[bytes]) -> bytes:
    """Return a change of encoded items."""
    return bytes((FORMAT,)) + pack_array(items)
