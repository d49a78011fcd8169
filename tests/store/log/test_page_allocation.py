"""Pages ahead of the writer: who gets large pieces, and who gets single pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from rockgate.store.clock import ManualClock
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.files.mapped import FINE_STEP
from rockgate.store.log.page_allocation import HASTE_BYTES, Allocator
from rockgate.store.log.segments import Segments
from rockgate.store.testing.memory_files import MemoryDisk

WINDOW_MS = 100
HASTY = HASTE_BYTES * WINDOW_MS // 1000


class Writer:
    """A writer, and how pages were made ready for it."""

    def __init__(self) -> None:
        self.end = 0
        self.awaited = 0
        self.clock = ManualClock()
        self.coarsely: list[bool] = []
        segments = Segments(MemoryDisk().root(), 1 << 16, 1 << 12)
        vars(segments)["prepare"] = self._noted
        self.allocator = Allocator(
            segments, self.clock, end=lambda: self.end, awaited_count=lambda: self.awaited
        )
        self.allocator.wake()

    def _noted(self, written: int, *, coarsely: bool) -> None:
        assert written == self.end
        self.coarsely.append(coarsely)

    def write(self, size: int, *, waits: bool = False) -> None:
        self.end += size
        self.awaited += waits
        self.clock.advance(WINDOW_MS)
        self.allocator.wake()


def test_the_first_pages_are_made_singly() -> None:
    assert Writer().coarsely == [False]


def test_a_writer_in_haste_gets_large_pieces() -> None:
    writer = Writer()
    writer.write(HASTY)
    assert writer.coarsely[-1] is True


def test_a_slow_writer_gets_single_pages() -> None:
    writer = Writer()
    writer.write(HASTY - 1)
    assert writer.coarsely[-1] is False


def test_a_writer_whose_appends_are_waited_for_gets_single_pages() -> None:
    writer = Writer()
    writer.write(2 * HASTY, waits=True)
    assert writer.coarsely[-1] is False
    writer.write(2 * HASTY)
    assert writer.coarsely[-1] is True


@pytest.mark.parametrize("coarsely", [False, True])
def test_populating_leaves_what_was_written(tmp_path: Path, coarsely: bool) -> None:
    """The writer may have overtaken the allocator."""
    size = 3 * FINE_STEP + 4096
    mapping = DiskDirectory(tmp_path).allocate("file", size)
    mapping.write(FINE_STEP - 2, b"kept")
    mapping.populate(4096, size - 4096, coarsely=coarsely)
    assert bytes(mapping.view[FINE_STEP - 4 : FINE_STEP + 4]) == b"\0\0kept\0\0"
    assert not any(mapping.view[FINE_STEP + 2 :])
    mapping.close()
