"""A run of message entries as one record batch: uncompressed, of no producer.

docs/mapping.md has the dictionary. The loop over entries makes a list of pieces and joins them
once; the usual envelope is read by one unpacking, and the usual property costs one look into a
table of names. Whatever is unusual about a message goes through `dictionary.read_message`, and a
test compares the two.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from rockgate.gateway.mapping.dictionary import KEYS, OWN, read_message
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    BORN_HOST_V6,
    CHECKSUM_SIZE,
    COMPRESSED,
    HEAD_SIZE_V4,
    MAGIC_V1,
    MOVED,
    STORE_HOST_V6,
)
from rockgate.protocol.kafka.records import batch as batches
from rockgate.protocol.kafka.records.record import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from rockgate.protocol.remoting.compression import compression_of, decompress
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.store.dispatch import EPOCH, MAX_MS, TOPIC_ID
from rockgate.store.reading import Slice

COMPRESSED_BODY: Final = b"__ROCKETMQ_COMPRESSED"
"""Header of a record whose value is a compressed body that cannot be opened: its flags."""
INFLATED_BYTES_MAX: Final = 256 << 10
"""A batch ends behind the message that brings what came out of bodies to this: about 1 ms."""

_STORES_OWN: Final = frozenset((TOPIC_ID, MAX_MS, EPOCH))
"""Properties that the store gives a moved entry; nobody sent them."""
_UNUSUAL: Final = COMPRESSED | MOVED | BORN_HOST_V6 | STORE_HOST_V6

_HEAD: Final = struct.Struct(">II12xq8xiq36xI")
_U16: Final = struct.Struct(">H")
_NAMES_MAX: Final = 4096
_NAME_SIZE_MAX: Final = 64

Pieces = tuple[bytes | memoryview, ...]


def _varint(value: int) -> bytes:
    """The shortest zig-zag varint of an int64."""
    n = value << 1 if value >= 0 else ~value << 1 | 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


_VARINTS: Final = [_varint(value) for value in range(16384)]
_NULL: Final = _varint(-1)


def _of(value: int) -> bytes:
    return _VARINTS[value] if 0 <= value < 16384 else _varint(value)


class Transcoding:
    """Reads message entries as record batches. Keeps the names of headers, encoded."""

    def __init__(self) -> None:
        self._names: dict[bytes, bytes] = {}

    def batch(self, run: Sequence[Slice], epoch: int) -> tuple[bytearray, int]:
        """Return one record batch of messages of a run, which are of one epoch, and how many.

        All of them, unless they are compressed and too many to be opened at once; one at least.
        """
        pieces: list[bytes | memoryview] = [b""]
        base = run[0].unit.base
        size, count, inflated = batches.HEADER_SIZE, 0, 0
        base_ms = max_ms = offset = 0
        names = self._names
        for each in run:
            view = each.entry
            total, magic, offset, sys_flag, born_ms, body_size = _HEAD.unpack_from(view)
            if not count:
                base_ms = max_ms = born_ms
            elif born_ms > max_ms:
                max_ms = born_ms
            body_end = HEAD_SIZE_V4 + body_size
            if magic == MAGIC_V1 and not sys_flag & _UNUSUAL:
                properties_at = body_end + view[body_end] + 3
                properties = bytes(view[properties_at : total - CHECKSUM_SIZE])
                if OWN not in properties:
                    body: bytes | memoryview = view[HEAD_SIZE_V4:body_end]
                    key, tail = _tail(properties, names)
                    record: Pieces = (
                        b"\x00",
                        _of(born_ms - base_ms),
                        _of(offset - base),
                        key,
                        _of(body_size),
                        body,
                        tail,
                    )
                else:
                    record = _unusual(view, base, base_ms)
            else:
                record = _unusual(view, base, base_ms)
                if sys_flag & COMPRESSED:
                    inflated += len(record[5])
            length = sum(map(len, record))
            prefix = _of(length)
            pieces.append(prefix)
            pieces += record
            size += len(prefix) + length
            count += 1
            if inflated >= INFLATED_BYTES_MAX:
                break
        pieces[0] = batches.HEADER.pack(
            base,
            size - batches.PREFIX_SIZE,
            epoch,
            batches.MAGIC,
            0,
            0,
            offset - base,
            base_ms,
            max_ms,
            NO_PRODUCER_ID,
            NO_PRODUCER_EPOCH,
            NO_SEQUENCE,
            count,
        )
        out = bytearray().join(pieces)
        batches.seal(out)
        if len(names) > _NAMES_MAX:
            names.clear()
        return out, count


def _tail(properties: bytes, names: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return a record's key, and its headers, from properties that hold nothing of ours."""
    key, keys = _NULL, None
    parts: list[bytes] = [b""]
    count = 0
    for part in properties.split(b"\x02"):
        name, separator, value = part.partition(b"\x01")
        if not separator or not name:
            continue
        if name == KEYS:
            keys = value
            continue
        known = names.get(name)
        if known is None:
            known = _header_name(name)
            if len(name) <= _NAME_SIZE_MAX:
                names[name] = known
        parts += (known, _of(len(value)), value)
        count += 1
    if keys is not None:
        word = keys
        if b" " in keys or not keys:
            word = next((each for each in keys.split(b" ") if each), b"")
            parts += (_header_name(KEYS), _of(len(keys)), keys)
            count += 1
        if word:
            key = _of(len(word)) + word
    parts[0] = _of(count)
    return key, b"".join(parts)


def _header_name(name: bytes) -> bytes:
    # A name is text on Kafka's wire, and clients may refuse anything else.
    shown = name if name.isascii() else name.decode("utf-8", "replace").encode()
    return _of(len(shown)) + shown


def _unusual(view: memoryview, base: int, base_ms: int) -> Pieces:
    """Return the pieces of any message's record."""
    entry = envelope.read(view)
    hidden = _STORES_OWN if entry.sys_flag & MOVED else frozenset[bytes]()
    words = read_message(envelope.properties_of(view, entry), hidden)
    headers = words.headers
    body: bytes | memoryview = view[entry.body_at : entry.body_at + entry.body_size]
    if entry.body_size:
        try:
            kind = compression_of(entry.sys_flag)
            body = body if kind is None else decompress(body, kind)
        except MalformedContent:
            headers = [*headers, (COMPRESSED_BODY, b"%d" % entry.sys_flag)]
    size, value = (_NULL, b"") if words.is_null else (_of(len(body)), body)
    tail = [_of(len(headers))]
    for name, content in headers:
        tail += (_header_name(name), *_bytes(content))
    return (
        b"\x00",
        _of(entry.born_ms - base_ms),
        _of(entry.queue_offset - base),
        b"".join(_bytes(words.key)),
        size,
        value,
        b"".join(tail),
    )


def _bytes(data: bytes | None) -> tuple[bytes, bytes]:
    return (_NULL, b"") if data is None else (_of(len(data)), data)
