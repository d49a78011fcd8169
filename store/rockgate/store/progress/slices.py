"""Slices of a progress snapshot: some thousand records each, however they are distributed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from rockgate.store.progress.records import METADATA_SIZE_MAX, Held, encode_held, pack_slice
from rockgate.store.state.snapshot_slices import SLICE_BYTES, Measured, sliced
from rockgate.store.state.topicchanges import QUEUE_COUNT_MAX

_QUEUES_PER_PIECE: Final = 2_000
_LARGE_QUEUES_PER_PIECE: Final = SLICE_BYTES // (2 * METADATA_SIZE_MAX)
"""For records that are large on average: this few never exceed the size of a slice."""


def slices(places: Iterable[tuple[int, Held | None]], cost_max: int) -> Iterator[bytes]:
    """Yield slices of the items in these slots; empty slots count as work too."""
    for part in sliced(_encoded(places), cost_max):
        if part:
            yield pack_slice(part)


def _encoded(places: Iterable[tuple[int, Held | None]]) -> Iterator[Measured[bytes]]:
    for _, held in places:
        yield 2, 0, None
        for piece in _pieces(held) if held is not None else ():
            if not piece.queues:
                # Searching for queues that do not exist takes time too.
                yield _QUEUES_PER_PIECE // 8, 0, None
                continue
            item = encode_held(piece)
            yield len(piece.queues), len(item), item


def _pieces(held: Held) -> Iterator[Held]:
    records = held.queues
    if len(records) <= _QUEUES_PER_PIECE:
        yield from _by_size(held)
        return
    for low in range(0, QUEUE_COUNT_MAX, _QUEUES_PER_PIECE):
        ids = range(low, low + _QUEUES_PER_PIECE)
        part = {queue_id: records[queue_id] for queue_id in ids if queue_id in records}
        yield from _by_size(Held(held.group, held.topic_id, part))


def _by_size(held: Held) -> Iterator[Held]:
    records = held.queues
    if sum(map(len, records.values())) <= SLICE_BYTES // 2:
        yield held
        return
    # A copy, because the group may commit others between two slices.
    left = iter(list(records.items()))
    while part := dict(islice(left, _LARGE_QUEUES_PER_PIECE)):
        yield Held(held.group, held.topic_id, part)
