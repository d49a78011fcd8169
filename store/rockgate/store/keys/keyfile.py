"""A file of the key index: RocketMQ's IndexFile, with a seal in an unused field.

docs/internals/key-index.md specifies it.

    header   40 bytes      begin and end time, begin and end position, used slots, entry count
    slots    4 x slots     the newest entry of each slot, 0 for none
    entries  20 x entries  key hash, position, seconds since begin, previous entry of the slot

Entry 0 means "none" in a slot, so its space is free for the seal: two checksums, of the previous
and of the next header. Only `flush` changes the header, after everything it counts is on disk, so
one of the two matches after any crash. Entries beyond the header's count are ignored and added
again from the log.

A file contains hashes, not keys: callers must compare the key of what they find.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final, NamedTuple
from zlib import crc32

from rockgate.protocol.entry.checksum import crc32 as checksum
from rockgate.store.files.interface import Mapping

HEADER: Final = struct.Struct(">qqqqII")
SLOT: Final = struct.Struct(">I")
ENTRY: Final = struct.Struct(">IqiI")
_read_slot: Final = SLOT.unpack_from
_write_slot: Final = SLOT.pack_into
_write_entry: Final = ENTRY.pack_into
_SEAL: Final = struct.Struct(">4sIIII")
_SEAL_MAGIC: Final = b"RGKI"
_HASHES_STEP: Final = 4096
_POSITION: Final = struct.Struct(">q")
_POSITION_AT: Final = 4
_HEADER_POSITION_AT: Final = 24

UNORDERED: Final = 1 << 31
"""In the header's slot count: some entry is older than the one before, as relocated ones are."""

_SECONDS_MAX: Final = 2**31 - 1
_HASH_MASK: Final = 0x7FFFFFFF
_WORDS: Final = ENTRY.size // 4


class Shape(NamedTuple):
    """How many slots and entries a file holds; entry 0 is never used."""

    slot_count: int
    entry_count: int

    @property
    def entries_at(self) -> int:
        """Where entry 0 starts."""
        return HEADER.size + SLOT.size * self.slot_count

    @property
    def size(self) -> int:
        """The size of the file."""
        return self.entries_at + ENTRY.size * self.entry_count


def key_hash(topic: bytes, key: bytes) -> int:
    """Return the hash of a topic's key: CRC-32 of `topic#key` without its highest bit."""
    return crc32(topic + b"#" + key) & _HASH_MASK


