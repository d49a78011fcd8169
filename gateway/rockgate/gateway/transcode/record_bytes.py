"""Pieces of a record batch that is made of messages: varints, names, keys and headers.

They are collected as bytes and joined once, and what recurs (small numbers, header names) is
encoded once. Nothing here knows where messages come from.
"""

from __future__ import annotations

from typing import Final

from rockgate.gateway.transcode.dictionary import KEYS
from rockgate.protocol.kafka.records import batch as batches
from rockgate.protocol.kafka.records.record import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)

NAME_SIZE_MAX: Final = 64
"""A longer name is not cached."""


def varint(value: int) -> bytes:
    """The shortest zig-zag varint of an int64."""
    n = value << 1 if value >= 0 else ~value << 1 | 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


VARINT_COUNT: Final = 16384
VARINTS: Final = [varint(value) for value in range(VARINT_COUNT)]
NULL: Final = varint(-1)


def of(value: int) -> bytes:
    """Return the varint of a number, from the table if it is small."""
    return VARINTS[value] if 0 <= value < VARINT_COUNT else varint(value)


def batch_head(
    base: int, size: int, epoch: int, last: int, base_ms: int, max_ms: int, count: int
) -> bytes:
    """Return the header of an uncompressed batch without a producer; its CRC is yet to be set."""
    return batches.HEADER.pack(
        base,
        size - batches.PREFIX_SIZE,
        epoch,
        batches.MAGIC,
        0,
        0,
        last - base,
        base_ms,
        max_ms,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        count,
    )


def key_and_headers(properties: bytes, names: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """Return a record's key and headers from properties without names of ours.

    `names` caches encoded names; a property whose name is cached as nothing is no header.
    """
    key, keys = NULL, None
    parts: list[bytes] = [b""]
    count = 0
    for part in properties.rstrip(b"\x02").split(b"\x02"):
        name, separator, value = part.partition(b"\x01")
        known = names.get(name)
        if known is None:
            if not separator or not name:
                continue
            if name == KEYS:
                keys = value
                continue
            known = header_name(name)
            if len(name) <= NAME_SIZE_MAX:
                names[name] = known
        elif not separator or not known:
            continue
        size = len(value)
        parts += (known, VARINTS[size] if size < VARINT_COUNT else varint(size), value)
        count += 1
    if keys is not None:
        word = keys
        if b" " in keys or not keys:
            word = next((each for each in keys.split(b" ") if each), b"")
            parts += (header_name(KEYS), of(len(keys)), keys)
            count += 1
        if word:
            key = of(len(word)) + word
    parts[0] = of(count)
    return key, b"".join(parts)


def header_name(name: bytes) -> bytes:
    """Return the name of a header, after its size."""
    # Kafka's header names are text, and clients may reject anything else.
    text = name if name.isascii() else name.decode("utf-8", "replace").encode()
    return of(len(text)) + text


def nullable(data: bytes | None) -> tuple[bytes, bytes]:
    """Return the size of a key or a header's value, and it."""
    return (NULL, b"") if data is None else (of(len(data)), data)
