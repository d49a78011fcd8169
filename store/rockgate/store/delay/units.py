"""Due times in mapped files, 32 bytes each, reused when free.

docs/internals/delay.md has the layout. The files are scratch space: their content comes from
snapshot and log, a start creates them again, in memory if the disk is full, and they are never
synced. So they use the machine's byte order, which allows many units to be filled by column.
"""

from __future__ import annotations

import logging
import mmap
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from rockgate.store.errors import StoreFull
from rockgate.store.files.interface import Directory

_log = logging.getLogger(__name__)

UNIT: Final = struct.Struct("=qQqII")
NONE: Final = 0xFFFFFFFF
"""No unit; as a queue number: the unit is free."""
FILE_UNITS: Final = 1 << 18
_NEXT: Final = struct.Struct("=I")
_NEXT_AT: Final = 28
_FREE: Final = struct.Struct("=II")
_QUEUE_AT: Final = 24

Fields = tuple[int, int, int, int, int]
"""Due time, sequence, offset, queue, next unit."""
Columns = tuple[list[int], list[int], list[int], list[int]]
"""Due times, sequences, offsets and queues of units."""


class Scratch(Protocol):
    """Storage for units: a mapped file, or memory."""

    @property
    def view(self) -> memoryview:
        """Its bytes."""

    def close(self) -> None:
        """Close it."""


class _Memory:
    """Memory in place of a file; untouched pages take no memory."""

    def __init__(self, size: int) -> None:
        self.view = memoryview(mmap.mmap(-1, size))

    def close(self) -> None:
        """Release the memory once the last view is gone."""
        self.view = memoryview(b"")


class Units:
    """All units of one store, by number."""

    def __init__(self, directory: Directory, file_units: int = FILE_UNITS) -> None:
        self._directory = directory
        self._file_units = file_units
        self._files: list[Scratch] = []
        self._views: list[memoryview] = []
        self._free = NONE
        self._end = 0
        self.used_count = 0
        for name in directory.names():
            directory.remove(name)

    def __len__(self) -> int:
        """How many units were ever used, including free ones."""
        return self._end

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return len(self._files) * self._file_units * UNIT.size

    def reserve(self, count: int) -> None:
        """Reserve space for more units; StoreFull, with nothing changed, if there is none."""
        self._make_room(count, self._allocate)

    def _make_room(self, count: int, make: Callable[[str, int], Scratch]) -> None:
        free = len(self._files) * self._file_units - self.used_count
        while free < count:
            mapping = make(f"{len(self._files):08d}", self._file_units * UNIT.size)
            self._files.append(mapping)
            self._views.append(mapping.view)
            free += self._file_units

    def _allocate(self, name: str, size: int) -> Scratch:
        return self._directory.allocate(name, size)

    def _allocate_any(self, name: str, size: int) -> Scratch:
        """Create a file, or fall back to memory: a start must schedule what the log contains."""
        try:
            return self._allocate(name, size)
        except StoreFull as error:
            _log.error("Keeping part of the delivery schedule in memory: %s", error)
            return _Memory(size)

    def add(
        self, due_ms: int, sequence: int, offset: int, queue: int, following: int = NONE
    ) -> int:
        """Fill a unit that links to another one or to none, and return its number."""
        unit = self._free
        if unit != NONE:
            self._free = self.read(unit)[4]
        else:
            if self._end >= len(self._files) * self._file_units:
                self._make_room(1, self._allocate_any)
            unit = self._end
            self._end += 1
        number, index = divmod(unit, self._file_units)
        # Directly into the mapping: scratch files do not take part in crash tests.
        UNIT.pack_into(
            self._views[number], index * UNIT.size, due_ms, sequence, offset, queue, following
        )
        self.used_count += 1
        return unit

    def fill(
        self,
        dues_ms: Sequence[int],
        sequences: Sequence[int],
        offsets: Sequence[int],
        queues: Sequence[int],
        following: Sequence[int],
    ) -> None:
        """Fill units that were never used, from `len` on: `add` for many."""
        count = len(dues_ms)
        if self._end + count > len(self._files) * self._file_units:
            self._make_room(self._end + count - self.used_count, self._allocate_any)
        done = 0
        while done < count:
            number, index = divmod(self._end, self._file_units)
            step = min(count - done, self._file_units - index)
            some = slice(done, done + step)
            at = index * UNIT.size
            view = self._views[number][at : at + step * UNIT.size]
            # A column is one assignment, with a stride of whole units.
            wide, narrow = view.cast("q"), view.cast("I")
            wide[0::4] = memoryview(array("q", dues_ms[some]))
            wide[1::4] = memoryview(array("q", sequences[some]))
            wide[2::4] = memoryview(array("q", offsets[some]))
            narrow[6::8] = memoryview(array("I", queues[some]))
            narrow[7::8] = memoryview(array("I", following[some]))
            self._end += step
            self.used_count += step
            done += step

    def read(self, unit: int) -> Fields:
        """Return the fields of a unit."""
        number, index = divmod(unit, self._file_units)
        return UNIT.unpack_from(self._views[number], index * UNIT.size)

    def link(self, unit: int, following: int) -> None:
        """Link a unit to another one, or to none."""
        number, index = divmod(unit, self._file_units)
        _NEXT.pack_into(self._views[number], index * UNIT.size + _NEXT_AT, following)

    def free(self, unit: int) -> None:
        """Free a unit for reuse; no list may contain it."""
        number, index = divmod(unit, self._file_units)
        _FREE.pack_into(self._views[number], index * UNIT.size + _QUEUE_AT, NONE, self._free)
        self._free = unit
        self.used_count -= 1

    def some(self, start: int, count: int) -> list[Fields]:
        """Return units from a number on, free ones too, within one file and up to a maximum."""
        number, index = divmod(start, self._file_units)
        count = min(count, self._file_units - index, self._end - start)
        at = index * UNIT.size
        return list(UNIT.iter_unpack(self._views[number][at : at + count * UNIT.size]))

    def columns(self, start: int, count: int) -> Columns:
        """Return the same as `some` but for the links, by column."""
        number, index = divmod(start, self._file_units)
        count = min(count, self._file_units - index, self._end - start)
        at = index * UNIT.size
        view = self._views[number][at : at + count * UNIT.size]
        wide, narrow = view.cast("q"), view.cast("I")
        return wide[0::4].tolist(), wide[1::4].tolist(), wide[2::4].tolist(), narrow[6::8].tolist()

    def clear(self) -> None:
        """Drop all units, and remove their files."""
        self._views = []
        for number, mapping in enumerate(self._files):
            mapping.close()
            if not isinstance(mapping, _Memory):
                self._directory.remove(f"{number:08d}")
        self._files = []
        self._views = []
        self._free = NONE
        self._end = self.used_count = 0

    def close(self) -> None:
        """Close the files."""
        self._views = []
        for mapping in self._files:
            mapping.close()
        self._files = []
        self._views = []
        self._end = self.used_count = 0