class KeyFile:
    """One mapped file, written by one thread, flushed by another, read by any."""

    __slots__ = (
        "begin_ms",
        "count",
        "end_ms",
        "header",
        "is_unordered",
        "mapping",
        "position",
        "shape",
        "slots",
        "start",
        "used_slots",
        "view",
    )

    def __init__(self, mapping: Mapping, shape: Shape, start: int) -> None:
        self.mapping = mapping
        self.view = mapping.view
        self.slots = mapping.view[HEADER.size : shape.entries_at].cast("I")
        """The slots, in the file's byte order."""
        self.shape = shape
        self.start = start
        """No entry before this position is indexed here; part of the file's name."""
        self.position = start
        """This file has every key of the log from `start` up to this position."""
        self.count = 1
        """The index of the next entry."""
        self.begin_ms = 0
        self.end_ms = 0
        self.used_slots = 0
        self.is_unordered = False
        self.header = bytes(HEADER.size)
        """The header as it is on disk."""

    @property
    def durable_position(self) -> int:
        """Keys of everything from `start` to this position are on disk."""
        return int(_POSITION.unpack_from(self.header, _HEADER_POSITION_AT)[0])

    @property
    def is_full(self) -> bool:
        """Whether there is no space for another entry."""
        return self.count >= self.shape.entry_count

    # Writing

    def put(self, topic: bytes, keys: Sequence[bytes], position: int, store_ms: int) -> int:
        """Add an entry for each key, as the newest of its slot; return how many fitted."""
        seconds = self._seconds(store_ms)
        view, index, used_slots = self.view, self.count, self.used_slots
        slot_count, entry_count = self.shape
        room = entry_count - index
        if len(keys) > room:
            keys = keys[:room]
        prefix = topic + b"#"
        at = HEADER.size + SLOT.size * slot_count + ENTRY.size * index
        for key in keys:
            key_crc = checksum(prefix + key) & _HASH_MASK
            slot_at = HEADER.size + SLOT.size * (key_crc % slot_count)
            (before,) = _read_slot(view, slot_at)
            if before == 0 or before >= index:
                used_slots += 1
                before = 0
            _write_entry(view, at, key_crc, position, seconds, before)
            _write_slot(view, slot_at, index)
            index += 1
            at += ENTRY.size
        # The flushing thread assumes that entries below the count are written.
        self.used_slots = used_slots
        self.count = index
        return len(keys)

    def put_all(
        self, topic: bytes, keys: Sequence[bytes], positions: Sequence[int], store_ms: int
    ) -> None:
        """Add an entry for each key at its position: `put` for many keys that fit.

        By column, in the file's byte order: a third of the time of adding them one by one.
        """
        seconds = self._seconds(store_ms)
        slots, index, count = self.slots, self.count, len(keys)
        slot_count, entry_count = self.shape
        assert index + count <= entry_count, "room for all"
        prefix = checksum(topic + b"#")
        hashes = [crc & _HASH_MASK for crc in map(checksum, keys, repeat(prefix))]
        numbers = _swapped(array("I", range(index, index + count)))
        found = []
        for slot, number in zip([crc % slot_count for crc in hashes], numbers, strict=True):
            found.append(slots[slot])
            slots[slot] = number
        befores = _swapped(array("I", found))
        if max(befores) >= index:
            for own, before in enumerate(befores, index):
                if before >= own:
                    befores[own - index] = 0
        places = array("I", _swapped(array("q", positions)).tobytes())
        entries = array("I", ENTRY.pack(0, 0, seconds, 0)) * count
        entries[0::_WORDS] = _swapped(array("I", hashes))
        entries[1::_WORDS] = places[0::2]
        entries[2::_WORDS] = places[1::2]
        self.used_slots += befores.count(0)
        entries[4::_WORDS] = _swapped(befores)
        at = self.shape.entries_at + ENTRY.size * index
        self.view[at : at + ENTRY.size * count] = entries.tobytes()
        # The flushing thread assumes that entries below the count are written.
        self.count = index + count

    def _seconds(self, store_ms: int) -> int:
        """Extend the file's time range, and return the time in seconds as entries store it."""
        if store_ms >= self.end_ms:
            if self.count == 1:
                self.begin_ms = store_ms
            self.end_ms = store_ms
        else:
            self.is_unordered = True
        seconds = (store_ms - self.begin_ms) // 1000
        if not -_SECONDS_MAX <= seconds <= _SECONDS_MAX:
            seconds = _SECONDS_MAX if seconds > 0 else -_SECONDS_MAX
        return seconds

    def flush(self) -> bool:
        """Make all entries durable, then the header that counts them; say if there were any."""
        # The order matters: entries before a position read first are below a count read later.
        position = self.position
        header = HEADER.pack(
            self.begin_ms,
            self.end_ms,
            self.start,
            position,
            self.used_slots | (UNORDERED if self.is_unordered else 0),
            self.count,
        )
        if header == self.header:
            return False
        self._write_header(header)
        return True

    def _write_header(self, header: bytes) -> None:
        seal = _SEAL.pack(_SEAL_MAGIC, *self.shape, crc32(self.header), crc32(header))
        self.mapping.write(self.shape.entries_at, seal)
        self.mapping.sync()
        self.mapping.write(0, header)
        self.mapping.sync()
        self.header = header

    # Reading

    def find(self, topic: bytes, key: bytes, begin_ms: int, end_ms: int) -> Iterator[int | None]:
        """Yield positions, newest first, and None for every entry skipped.

        Invalid values end the chain: a damaged index may miss entries, but it never loops and never
        leads outside its range of the log.
        """
        if self.end_ms < begin_ms or (self.begin_ms > end_ms and not self.is_unordered):
            return
        view, count = self.view, self.count
        entries_at = self.shape.entries_at
        key_crc = key_hash(topic, key)
        slot_at = HEADER.size + SLOT.size * (key_crc % self.shape.slot_count)
        # A page that is not resident is loaded without the interpreter lock.
        self.mapping.prefetch(slot_at, SLOT.size)
        (index,) = SLOT.unpack_from(view, slot_at)
        index_max = count
        begin_s = (begin_ms - self.begin_ms) // 1000
        end_s = (end_ms - self.begin_ms) // 1000
        while 0 < index < index_max:
            index_max = index
            crc, position, seconds, index = ENTRY.unpack_from(view, entries_at + ENTRY.size * index)
            if crc == key_crc and begin_s <= seconds <= end_s:
                if self.start <= position <= self.position:
                    yield position
                    continue
            elif seconds < begin_s and not self.is_unordered:
                return
            yield None

    def position_at(self, index: int) -> int:
        """Return the position of an entry."""
        at = self.shape.entries_at + ENTRY.size * index + _POSITION_AT
        return int(_POSITION.unpack_from(self.view, at)[0])

    # Opening

    def load(self) -> bool:
        """Load the header; False if it is not one that `flush` wrote."""
        header = bytes(self.view[: HEADER.size])
        seal = bytes(self.view[self.shape.entries_at :][: _SEAL.size])
        magic, slot_count, entry_count, *checksums = _SEAL.unpack(seal)
        if magic != _SEAL_MAGIC or Shape(slot_count, entry_count) != self.shape:
            return False
        if crc32(header) not in checksums:
            return False
        begin_ms, end_ms, start, position, used, count = HEADER.unpack(header)
        if start != self.start or not 1 <= count <= self.shape.entry_count or position < start:
            return False
        self.begin_ms, self.end_ms, self.position, self.count = begin_ms, end_ms, position, count
        self.is_unordered = bool(used & UNORDERED)
        self.used_slots = used & ~UNORDERED
        self.header = header
        return True

    def cut(self, position: int) -> None:
        """Drop every entry at or after a position, durably, and repair the slots.

        Entries are in the order of positions, so the remaining ones are a prefix.
        """
        self.position = min(self.position, position)
        low, high = 1, self.count
        while low < high:
            middle = (low + high) // 2
            if self.position_at(middle) < position:
                low = middle + 1
            else:
                high = middle
        self.count = low
        if low == 1:
            self.begin_ms, self.end_ms, self.is_unordered = 0, 0, False
        # The header comes first: slots that point beyond its count are repaired at every start.
        self.flush()
        self._repair_slots()
        # A killed process may have left a header that was never synced.
        self.mapping.sync()

    def _repair_slots(self) -> None:
        """Rewrite all slots if one of them points to an entry that does not exist."""
        slot_count, count = self.shape.slot_count, self.count
        if max(_swapped(array("I", bytes(self.view[HEADER.size : self.shape.entries_at])))) < count:
            return
        slots = array("I", bytes(SLOT.size * slot_count))
        index = 1
        while index < count:
            step = min(_HASHES_STEP, count - index)
            at = self.shape.entries_at + ENTRY.size * index
            # Thousands of hashes per call: a full file is repaired in less than half a second.
            for key_crc in struct.unpack_from(">" + "I16x" * step, self.view, at):
                slots[key_crc % slot_count] = index
                index += 1
        self.used_slots = slot_count - slots.count(0)
        self.mapping.write(HEADER.size, _swapped(slots).tobytes())


def _swapped(numbers: array[int]) -> array[int]:
    """Convert between the machine's byte order and the file's, in place."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
