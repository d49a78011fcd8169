"""The fold of groups: the last saved state of each.

docs/internals/groups.md describes the bytes. A change begins with its format and kind:

    SAVE     group name, the group as saving.pack wrote it
    REMOVE   group names

The last writer wins by position. A record holds the position and the time of its change before
the group's bytes, which are decoded on demand only: a hundred thousand groups are a hundred
thousand byte strings.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any, Final

import msgspec

from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup, pack, unpack
from rockgate.gateway.kafka.groups.classic.memory import Record
from rockgate.store.api.folds import (
    CHANGE_SIZE_MAX,
    Change,
    Journal,
    Measured,
    Roster,
    check_format,
    pack_array,
    sliced,
)
from rockgate.store.errors import StoreCorrupt

TOPIC: Final = b"rmq_sys_rockgate_groups"
FORMAT: Final = 1
_HEAD: Final = struct.Struct(">qq")
_SLICE_PLACES: Final = 1_000
_REMOVALS_BYTES_MAX: Final = CHANGE_SIZE_MAX // 2


class GroupChangeKind(IntEnum):
    """What a change does. Part of the format on disk: never change a value."""

    SAVE = 1
    REMOVE = 2


class _GroupItem:
    """A group in a snapshot."""

    __slots__ = ("data", "name", "place")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        self.place = -1

    @property
    def position(self) -> int:
        position: int = _HEAD.unpack_from(self.data)[0]
        return position


_encode = msgspec.msgpack.Encoder().encode
_DECODERS: Final[dict[GroupChangeKind, msgspec.msgpack.Decoder[Any]]] = {
    GroupChangeKind.SAVE: msgspec.msgpack.Decoder(tuple[str, bytes]),
    GroupChangeKind.REMOVE: msgspec.msgpack.Decoder(list[str]),
}
_decode_slice = msgspec.msgpack.Decoder(list[tuple[str, bytes]]).decode


class SavedGroups:
    """The fold, and the only way to change it."""

    name: Final = "groups"
    topics: Final = frozenset({TOPIC})

    def __init__(self, journal: Journal, *, slice_places: int = _SLICE_PLACES) -> None:
        self._journal = journal
        self._slice_places = slice_places
        self._by_name: dict[str, _GroupItem] = {}
        self._roster: Roster[_GroupItem] = Roster()
        self.on_changed: list[Callable[[str], None]] = []
        """Called with the name of a group that was saved or removed."""

    # Reading

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def names(self) -> Iterator[str]:
        """All names; valid until the next change."""
        return iter(self._by_name)

    def find(self, name: str) -> Record | None:
        """The saved bytes of a group, or None."""
        held = self._by_name.get(name)
        if held is None:
            return None
        position, store_ms = _HEAD.unpack_from(held.data)
        try:
            return Record(store_ms, unpack(memoryview(held.data)[_HEAD.size :]))
        except msgspec.MsgspecError as error:
            raise StoreCorrupt(f"Group {name[:80]!r}", position, str(error)) from error

    def page(self, place: int, count: int) -> tuple[int | None, list[str]]:
        """Some names from a place on, and the next place; None at the end."""
        found: list[str] = []
        for at, held in self._roster.walk(place):
            if count <= 0:
                return at, found
            count -= 1
            if held is not None:
                found.append(held.name)
        return None, found

    # Changing

    def save(self, name: str, group: SavedGroup) -> None:
        """Save a group."""
        self._append(GroupChangeKind.SAVE, (name, pack(group)))

    def remove(self, names: Iterable[str]) -> None:
        """Delete groups."""
        part: list[str] = []
        size = 0
        for name in names:
            if name in self._by_name:
                part.append(name)
                size += len(name) * 4 + 8
            if size >= _REMOVALS_BYTES_MAX:
                self._append(GroupChangeKind.REMOVE, part)
                part, size = [], 0
        if part:
            self._append(GroupChangeKind.REMOVE, part)

    def _append(self, kind: GroupChangeKind, value: object) -> None:
        self._journal.append_state(TOPIC, bytes((FORMAT, kind)) + _encode(value))

    # The fold

    def apply(self, change: Change) -> None:
        """Apply one change."""
        what, body = "Group record", change.body
        check_format(body[0] if body else 0, FORMAT, what, change.position)
        try:
            kind = GroupChangeKind(body[1] if len(body) > 1 else 0)
            value = _DECODERS[kind].decode(body[2:])
        except ValueError as error:
            raise StoreCorrupt(what, change.position, str(error)) from error
        if kind is GroupChangeKind.SAVE:
            name, data = value
            self._put(name, _HEAD.pack(change.position, change.store_ms) + data)
            self._changed(name)
            return
        for name in value:
            self._changed(name)
            held = self._by_name.get(name)
            if held is not None and held.position < change.position:
                self._roster.remove(held.place)
                del self._by_name[name]

    def _changed(self, name: str) -> None:
        for callback in self.on_changed:
            callback(name)

    def _put(self, name: str, data: bytes) -> None:
        held = self._by_name.get(name)
        if held is None:
            held = self._by_name[name] = _GroupItem(name, data)
            held.place = self._roster.add(held)
        elif data[:8] > held.data[:8]:
            # Positions are never negative, so their bytes sort as they do.
            held.data = data

    def snapshot(self) -> Iterator[bytes]:
        """Yield all records, in slices of some hundred kilobytes."""
        for part in sliced(self._encoded(), self._slice_places):
            yield bytes((FORMAT,)) + pack_array(part)

    def _encoded(self) -> Iterator[Measured[bytes]]:
        for _, held in self._roster.walk():
            item = None if held is None else _encode((held.name, held.data))
            yield 1, len(item or b""), item

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace everything by what the slices hold."""
        self.clear()
        what = "Group snapshot"
        for data in slices:
            check_format(data[0] if data else 0, FORMAT, what)
            try:
                part = _decode_slice(memoryview(data)[1:])
            except msgspec.MsgspecError as error:
                raise StoreCorrupt(what, 0, str(error)) from error
            for name, record in part:
                self._put(name, record)

    def clear(self) -> None:
        """Forget everything."""
        self._by_name.clear()
        self._roster.clear()

    def items(self) -> Iterator[tuple[str, bytes]]:
        """Every record by name, to compare two states."""
        return ((held.name, held.data) for held in self._by_name.values())
