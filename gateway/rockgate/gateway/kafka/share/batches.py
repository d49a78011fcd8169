"""The batches that a share fetch has read, as the ranges of offsets that it may acquire.

Only headers are looked at. A batch of transaction markers has nothing to acquire, and one of an
aborted transaction neither where a group reads what is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rockgate.protocol.kafka.fields import Buffer
from rockgate.protocol.kafka.records.batch import split


class Piece(NamedTuple):
    """One batch."""

    first: int
    end: int
    """The first offset after it."""
    view: memoryview
    is_data: bool
    """Whether its records may be acquired."""


def pieces_of(buffers: Iterable[Buffer], aborted: Sequence[tuple[int, int]]) -> list[Piece]:
    """Return the batches of a read; `aborted` are producer ids and first offsets."""
    left = sorted(aborted, key=lambda each: each[1], reverse=True)
    producers: set[int] = set()
    found: list[Piece] = []
    for buffer in buffers:
        for header, view in split(memoryview(buffer)):
            end = header.next_offset
            while left and left[-1][1] < end:
                producers.add(left.pop()[0])
            is_data = not header.is_control
            if header.is_control:
                # Whether it commits or aborts, the producer's transaction has ended.
                producers.discard(header.producer_id)
            elif header.is_transactional and header.producer_id in producers:
                is_data = False
            found.append(Piece(header.base_offset, end, view, is_data))
    return found
