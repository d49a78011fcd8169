"""Walks a log offline: read-only, past any damage.

The files are mapped read-only. Bytes that are not a valid entry are yielded as damaged, up to the
next valid one: an entry contains its own position, so that place is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import BLANK_SIZE, Entry, EntryError
from rockgate.store.files.interface import Buffer, Directory, Mapping
from rockgate.store.log.segments import Segment, usual_size

COMMITLOG: Final = "commitlog"

OnProgress = Callable[[int], None]
"""Called with the number of further bytes of the log that were read."""

_MAGICS: Final = tuple(
    magic.to_bytes(4, "big")
    for magic in (envelope.MAGIC_V1, envelope.MAGIC_V2, envelope.MAGIC_BATCH)
)
_MAGIC_AT: Final = 4
_STEP: Final = 1 << 20


class Whole(NamedTuple):
    """An entry with valid checksums, at its own position."""

    position: int
    size: int
    entry: Entry
    view: memoryview
    """The segment; the entry's places are relative to it."""


class Filler(NamedTuple):
    """The end of a segment in which the next entry did not fit."""

    position: int
    size: int


class Damaged(NamedTuple):
    """Invalid bytes up to the next valid entry, or to the segment's end."""

    position: int
    size: int
    reason: str


class Unwritten(NamedTuple):
    """Zeros: nothing was written."""

    position: int
    size: int


Piece = Whole | Filler | Damaged | Unwritten


class Problem(NamedTuple):
    """A file that does not fit into the sequence, or a missing one."""

    file: str
    position: int
    """Where the log can be truncated to remove it."""
    reason: str
    good_to: int | None = None
    """For a file of another size: the position after the last byte that is usable."""
    is_short: bool = False
    """Whether the file is too short."""


class EmptyMapping:
    """An empty file, which cannot be mapped."""

    size = 0
    view = memoryview(b"")
    bare: memoryview | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def write(self, at: int, data: Buffer) -> None:
        """Never called: there are no bytes."""
        raise AssertionError("an empty file is read-only")

    def sync(self, at: int = 0, size: int | None = None) -> None:
        """Do nothing: nothing is written."""

    def populate(self, at: int, size: int, *, coarsely: bool = False) -> None:
        """Do nothing: there are no pages."""

    def prefetch(self, at: int, size: int) -> None:
        """Do nothing: there are no pages."""

    def close(self) -> None:
        """Do nothing: nothing is mapped."""


class Row:
    """The segments on disk, mapped read-only. `problems` are files that do not fit."""

    def __init__(self, directory: Directory, segment_bytes: int = 0) -> None:
        """Map the files; by default the segment size is derived from them: see `usual_size`."""
        self.path = directory.path
        self.segments: list[Segment] = []
        self.problems: list[Problem] = []
        self._damaged: list[tuple[int, int]] = []
        for name in directory.names():
            if name.isdigit() and len(name) == 20:
                self.segments.append(Segment(int(name), _mapped(directory, name)))
        self.segment_size = segment_bytes or usual_size(
            [each.size for each in self.segments], [each.start for each in self.segments]
        )
        for index, segment in enumerate(self.segments):
            self._look_at(segment, self.segments[index - 1] if index else None)

    def _look_at(self, segment: Segment, before: Segment | None) -> None:
        start, size = segment.start, segment.size
        path = f"{self.path}/{segment.mapping.name}"
        if before is not None and before.start + self.segment_size < start:
            end = before.start + self.segment_size
            reason = f"gap before {segment.mapping.name}: a segment is missing"
            self.problems.append(Problem(path, end, reason))
        if self.segment_size and start % self.segment_size:
            reason = f"file name is not a multiple of {self.segment_size}"
            self.problems.append(Problem(path, start - start % self.segment_size, reason))
        if size != self.segment_size:
            reason = f"file is {size:,} bytes; the segment size is {self.segment_size:,}"
            good_to = start + min(size, self.segment_size)
            is_short = size < self.segment_size
            self.problems.append(
                Problem(path, start, reason if size else "file is empty", good_to, is_short)
            )

    @property
    def start(self) -> int:
        """The log's first position."""
        return self.segments[0].start if self.segments else 0

    @property
    def end(self) -> int:
        """The position after the last file."""
        return self.segments[-1].end if self.segments else 0

    def file_at(self, position: int) -> str:
        """Return the path of the file that holds a position."""
        segment = self.find(position)
        return self.path if segment is None else f"{self.path}/{segment.mapping.name}"

    def find(self, position: int) -> Segment | None:
        """Return the segment that holds a position."""
        for segment in self.segments:
            if segment.start <= position < segment.end:
                return segment
        return None

    def walk(self, start: int, end: int) -> Iterator[Piece]:
        """Yield everything between two positions, segment by segment."""
        for segment in self.segments:
            if segment.end > start and segment.start < end:
                yield from walk(segment, max(start, segment.start), min(end, segment.end))

    def note_damage(self, damaged: Damaged) -> None:
        """Record damaged bytes, so that they are reported once, not for each reference to them."""
        self._damaged.append((damaged.position, damaged.position + damaged.size))

    def is_damaged(self, position: int) -> bool:
        """Say whether a position is in bytes that are known to be damaged."""
        return any(start <= position < end for start, end in self._damaged)

    def close(self) -> None:
        """Close the files."""
        for segment in self.segments:
            segment.mapping.close()


