"""A batch entry as RocketMQ messages, converted lazily as it is read.

A batch is opened once. Its records become messages in chunks of about half a millisecond, each one
piece of bytes in which the messages lie one behind the other, so that a pull without a filter is a
slice and a pull of 32 messages does not pay for the ten thousand behind them. All that the messages
of a batch have in common is packed once.

Control batches have no messages, and delayed records are left out. Of a batch that turns out to be
damaged, the messages before the damage are returned. In each case readers skip all its offsets.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from rockgate.gateway.delay.headers import open_batch
from rockgate.gateway.transcode.address import POSITION_BITS, UNNAMED
from rockgate.gateway.transcode.dictionary import (
    is_word,
    pack_record,
    pack_usual,
)
from rockgate.gateway.transcode.message_head import code_of, frame_of, marker
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    DELAYED,
    Entry,
    body_checksum,
    pack_size,
    parse_properties,
)
from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import BatchHeader, read_header
from rockgate.protocol.kafka.records.bounds import BOUNDS, LIGHT, Bounds
from rockgate.protocol.kafka.records.compression import Plain
from rockgate.protocol.kafka.records.record import (
    Record,
    open_records,
    skip_records,
    walk_records,
)
from rockgate.protocol.kafka.records.skimming import Marks, index_of, mark_records

CHUNK_COUNT: Final = 250
CHUNK_BYTES: Final = 1 << 20
"""Records and headers of one chunk, and its approximate size: what is translated at once."""
AcceptsCode = Callable[[int], bool]
"""Whether a message with this tag code may match; 0 is the code of no tag."""
Accepts = Callable[[Mapping[str, str]], bool | None]
"""Whether a message with these properties matches; None ends the response before it."""

_NO_HEADER: Final = BatchHeader(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
_OVERHEAD: Final = 2048
_RECORD_OVERHEAD: Final = 120
"""Approximate memory of an opened batch besides its bytes, and per message of a chunk."""


class Cut(NamedTuple):
    """Messages of one entry, for one response."""

    buffers: list[memoryview]
    size: int
    message_count: int
    next_offset: int
    """The offset to continue at: after all messages that were read, matching or not."""


class Origin(NamedTuple):
    """The transaction of a transactional batch."""

    topic: bytes
    position: int
    queue_id: int
    base: int
    producer_id: int


class _Chunk(NamedTuple):
    first: int
    """Index of its first record."""
    end: int
    """Index after its last record."""
    offsets: list[int]
    places: list[int]
    """Where each message starts, and where the last one ends."""
    codes: list[int]
    data: memoryview


class Messages:
    """The messages of one batch entry."""

    def __init__(
        self,
        entry: Entry,
        header: BatchHeader,
        data: Plain,
        bytes_max: int,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self._message_bytes_max = bytes_max
        self._bounds = bounds
        self.base = entry.queue_offset
        self.end = entry.queue_offset + entry.offset_count
        """The offset after the batch."""
        # The offset of the envelope is authoritative.
        self._header = header._replace(base_offset=entry.queue_offset)
        self._data = data
        self._count = header.record_count if data else 0
        self._left = self._count
        """Records that are not in a chunk yet."""
        self._is_dense = header.record_count == header.last_offset_delta + 1
        self._chunks: list[_Chunk] = []
        self._marks = Marks(array("Q", (0,)), array("Q", (0,)))
        """Where every `CHUNK_COUNT`th record starts in the data; in a light batch the first."""
        if data and not (self._is_dense and self._count <= LIGHT.records_max):
            self._marks = mark_records(data, header, CHUNK_COUNT)
        self._ends: dict[int, int] = {}
        """Where the records after chunks start, by index."""
        self._frame = frame_of(entry)
        self.size = len(data) + _OVERHEAD
        """Approximate memory that it takes."""
        self.origin: Origin | None = None
        """Of a batch that belongs to a transaction."""
        if header.is_transactional and not header.is_control:
            self.origin = Origin(
                entry.topic, entry.position, entry.queue_id, self.base, header.producer_id
            )
        self.damage: MalformedBatch | None = None
        """Why the records from some index on cannot be decoded."""

    @classmethod
    def open(
        cls,
        view: memoryview,
        *,
        message_bytes_max: int,
        bounds: Bounds = BOUNDS,
        reading: Bounds = BOUNDS,
    ) -> Messages:
        """Open the batch of the entry that fills `view`; MalformedBatch if it is invalid.

        `bounds` hold while it is opened, `reading` when its records are read later.
        """
        entry = envelope.read(view)
        body = view[entry.body_at : entry.body_at + entry.body_size]
        header = read_header(body)
        data: Plain = b""
        if entry.sys_flag & DELAYED:
            opened = open_batch(body, bounds=bounds)
            data = opened.rest_data()
            header = header._replace(record_count=opened.rest_count)
        is_empty = header.is_control or not header.record_count
        if not is_empty and not data:
            data = open_records(body, header, bounds=bounds)
        if not data and not is_empty:
            raise MalformedBatch(f"{header.record_count} records in an empty batch.")
        if header.last_offset_delta != entry.offset_count - 1 or header.record_count < 0:
            raise MalformedBatch(
                f"{header.record_count} records with a last offset delta of "
                f"{header.last_offset_delta}, but the entry has {entry.offset_count} offsets."
            )
        return cls(entry, header, data, message_bytes_max, reading)

    @classmethod
    def unreadable(cls, view: memoryview) -> Messages:
        """Return no messages for a batch that cannot be opened: its offsets are skipped."""
        return cls(envelope.read(view), _NO_HEADER, b"", 0)

    def select(
        self,
        offset: int,
        *,
        count_max: int,
        size_max: int,
        accepts_code: AcceptsCode | None = None,
        accepts: Accepts | None = None,
    ) -> Cut:
        """Return messages from `offset` on: at least one, even a large one, unless none is wanted.

        At most one chunk is translated for it, so the response may end inside the batch, and with a
        filter it may be empty; `next_offset` is after `offset` unless the filter ended the
        response.
        """
        chunk = self._chunk(offset)
        if chunk is None:
            return Cut([], 0, 0, max(self.end, offset + 1))
        places = chunk.places
        start = bisect_left(chunk.offsets, offset)
        if accepts_code is None and accepts is None:
            stop = min(start + count_max, len(chunk.offsets))
            if places[stop] - places[start] > size_max:
                stop = bisect_right(places, places[start] + size_max, start, stop) - 1
                stop = max(stop, start + 1)
            piece = chunk.data[places[start] : places[stop]]
            return Cut([piece], len(piece), stop - start, self._behind(chunk, stop))
        buffers: list[memoryview] = []
        size, run_at, index = 0, -1, start
        count = 0
        for index in range(start, len(chunk.offsets)):
            is_wanted = accepts_code is None or accepts_code(chunk.codes[index])
            is_enough = False
            if is_wanted and accepts is not None:
                verdict = accepts(self._properties(chunk, index))
                is_wanted, is_enough = bool(verdict), verdict is None
            length = places[index + 1] - places[index]
            is_full = is_enough or (
                is_wanted and (count >= count_max or (count and size + length > size_max))
            )
            if run_at >= 0 and (is_full or not is_wanted):
                buffers.append(chunk.data[places[run_at] : places[index]])
                run_at = -1
            if is_full:
                return Cut(buffers, size, count, chunk.offsets[index])
            if is_wanted:
                run_at = index if run_at < 0 else run_at
                size += length
                count += 1
        if run_at >= 0:
            buffers.append(chunk.data[places[run_at] :])
        return Cut(buffers, size, count, self._behind(chunk, len(chunk.offsets)))

    def message(self, offset: int) -> memoryview | None:
        """Return the message of one offset; None if there is none."""
        chunk = self._chunk(offset) if self.base <= offset < self.end else None
        if chunk is None:
            return None
        index = bisect_left(chunk.offsets, offset)
        if chunk.offsets[index] != offset:
            return None
        return chunk.data[chunk.places[index] : chunk.places[index + 1]]

    def _behind(self, chunk: _Chunk, stop: int) -> int:
        if stop < len(chunk.offsets):
            return chunk.offsets[stop]
        return self.end if chunk.end >= self._count else chunk.offsets[-1] + 1

    def _properties(self, chunk: _Chunk, index: int) -> Mapping[str, str]:
        places = chunk.places
        return parse_properties(
            self._frame.properties(chunk.data, places[index], places[index + 1])
        )

    # Making

    def _chunk(self, offset: int) -> _Chunk | None:
        """Return the chunk with the first message at or after an offset; None if there is none."""
        chunks = self._chunks
        index = max(0, offset - self.base)
        if not self._is_dense:
            # Offsets are missing: only the records say which of them is at which offset.
            if not self._left:
                at = bisect_left(chunks, offset, key=_last_of)
                return chunks[at] if at < len(chunks) else None
            index = self._index_behind(index)
        at = bisect_right(chunks, index, key=_first_of) - 1
        if at >= 0 and index < chunks[at].end:
            return chunks[at]
        return self._make(index) if index < self._count else None

    def _index_behind(self, delta: int) -> int:
        """Return the index of the first record at or after an offset delta."""
        mark = max(0, bisect_right(self._marks.deltas, delta) - 1)
        first = mark * CHUNK_COUNT
        try:
            place = self._marks.places[mark] if mark < len(self._marks.places) else 0
            return index_of(self._data, self._header, delta, first=first, at=place)
        except MalformedBatch as damage:
            self._give_up(damage.index or 0, damage)
            return self._count

    def _make(self, index: int) -> _Chunk | None:
        """Translate the chunk that starts with a record, and cache it."""
        chunks = self._chunks
        if index >= self._count:
            return None
        before = bisect_right(chunks, index, key=_first_of)
        limit = chunks[before].first if before < len(chunks) else self._count
        try:
            at = self._place(index)
        except MalformedBatch as damage:
            self._give_up(index, damage)
            return None
        chunk = self._encode(index, min(limit, index + CHUNK_COUNT), at)
        if chunk is None:
            return None
        chunks.insert(before, chunk)
        self.size += len(chunk.data) + _RECORD_OVERHEAD * len(chunk.offsets)
        self._left -= chunk.end - index
        if self._left:
            self._ends[chunk.end] = skip_records(self._data, at, chunk.end - index)
        else:
            self.size -= len(self._data)
            self._data = b""
        return chunk

    def _place(self, index: int) -> int:
        """Return where a record starts in the data."""
        known = self._ends.get(index)
        if known is not None:
            return known
        mark = min(index // CHUNK_COUNT, len(self._marks.places) - 1)
        if mark < 0:
            return skip_records(self._data, 0, index)
        return skip_records(self._data, self._marks.places[mark], index - mark * CHUNK_COUNT)

    def _give_up(self, index: int, damage: MalformedBatch) -> None:
        self.damage = damage.with_traceback(None)
        self._count = min(self._count, index)

    def _records(self, at: int, first: int) -> Iterator[Record]:
        """Read records;

        what no message can hold is truncated, as copying it would take too long.
        """
        whole_max = self._message_bytes_max + 1
        return walk_records(
            self._data, self._header, at=at, first=first, bounds=self._bounds, whole_max=whole_max
        )

    def _encode(self, first: int, limit: int, at: int) -> _Chunk | None:
        """Translate the records from `first` on, which starts at `at` in the data."""
        head = self._frame
        pack, magic, queue, flags, middle = head.pack, head.magic, head.queue, head.flags, head.rest
        head_size, topic, bare_tail = head.size, head.topic, head.bare_tail
        base, position, size_max = self.base, head.position, self._message_bytes_max
        parts: list[bytes] = []
        offsets: list[int] = []
        places = [0]
        codes: list[int] = []
        total = cost = 0
        records = self._records(at, first)
        try:
            for offset, timestamp, key, value, headers in islice(records, limit - first):
                code = 0
                cost += 1
                is_bare = not headers and value is not None
                if is_bare and key is None:
                    tail = bare_tail
                elif is_bare and key is not None and len(key) < 250 and is_word(key):
                    tail = b"%b%bKEYS\x01%b\x02" % (topic, _KEY_SIZES[len(key)], key)
                else:
                    properties = None if value is None else pack_usual(key, headers)
                    if properties is None:
                        properties = pack_record(key, headers, value is None)
                    tail = b"%b%b%b" % (topic, pack_size(len(properties)), properties)
                    code = code_of(headers) if headers else 0
                    cost += len(headers)
                body = value or b""
                body_size = len(body)
                size = head_size + body_size + len(tail)
                if size > size_max:
                    tail = marker(topic, size, key)
                    body, body_size, code = b"", 0, 0
                    size = head_size + len(tail)
                index = offset - base + 1
                parts.append(
                    pack(
                        size,
                        magic,
                        body_checksum(body),
                        queue,
                        offset,
                        position | (index if index < UNNAMED else UNNAMED) << POSITION_BITS,
                        flags,
                        timestamp,
                        middle,
                        body_size,
                    )
                )
                parts.append(body)
                parts.append(tail)
                total += size
                offsets.append(offset)
                places.append(total)
                codes.append(code)
                if total >= CHUNK_BYTES or cost >= CHUNK_COUNT:
                    break
        except MalformedBatch as damage:
            self._give_up(first + len(offsets), damage)
        if not offsets:
            return None
        end = first + len(offsets)
        return _Chunk(first, end, offsets, places, codes, memoryview(b"".join(parts)))


_KEY_SIZES: Final = [pack_size(len(b"KEYS\x01\x02") + size) for size in range(250)]


def _first_of(chunk: _Chunk) -> int:
    return chunk.first


def _last_of(chunk: _Chunk) -> int:
    return chunk.offsets[-1]
