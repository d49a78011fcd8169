"""Acknowledgements as clients send them, checked, and as ranges of one type each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol


class AcknowledgeType(IntEnum):
    """What a client says of an offset."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AckBatch(Protocol):
    """Offsets, with one type for each of them, or one for all."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Acknowledged(NamedTuple):
    """Offsets of which the same is said: from `first` to before `end`."""

    first: int
    end: int
    type: int


def ranges_of(batches: Sequence[AckBatch], *, may_renew: bool) -> list[Acknowledged] | None:
    """Return the ranges of acknowledgements in order; None if they are not well formed."""
    found: list[Acknowledged] = []
    before = -1
    last_type = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last or first <= before or not types:
            return None
        if len(types) > 1 and len(types) != last - first + 1:
            return None
        if min(types) < 0 or max(types) > last_type:
            return None
        before = last
        if len(types) == 1:
            found.append(Acknowledged(first, last + 1, types[0]))
        else:
            found += _alike(first, types)
    return found


def _alike(first: int, types: list[int]) -> Iterator[Acknowledged]:
    begin = 0
    for at in range(1, len(types) + 1):
        if at == len(types) or types[at] != types[begin]:
            yield Acknowledged(first + begin, first + at, types[begin])
            begin = at
