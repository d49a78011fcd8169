"""Limits on a batch that is decoded: size, records and headers.

Three kilobytes may hold gigabytes, or one record of fifteen million headers. So whoever opens a
batch does it within bounds, which are looked at twice: by what the batch declares (its size, its
count of records, the sizes that its codec claims) before anything is done, and by what really comes
out of it while it does. What passes them is a BatchTooLarge.

LIGHT is what takes a millisecond or two, and is opened wherever it is met. What is heavier is
opened by a thread, within the server's own bounds; what passes those is opened by nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rockgate.protocol.kafka.errors import BatchTooLarge
from rockgate.protocol.kafka.records.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    read_header,
)
from rockgate.protocol.kafka.records.inflation import inflates_beyond

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much of everything."""

    compressed_bytes_max: int = 1 << 40
    """Size of a batch that is compressed."""
    inflated_bytes_max: int = 64 * _MIB
    """Bytes of all its records, uncompressed."""
    records_max: int = 1_000_000
    record_headers_max: int = 10_000
    """Headers of one record."""
    headers_max: int = 1_000_000
    """Headers of all records together."""

    def check_declared(self, body: Buffer, header: BatchHeader) -> None:
        """BatchTooLarge if a batch says itself that it is too much."""
        self.check_count(header)
        if header.attributes & COMPRESSION_MASK and len(body) > self.compressed_bytes_max:
            raise BatchTooLarge(
                f"compressed size of {len(body):,} bytes exceeds the maximum of "
                f"{self.compressed_bytes_max:,}"
            )
        if inflates_beyond(body, header, self.inflated_bytes_max):
            raise self.too_many_bytes()

    def check_count(self, header: BatchHeader) -> None:
        """BatchTooLarge if there are too many records."""
        if header.record_count > self.records_max:
            raise BatchTooLarge(
                f"{header.record_count:,} records exceed the maximum of {self.records_max:,}"
            )

    def too_many_bytes(self) -> BatchTooLarge:
        """Return what is raised for more bytes than may be."""
        return BatchTooLarge(
            f"decompressed size exceeds the maximum of {self.inflated_bytes_max:,} bytes"
        )


BOUNDS: Final = Bounds()
"""The server's, unless its settings say otherwise: no batch of a usual client comes near them."""
LIGHT: Final = Bounds(
    compressed_bytes_max=32 << 10,
    inflated_bytes_max=_MIB,
    records_max=1_000,
    record_headers_max=1_000,
    headers_max=1_000,
)
"""What is opened on the loop."""
WIDEST: Final = Bounds(
    inflated_bytes_max=1 << 30,
    records_max=10_000_000,
    record_headers_max=1_000_000,
    headers_max=10_000_000,
)
"""The most that settings allow, and so what a batch may have that was let in under others."""


def is_heavy(body: Buffer) -> bool:
    """Whether a batch says that it takes long to open; one that is none is looked at by others.

    One that is not heavy by this may still turn out to be: it is opened within LIGHT.
    """
    if len(body) < HEADER_SIZE:
        return False
    try:
        LIGHT.check_declared(body, read_header(body))
    except BatchTooLarge:
        return True
    return False
