"""A run of message entries as one record batch, uncompressed and without a producer.

docs/internals/mapping.md has the dictionary. The loop over entries makes a list of pieces and joins
them once; the usual envelope is read by one unpacking, and the usual property costs one look into a
table of names. Similar messages, as one producer often sends, are assembled column by column, in
half of that time. Unusual messages go through `dictionary.read_message`. Tests compare the three. A
batch ends after the message with which decompressed bodies reach INFLATED_BYTES_MAX, before one
that a thread has yet to decompress, and before one whose timestamp cannot be expressed as a
difference from the first one's.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Final

from rockgate.gateway.runtime.bounded_cache import BoundedCache
from rockgate.gateway.transcode.compressed_bodies import INFLATED_BYTES_MAX, CompressedBodies
from rockgate.gateway.transcode.dictionary import OWN, read_message
from rockgate.gateway.transcode.record_bytes import (
    NULL,
    VARINT_COUNT,
    VARINTS,
    batch_head,
    header_name,
    key_and_headers,
    nullable,
    of,
    varint,
)
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    CHECKSUM_SIZE,
    COMPRESSED,
    HEAD_SIZE_V4,
    MAGIC_V1,
    MOVED,
    V1_SIZES,
    Entry,
    message_fields,
)
from rockgate.protocol.kafka.records import batch as batches
from rockgate.protocol.kafka.records.record import is_delta
from rockgate.protocol.remoting.compression import compression_of
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.store.api.queues import Queue
from rockgate.store.api.read import EPOCH, MAX_MS, TOPIC_ID, UNUSUAL, Alike, Slice

COMPRESSED_BODY: Final = b"__ROCKETMQ_COMPRESSED"
"""Header of a record whose value is a compressed body that cannot be opened: its flags."""

CACHE_BYTES_MAX: Final = 32 << 20
BATCH_BYTES_MIN: Final = 64 << 10
"""Size of the cache of translated batches: the next reader of the same messages reuses them."""

_STORES_OWN: Final = frozenset((TOPIC_ID, MAX_MS, EPOCH))
"""Properties that the store adds to a moved entry; no producer sent them."""

_NAMES_MAX: Final = 4096
_SHAPES_MAX: Final = 1024
_SHAPE_SIZE_MAX: Final = 512
# The id that a client gives each message: usually the only property in which they differ. It has 32
# digits, or 56 where the client has an IPv6 address.
_ID: Final = b"UNIQ_KEY\x01"
_ID_SIZE: Final = len(_ID)

Pieces = tuple[bytes, bytes | memoryview, bytes]
"""The bytes of a record before its value, the value, and the bytes after it."""
Shape = tuple[bytes, bytes, bytes]
"""A record's key, and its headers before and after the message id."""


_ID_NAME: Final = varint(_ID_SIZE - 1) + _ID[:-1]
"""The start of the header of an id."""


class BatchCache:
    """Record batches made of messages, by the position of the first message.

    A small batch is not cached: it was read at the end of the queue, where more messages soon
    follow.
    """

    def __init__(self, bytes_max: int, *, batch_bytes_min: int = BATCH_BYTES_MIN) -> None:
        self._bytes_max = bytes_max
        self._batch_bytes_min = batch_bytes_min
        self._cache: BoundedCache[int, tuple[bytearray, int]] = BoundedCache(bytes_max)
        self.get = self._cache.get
        """Return a batch and the offset after it, or None."""
        self.clear = self._cache.clear
        """Remove everything: some of the messages may have been compacted."""

    def put(self, position: int, batch: bytearray, next_offset: int) -> None:
        """Cache a batch, unless it is small or larger than the whole bound."""
        size = len(batch)
        if self._batch_bytes_min <= size <= self._bytes_max:
            self._cache.put(position, (batch, next_offset), size)


