"""Addresses: the single number by which RocketMQ identifies a message.

    63  62 ........ 44  43 ........ 0
     0  record index+1  position          0 in the upper bits: the message entry at the position

A message entry is named by its position in the log, as RocketMQ does it. A record inside a batch
has the batch's position and its index, so that what a client was given can be found again: by
request 33 (view), 36 (send back) and 309 (consume directly).
"""

from __future__ import annotations

from typing import Final, NamedTuple

POSITION_BITS: Final = 44
POSITION_MAX: Final = (1 << POSITION_BITS) - 1
"""16 TiB of log, counted from its first start."""
INDEX_MAX: Final = (1 << (63 - POSITION_BITS)) - 3
"""The last record of a batch that has an address. Later ones can be read, but not addressed."""
UNNAMED: Final = INDEX_MAX + 2
"""In the upper bits: a record without an address."""


class MessageAddress(NamedTuple):
    """Where a message is."""

    position: int
    record_index: int
    """Index of the record in its batch; -1 for a message entry."""


def pack_address(position: int, index: int = -1) -> int:
    """Return the address of a message entry, or of a record in a batch."""
    return position | min(index + 1, UNNAMED) << POSITION_BITS


def unpack_address(address: int) -> MessageAddress | None:
    """Return where an address points; None if it is invalid."""
    upper = address >> POSITION_BITS
    if not 0 <= upper < UNNAMED:
        return None
    return MessageAddress(address & POSITION_MAX, upper - 1)