def _mapped(directory: Directory, name: str) -> Mapping:
    try:
        return directory.map(name, writable=False)
    except ValueError:
        return EmptyMapping(name)


def walk(segment: Segment, start: int, end: int) -> Iterator[Piece]:
    """Yield the pieces of a segment that start between two positions."""
    position = start
    while position < end:
        piece = piece_at(segment, position)
        yield piece
        position += piece.size


def piece_at(segment: Segment, position: int) -> Piece:
    """Return what starts at a position of a segment."""
    at = position - segment.start
    view, size = segment.mapping.view, segment.size
    left = size - at
    if left < BLANK_SIZE:
        return Damaged(position, left, f"{left} bytes left, too few for a filler")
    total, magic = envelope.peek(view, at)
    if magic == envelope.MAGIC_BLANK and total == left:
        return Filler(position, left)
    if not total and not magic:
        written = _first_written(view, at)
        if written == size:
            return Unwritten(position, left)
        found = _next_whole(segment, written)
        reason = "unwritten space before written entries"
        return Damaged(position, found - position, reason)
    try:
        return Whole(position, total, whole_entry(segment, position), view)
    except EntryError as error:
        found = _next_whole(segment, at + 1)
        return Damaged(position, found - position, error.reason)


def whole_entry(segment: Segment, position: int) -> Entry:
    """Read and verify the entry at a position; EntryError if it is invalid."""
    view = segment.mapping.view
    entry = envelope.read(view, position - segment.start, segment.size)
    if entry.position != position:
        raise EntryError(f"entry claims position {entry.position}")
    envelope.check(view, entry)
    return entry


def _first_written(view: memoryview, at: int) -> int:
    """Return the place of the first byte that is not zero; the end if all are."""
    zeros = bytes(_STEP)
    while at < len(view):
        piece = bytes(view[at : at + _STEP])
        if piece != zeros[: len(piece)]:
            return at + len(piece) - len(piece.lstrip(b"\0"))
        at += _STEP
    return len(view)


def _next_whole(segment: Segment, at: int) -> int:
    """Return the position of the next valid entry or filler; the segment's end if there is none."""
    view = segment.mapping.view
    while at < segment.size:
        # The pieces overlap, so that no size and magic is split between two.
        piece = bytes(view[at : at + _STEP + BLANK_SIZE - 1])
        for place in _candidates(piece):
            position = segment.start + at + place
            if _stands(segment, position):
                return position
        at += _STEP
    return segment.end


def _candidates(piece: bytes) -> list[int]:
    """Return the places, in order, at which a size and a known magic may start."""
    found = []
    for magic in (*_MAGICS, envelope.MAGIC_BLANK.to_bytes(4, "big")):
        place = piece.find(magic, _MAGIC_AT)
        while place >= 0:
            found.append(place - _MAGIC_AT)
            place = piece.find(magic, place + 1)
    return sorted(found)


def _stands(segment: Segment, position: int) -> bool:
    at = position - segment.start
    if segment.size - at < BLANK_SIZE:
        return False
    total, magic = envelope.peek(segment.mapping.view, at)
    if magic == envelope.MAGIC_BLANK:
        return total == segment.size - at
    try:
        whole_entry(segment, position)
    except EntryError:
        return False
    return True
