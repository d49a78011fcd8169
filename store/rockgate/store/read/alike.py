"""Similar messages, read by column.

Messages of one producer often have parts of equal sizes. For a run of those, one unpack per message
is enough, and the fields that must be equal are compared for all of them together.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from itertools import islice

from rockgate.protocol.entry import CHECKSUM_SIZE, HEAD_SIZE_V4, MAGIC_V1, places
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.queues.queueindex import Unit
from rockgate.store.queues.view import QueueView
from rockgate.store.read.slices import UNUSUAL, Alike

MESSAGES_MAX = 500
"""Maximum number of messages per run, so that small ones do not delay other requests."""

ALIKE_MIN = 8
"""Minimum number of messages for which reading by column is worthwhile."""

IsCold = Callable[[int, int], bool]
"""Whether any byte between two positions must be loaded first."""


def read_alike(
    log: CommitLog, queue: QueueView, offset: int, end: int, size_max: int, is_cold: IsCold | None
) -> Alike | None:
    """Return messages before `end` if they are many, similar, and none is cold; else None."""
    walked = queue.walk(offset)
    units = list(islice(walked, ALIKE_MIN))
    size = units[0][2] if units else size_max + 1
    count = min(size_max // size, MESSAGES_MAX)
    if count < ALIKE_MIN or {unit[2] for unit in units} != {size}:
        return None
    units += islice(walked, count - len(units))
    if units[-1][0] >= end:
        units = [unit for unit in units if unit[0] < end]
    if len(units) < ALIKE_MIN:
        return None
    bases, positions, sizes, *_ = zip(*units, strict=True)
    start, stop = positions[0], positions[-1] + size
    segment = log.segment_at(start)
    if (
        sizes.count(size) < len(sizes)
        or segment is None
        or stop > segment.end
        or (is_cold is not None and is_cold(start, stop))
    ):
        return None
    view = segment.mapping.view
    _, _, _, _, _, body_size = places(view, start - segment.start)
    topic = len(queue.topic).to_bytes(2, "big")[1:] + queue.topic
    rest = size - HEAD_SIZE_V4 - body_size - len(topic) - 2 - CHECKSUM_SIZE
    if rest < 0 or min(positions) < start or max(positions) + size > stop:
        return None
    unpack, at = _message(body_size, len(topic), rest).unpack_from, segment.start
    rows = [unpack(view, position - at) for position in positions]
    totals, magics, ids, offsets, flags, born_ms, *columns = zip(*rows, strict=True)
    body_sizes, bodies, topics, rests, properties = columns
    agreed = (set(totals), set(magics), set(ids), set(body_sizes), set(topics), set(rests))
    wanted = (size, MAGIC_V1, queue.queue_id, body_size, topic, rest + CHECKSUM_SIZE)
    if agreed != tuple({each} for each in wanted) or offsets != bases:
        return None
    if any(flag & UNUSUAL for flag in set(flags)):
        return None
    first, last = Unit._make(units[0]), Unit._make(units[-1])
    return Alike(first, last, offsets, born_ms, bodies, properties)


@lru_cache(maxsize=256)
def _message(body_size: int, topic_size: int, properties_size: int) -> struct.Struct:
    """A whole message entry: the fields that a reader compares, and those it returns."""
    head = ">II4xi4xq8xiq36xI"
    return struct.Struct(f"{head}{body_size}s{topic_size}sH{properties_size}s{CHECKSUM_SIZE}x")
