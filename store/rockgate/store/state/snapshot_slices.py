"""Cuts a snapshot into slices, bounded by work and by bytes.

A slice is taken in one turn of the loop. A thousand small items are a millisecond of work, but a
name may have a kilobyte and settings many, and a thousand of those are megabytes. So every fold
hands its items here, encoded, and this decides where a slice ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

SLICE_BYTES: Final = 256 << 10
"""What the items of a slice take at most. A larger item is a slice of its own: whoever has items
that may grow beyond what one change can bring hands them out in pieces."""


T = TypeVar("T")
Measured = tuple[int, int, T | None]
"""What an item costs, its size in bytes, the item; None is work without one: an empty place."""


def sliced(
    items: Iterable[Measured[T]], cost_max: int, bytes_max: int = SLICE_BYTES
) -> Iterator[list[T]]:
    """Gather items into slices that neither cost more than this nor take more bytes.

    The last slice is handed out even if it is empty. An item that the one slice has no room for is
    in the next, as it was before the pause: what happened to it meanwhile is replayed.
    """
    part: list[T] = []
    cost = size = 0
    for item_cost, item_size, item in items:
        if item is not None:
            if part and size + item_size > bytes_max:
                yield part
                part, cost, size = [], 0, 0
            part.append(item)
            size += item_size
        cost += item_cost
        if cost >= cost_max:
            yield part
            part, cost, size = [], 0, 0
    yield part


def pack_array(items: Sequence[bytes]) -> bytes:
    """Return the msgpack array of items that are encoded already."""
    count = len(items)
    head = bytes((0x90 | count,)) if count < 16 else b"\xdd" + count.to_bytes(4, "big")
    return head + b"".join(items)
