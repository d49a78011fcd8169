"""Message ids and client ids.

An *offset message id* says where a message lies: the broker's address, its port and the place in
its commit log, in hex. For a record inside a batch entry the place is the entry's position with
the record's index, counted from one, above it (docs/internals/mapping.md). A *unique id* is made by
the client that sends: address, process, a number for the class loader, time and counter.
"""

import struct
from typing import Final

from rockgate.protocol.remoting.errors import MalformedContent

RECORD_SHIFT: Final = 44
"""Bits of a position: 16 TiB of log. What lies above says which record of a batch is meant."""
POSITION_MASK: Final = (1 << RECORD_SHIFT) - 1
RECORD_INDEX_MAX: Final = (1 << 63 - RECORD_SHIFT) - 2

_TAIL: Final = struct.Struct(">IQ")


def offset_message_id(address: bytes, port: int, place: int) -> str:
    """The id of the message at a place of the broker with this address (4 or 16 bytes)."""
    return (address + _TAIL.pack(port, place)).hex().upper()


def parse_offset_message_id(text: str) -> tuple[bytes, int, int]:
    """Address, port and place of an offset message id."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        raise MalformedContent(f"message id {text!r} is not hex") from None
    if len(data) not in (16, 28):
        raise MalformedContent(f"message id {text!r} has {len(text)} digits, not 32 or 56")
    port, place = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    return data[: -_TAIL.size], port, place


def record_place(position: int, index: int) -> int:
    """The address of a record inside the batch entry at `position`."""
    assert 0 <= position <= POSITION_MASK and 0 <= index <= RECORD_INDEX_MAX
    return position | (index + 1) << RECORD_SHIFT


def split_place(place: int) -> tuple[int, int | None]:
    """Position and record index; the index is None for a message entry."""
    above = place >> RECORD_SHIFT
    return place & POSITION_MASK, above - 1 if above else None


class UniqueIds:
    """Makes unique message ids as RocketMQ's clients do; one for each client process."""

    __slots__ = ("_at", "_counter", "_now", "_prefix")

    def __init__(self, address: bytes, process_id: int, loader: int) -> None:
        packed = address + struct.pack(">HI", process_id & 0xFFFF, loader & 0xFFFFFFFF)
        self._prefix = packed.hex().upper()
        self._counter = 0
        # Many ids are of one millisecond: everything of them but the counter is written once.
        self._at = -1
        self._now = ""

    def next(self, since_month_start_ms: int) -> str:
        """The next id: 32 digits for an IPv4 address, 56 for an IPv6 one."""
        self._counter = self._counter + 1 & 0xFFFF
        if since_month_start_ms != self._at:
            self._at = since_month_start_ms
            self._now = f"{self._prefix}{since_month_start_ms & 0xFFFFFFFF:08X}"
        return f"{self._now}{self._counter:04X}"


def client_id(address: str, instance: str, unit: str | None = None) -> str:
    """A client's name for itself: where it runs, which instance it is, its unit if it has one."""
    name = f"{address}@{instance}"
    return f"{name}@{unit}" if unit else name
