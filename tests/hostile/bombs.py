"""Record batches that expand enormously: headers, records, or bytes by the million."""

from __future__ import annotations

import cramjam

from rockgate.protocol.kafka.records import batch as batches
from rockgate.protocol.kafka.records.batch import BatchHeader, Compression
from rockgate.protocol.kafka.records.compression import compress

NOW_MS = 1_700_000_000_000


def varint(value: int) -> bytes:
    n = value << 1 if value >= 0 else ~value << 1 | 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def sealed(payload: bytes, count: int, codec: Compression) -> bytes:
    """A batch around compressed records."""
    header = BatchHeader(
        base_offset=0,
        length=batches.HEADER_SIZE + len(payload) - batches.PREFIX_SIZE,
        leader_epoch=-1,
        magic=batches.MAGIC,
        crc=0,
        attributes=int(codec),
        last_offset_delta=count - 1,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=count,
    )
    out = bytearray(batches.HEADER.pack(*header) + payload)
    batches.seal(out)
    return bytes(out)


def record(delta: int, key: bytes | None, value: bytes, headers: bytes = b"\0") -> bytes:
    """One record; `headers` are their count and contents."""
    packed = b"\x01" if key is None else varint(len(key)) + key
    body = b"\0\0" + varint(delta) + packed + varint(len(value)) + value + headers
    return varint(len(body)) + body


def many_headers(count: int, name: bytes = b"") -> bytes:
    """One record with many headers, all with the same name and empty."""
    each = varint(len(name)) + name + b"\0"
    data = record(0, b"k", b"v", varint(count) + each * count)
    return sealed(compress(data, Compression.ZSTD), 1, Compression.ZSTD)


def many_records(count: int, key: bytes | None = b"k", headers: bytes = b"\0") -> bytes:
    """Many small records."""
    packed = b"\x01" if key is None else varint(len(key)) + key
    rest = packed + b"\x02v" + headers
    parts: list[bytes] = []
    for delta in range(count):
        front = b"\0\0" + varint(delta)
        parts += (bytes((2 * (len(front) + len(rest)),)), front, rest)
    data = b"".join(parts)
    return sealed(compress(data, Compression.ZSTD), count, Compression.ZSTD)


def many_bytes(size: int, codec: Compression) -> bytes:
    """One record with a value of zeros."""
    return sealed(compress(record(0, b"k", bytes(size)), codec), 1, codec)


def gzip_that_lies(size: int) -> bytes:
    """The same in gzip, whose trailer claims to be empty."""
    packed = compress(record(0, b"k", bytes(size)), Compression.GZIP)
    return sealed(packed[:-4] + bytes(4), 1, Compression.GZIP)


def zstd_that_says_nothing(size: int) -> bytes:
    """The same in a zstd frame without a content size."""
    stream = cramjam.zstd.Compressor()
    stream.compress(record(0, b"k", bytes(size)))
    return sealed(bytes(stream.finish()), 1, Compression.ZSTD)


def snappy_that_lies(size: int) -> bytes:
    """A raw block that promises a size and is empty."""
    n, out = size, bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return sealed(bytes(out) + b"\0x", 1, Compression.SNAPPY)


def lz4_that_lies(size: int) -> bytes:
    """A frame whose blocks end in the middle."""
    packed = compress(record(0, b"k", bytes(size)), Compression.LZ4)
    return sealed(packed[: len(packed) // 2], 1, Compression.LZ4)
