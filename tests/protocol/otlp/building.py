"""Protobuf by hand: metrics as a client of Kafka pushes them."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    """A number."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def inside(number: int, data: bytes) -> bytes:
    """A field of bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def word(number: int, value: float) -> bytes:
    """A field of eight bytes."""
    packed = struct.pack("<q" if isinstance(value, int) else "<d", value)
    return varint(number << 3 | 1) + packed


def attributes(number: int, pairs: dict[str, str]) -> bytes:
    """A field for each attribute."""
    return b"".join(
        inside(number, inside(1, key.encode()) + inside(2, inside(1, value.encode())))
        for key, value in pairs.items()
    )


def number_point(value: float, **pairs: str) -> bytes:
    """A NumberDataPoint."""
    at = word(2, 1_000) + word(3, 2_000)
    return inside(1, at + word(6 if isinstance(value, int) else 4, value) + attributes(7, pairs))


def metric(name: str, *points: bytes, kind: int = 5) -> bytes:
    """A Metric; kind 5 is a gauge, 7 a sum, 9 a histogram."""
    head = inside(1, name.encode()) + inside(2, b"what it is") + inside(3, b"ms")
    return head + inside(kind, b"".join(points) + (varint(2 << 3) + b"\x02" if kind > 5 else b""))


def pushed(*metrics: bytes, **resource: str) -> bytes:
    """A MetricsData of one resource and one scope."""
    scope = inside(1, inside(1, b"scope")) + b"".join(inside(2, each) for each in metrics)
    return inside(1, inside(1, attributes(1, resource)) + inside(2, scope))