class BatchTranscoder:
    """Translates message entries to record batches. Caches the encoded names of headers."""

    def __init__(
        self, opening: CompressedBodies | None = None, *, cache_bytes_max: int = CACHE_BYTES_MAX
    ) -> None:
        self._opening = opening or CompressedBodies()
        self.cache = BatchCache(cache_bytes_max)
        self._names: dict[bytes, bytes] = {}
        self._shapes: dict[tuple[bytes, bytes, int], Shape] = {}
        # By the bytes before and after an id, and its size.

    def batch(self, queue: Queue, run: Sequence[Slice], epoch: int) -> tuple[bytearray, int]:
        """Return one record batch of the messages of a run, all of one epoch, and their count.

        All of them, unless too many are compressed to be decompressed at once. None, and no batch,
        if a thread has yet to decompress the first one.
        """
        pieces: list[bytes | memoryview] = [b""]
        base = run[0].unit.base
        size, count, inflated = batches.HEADER_SIZE, 0, 0
        base_ms = max_ms = last = 0
        shapes, varints, fields = self._shapes, VARINTS, message_fields
        for unit, view in run:
            total, magic, offset, sys_flag, born_ms, body_size = fields(view)
            if not count:
                base_ms = max_ms = born_ms
            elif not is_delta(born_ms - base_ms):
                break
            body_end = HEAD_SIZE_V4 + body_size
            properties = OWN
            if magic == MAGIC_V1 and not sys_flag & UNUSUAL:
                properties_at = body_end + view[body_end] + V1_SIZES
                properties = bytes(view[properties_at : total - CHECKSUM_SIZE])
            if OWN not in properties:
                id_at = properties.find(_ID) + _ID_SIZE
                id_end = properties.find(b"\x02", id_at)
                shape = None
                if id_at >= _ID_SIZE:
                    shape = shapes.get((properties[:id_at], properties[id_end:], id_end - id_at))
                if shape is None:
                    key, tail = self._tail(properties, id_at, id_end)
                else:
                    key, before, behind_id = shape
                    tail = before + properties[id_at:id_end] + behind_id
                body: bytes | memoryview = view[HEAD_SIZE_V4:body_end]
                later, behind = born_ms - base_ms, offset - base
                lead = b"\x00%b%b%b%b" % (
                    varints[later] if 0 <= later < VARINT_COUNT else varint(later),
                    varints[behind] if behind < VARINT_COUNT else varint(behind),
                    key,
                    varints[body_size] if body_size < VARINT_COUNT else varint(body_size),
                )
            else:
                record = self._unusual(queue, unit.position, view, base, base_ms)
                if record is None:
                    break
                lead, body, tail = record
                inflated += len(body) if sys_flag & COMPRESSED else 0
            length = len(lead) + len(body) + len(tail)
            prefix = varints[length] if length < VARINT_COUNT else varint(length)
            pieces += (prefix, lead, body, tail)
            size += len(prefix) + length
            count += 1
            last = offset
            if born_ms > max_ms:
                max_ms = born_ms
            if inflated >= INFLATED_BYTES_MAX:
                break
        if not count:
            return bytearray(), 0
        pieces[0] = batch_head(base, size, epoch, last, base_ms, max_ms, count)
        out = bytearray().join(pieces)
        batches.seal(out)
        if len(self._names) > _NAMES_MAX:
            self._names.clear()
        if len(shapes) > _SHAPES_MAX:
            shapes.clear()
        return out, count

    def alike(self, run: Alike, epoch: int) -> bytearray | None:
        """Return one record batch of messages whose properties differ only in their ids.

        None if they differ in more: `batch` accepts any.
        """
        first = run.properties[0]
        id_at = first.find(_ID) + _ID_SIZE
        id_end = first.find(b"\x02", id_at)
        if id_at < _ID_SIZE or id_end < 0 or OWN in first:
            return None
        id_size = id_end - id_at
        parts = struct.iter_unpack(
            f"{id_at}s{id_size}s{len(first) - id_end}s", b"".join(run.properties)
        )
        fronts, ids, backs = zip(*parts, strict=True)
        if len(set(fronts)) > 1 or len(set(backs)) > 1 or b"\x02" in b"".join(ids):
            return None
        shape = self._shapes.get((fronts[0], backs[0], id_size))
        if shape is None:
            self._tail(first, id_at, id_end)
            shape = self._shapes.get((fronts[0], backs[0], id_size))
            if shape is None:
                return None
        key, before, behind = shape
        base, base_ms = run.offsets[0], run.born_ms[0]
        if not (is_delta(min(run.born_ms) - base_ms) and is_delta(max(run.born_ms) - base_ms)):
            return None
        body_size = len(run.bodies[0])
        lead = key + of(body_size)
        size = 1 + len(lead) + body_size + len(before) + id_size + len(behind)
        times = {born_ms: of(born_ms - base_ms) for born_ms in set(run.born_ms)}
        heads = [
            b"%b\0%b%b%b" % (of(size + len(later) + len(place)), later, place, lead)
            for later, place in zip(
                map(times.__getitem__, run.born_ms),
                [of(offset - base) for offset in run.offsets],
                strict=True,
            )
        ]
        records = zip(heads, run.bodies, repeat(before), ids, repeat(behind), strict=False)
        room = bytes(batches.HEADER_SIZE)
        out = bytearray().join(chain((room,), chain.from_iterable(records)))
        last, max_ms = run.offsets[-1], max(times)
        out[: len(room)] = batch_head(base, len(out), epoch, last, base_ms, max_ms, len(heads))
        batches.seal(out)
        return out

    def _tail(self, properties: bytes, id_at: int, id_end: int) -> tuple[bytes, bytes]:
        """Return a record's key and headers, and cache them if only the id will differ."""
        key, tail = key_and_headers(properties, self._names)
        start, unique = id_at - _ID_SIZE, properties[id_at:id_end]
        lead = _ID_NAME + of(len(unique))
        if (
            start >= 0
            and (start == 0 or properties[start - 1] == 2)
            and unique.isalnum()
            and tail.count(lead + unique) == 1
            and len(properties) <= _SHAPE_SIZE_MAX
        ):
            before, _, behind = tail.partition(lead + unique)
            place = (properties[:id_at], properties[id_end:], len(unique))
            self._shapes[place] = (key, before + lead, behind)
        return key, tail

    def _unusual(
        self, queue: Queue, position: int, view: memoryview, base: int, base_ms: int
    ) -> Pieces | None:
        """Return the pieces of any message's record;

        None if its body has yet to be decompressed.
        """
        entry = envelope.read(view)
        hidden = _STORES_OWN if entry.sys_flag & MOVED else frozenset[bytes]()
        words = read_message(envelope.properties_of(view, entry), hidden)
        headers = words.headers
        body: bytes | memoryview | None = view[entry.body_at : entry.body_at + entry.body_size]
        try:
            body = self._open(queue, position, view, entry)
        except MalformedContent:
            headers = [*headers, (COMPRESSED_BODY, b"%d" % entry.sys_flag)]
        if body is None:
            return None
        size, value = (NULL, b"") if words.is_null else (of(len(body)), body)
        tail = [of(len(headers))]
        for name, content in headers:
            tail += (header_name(name), *nullable(content))
        lead = b"\x00%b%b%b%b%b" % (
            of(entry.born_ms - base_ms),
            of(entry.queue_offset - base),
            *nullable(words.key),
            size,
        )
        return lead, value, b"".join(tail)

    def _open(
        self, queue: Queue, position: int, view: memoryview, entry: Entry
    ) -> bytes | memoryview | None:
        body = view[entry.body_at : entry.body_at + entry.body_size]
        kind = compression_of(entry.sys_flag) if entry.body_size else None
        return body if kind is None else self._opening.body(queue, position, body, kind)
