"""The visible part of a batch with delayed records: the batch without them.

It is built on the first read, or on produce if that took a thread anyway, and cached within a
bound. A reader on the loop notes one that takes long to build, as it does cold entries, and a
thread builds it before the reader retries.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from typing import Final

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.delay.headers import open_batch, open_in_steps
from rockgate.gateway.runtime.bounded_cache import BoundedCache
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import DELAYED
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.batch import Buffer, read_header
from rockgate.protocol.kafka.records.bounds import LIGHT, WIDEST, Bounds, is_heavy
from rockgate.protocol.kafka.records.record import rebuild_batch
from rockgate.store.api.log import Place
from rockgate.store.api.read import Lookup, Slice

CACHE_BYTES: Final = 32 << 20
_OVERHEAD: Final = 200

log = logging.getLogger(__name__)


class VisibleBatches:
    """The visible parts of batches. One for all readers; belongs to the loop's thread."""

    def __init__(
        self, lookup: Lookup, threads: BatchThreads | None = None, bytes_max: int = CACHE_BYTES
    ) -> None:
        self._lookup = lookup
        self._threads = threads or BatchThreads()
        self._cache: BoundedCache[int, Buffer] = BoundedCache(bytes_max)

    def batch(self, found: Slice, later: list[Place] | None) -> Buffer | None:
        """Return the visible part of a marked entry; None if it was added to `later`.

        Without such a list it is built immediately, however long that takes.
        """
        position = found.unit.position
        cached = self._cache.get(position)
        if cached is not None:
            return cached
        body = envelope.body_of(found.entry)
        made = None if later is not None and is_heavy(body) else _made(body, LIGHT)
        if made is None and later is not None:
            later.append((position, found.unit.size))
            return None
        if made is None:
            made = _made_in_steps(body)
        self.put(position, made)
        return made

    def put(self, position: int, made: Buffer) -> None:
        """Cache the visible part of the entry at a position."""
        self._cache.put(position, made, len(made) + _OVERHEAD)

    async def prepare(self, places: Iterable[Place]) -> None:
        """Build the noted batches in a thread; other entries are skipped."""
        for position, _ in places:
            found = None if position in self._cache else self._lookup.entry(position)
            if found is None:
                continue
            view = found[1].entry
            entry = envelope.read(view)
            if entry.is_batch and entry.sys_flag & DELAYED:
                body = view[entry.body_at : entry.body_at + entry.body_size]
                self.put(position, await self._threads.run(partial(_made_in_steps, body)))


def _made(body: memoryview, bounds: Bounds) -> Buffer | None:
    """Return the visible part of a batch; None if it exceeds the bounds."""
    try:
        return open_batch(body, bounds=bounds).rest()
    except BatchTooLarge:
        return None
    except MalformedBatch as damage:
        return _nothing(body, damage)


def _made_in_steps(body: memoryview) -> Buffer:
    try:
        # It was accepted once, so it stays visible whatever the bounds are now.
        return open_in_steps(body, bounds=WIDEST).rest()
    except MalformedBatch as damage:
        return _nothing(body, damage)


def _nothing(body: memoryview, damage: MalformedBatch) -> Buffer:
    """Return an empty batch in place of one that cannot be decoded."""
    log.error("cannot decode batch with delayed records reason=%s", damage)
    return rebuild_batch(read_header(body), ())
