"""Cuts a snapshot into slices, bounded by work and by bytes.

A slice is taken in one iteration of the event loop. A thousand small items are a millisecond of
work, but a name may have a kilobyte and settings many, and a thousand of those are megabytes. So
every fold passes its encoded items to this module, which decides where a slice ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

SLICE_BYTES: Final = 256 << 10
"""Maximum size of the items in a slice. A larger item is a slice of its own: folds whose items may
exceed the size of a change must split them."""


T = TypeVar("T")
Measured = tuple[int, int, T | None]
"""Cost, size in bytes, and item; None is work without an item: an empty slot."""


def sliced(
    items: Iterable[Measured[T]], cost_max: int, bytes_max: int = SLICE_BYTES
) -> Iterator[list[T]]:
    """Group items into slices, each limited in cost and in bytes.

    The last slice is yielded even if it is empty. An item that does not fit is in the next slice,
    as it was before the pause: later changes to it are replayed.
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
    """Return the msgpack array of encoded items."""
    count = len(items)
    head = bytes((0x90 | count,)) if count < 16 else b"\xdd" + count.to_bytes(4, "big")
    return head + b"".join(items)
