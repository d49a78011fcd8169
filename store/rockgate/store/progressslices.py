"""Slices of a snapshot of progress: some thousand records each, however they are spread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rockgate.store.progressrecords import Held, pack_slice
from rockgate.store.topicchanges import QUEUE_COUNT_MAX

_QUEUES_PER_PIECE: Final = 2_000


def slices(places: Iterable[tuple[int, Held | None]], cost_max: int) -> Iterator[bytes]:
    """Hand out what lies in some places; empty ones count as work too."""
    helds: list[Held] = []
    cost = 0
    for _, held in places:
        cost += 2
        for piece in _pieces(held) if held is not None else ():
            if piece.queues:
                helds.append(piece)
            # Looking for queues that are not there takes a while too.
            cost += len(piece.queues) or _QUEUES_PER_PIECE // 8
            if cost >= cost_max:
                yield pack_slice(helds)
                helds, cost = [], 0
        if cost >= cost_max:
            yield pack_slice(helds)
            helds, cost = [], 0
    if helds:
        yield pack_slice(helds)


def _pieces(held: Held) -> Iterator[Held]:
    records = held.queues
    if len(records) <= _QUEUES_PER_PIECE:
        yield held
        return
    for low in range(0, QUEUE_COUNT_MAX, _QUEUES_PER_PIECE):
        ids = range(low, low + _QUEUES_PER_PIECE)
        part = {queue_id: records[queue_id] for queue_id in ids if queue_id in records}
        yield Held(held.group, held.topic_id, part)
