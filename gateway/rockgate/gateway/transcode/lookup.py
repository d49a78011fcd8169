"""Looks up single messages for RocketMQ clients: by address and by key.

docs/internals/mapping.md has the addresses. Nothing is found that is not visible to readers of the
queue: what was deleted, what is beyond the visible end, what a transaction wrote that is undecided
or was aborted, delayed messages, and what belongs to a deleted topic of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.transcode.address import unpack_address
from rockgate.gateway.transcode.keys import indexes_of
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.protocol.entry import MAGIC_BATCH, places
from rockgate.protocol.kafka.errors import BatchTooLarge
from rockgate.protocol.kafka.records.bounds import LIGHT, is_heavy
from rockgate.store.api.queues import Queue
from rockgate.store.api.read import FOREVER_MS, Lookup, Slice

LIGHT_MAX: Final = 16
"""Batches that one query opens on the loop; a thread opens further ones."""
INDEXES_MAX: Final = 1_000
"""Records of one batch that are read: no response has more."""
End = Callable[[Queue], int]
"""Returns the offset after the last that readers of a queue may see."""


class FoundMessage(NamedTuple):
    """One message, wherever it is stored."""

    queue: Queue
    offset: int
    message: memoryview
    """As a pull would return it."""


class MessageLookup:
    """Finds messages. Caches only what the transcoder caches."""

    def __init__(self, lookup: Lookup, end: End, transcoder: Transcoder) -> None:
        self._lookup = lookup
        self._end = end
        self._transcoder = transcoder

    def message(self, address: int, heavy: list[Slice] | None = None) -> FoundMessage | None:
        """Return the message with an address; None if there is none, or if its batch is `heavy`.

        The transcoder must prepare what was added to `heavy` before the next attempt.
        """
        place = unpack_address(address)
        found = self._lookup.entry(place.position) if place is not None else None
        if place is None or found is None:
            return None
        queue, entry = found
        is_batch = places(entry.entry, 0)[1] == MAGIC_BATCH
        if is_batch is not (place.record_index >= 0):
            return None
        offset = entry.unit.base + max(0, place.record_index)
        if not self._is_visible(queue, offset):
            return None
        if not is_batch:
            return FoundMessage(queue, offset, entry.entry)
        message = self._transcoder.message(entry, offset, heavy)
        return None if message is None else FoundMessage(queue, offset, message)

    async def read(self, address: int) -> FoundMessage | None:
        """Return the message with an address, after a thread has opened its batch if necessary."""
        heavy: list[Slice] = []
        found = self.message(address, heavy)
        if heavy:
            # Nothing else runs between the opening and this: it is still cached.
            await self._transcoder.prepare(heavy)
            found = self.message(address)
        return found

    async def by_key(
        self,
        topic: bytes,
        key: bytes,
        *,
        limit: int,
        begin_ms: int = 0,
        end_ms: int = FOREVER_MS,
    ) -> list[FoundMessage]:
        """Return messages and records with a key, the last appended first, at most `limit`."""
        seeking = _Seeking(key, self._transcoder.threads)
        while True:
            positions = self._lookup.by_key(
                topic,
                key,
                limit=limit,
                begin_ms=begin_ms,
                end_ms=end_ms,
                batch_keys=seeking.keys,
            )
            if not seeking.unknown:
                break
            await seeking.find_out()
        messages: list[FoundMessage] = []
        for position in positions:
            found = self._lookup.entry(position)
            if found is None:
                continue
            queue, entry = found
            if places(entry.entry, 0)[1] != MAGIC_BATCH:
                if self._is_visible(queue, entry.unit.base):
                    messages.append(FoundMessage(queue, entry.unit.base, entry.entry))
            else:
                for index in seeking.indexes.get(position, ()):
                    offset = entry.unit.base + index
                    message = None
                    if self._is_visible(queue, offset):
                        message = await self._transcoder.read(entry, offset)
                    if message is not None:
                        messages.append(FoundMessage(queue, offset, message))
                    if len(messages) >= limit:
                        break
            if len(messages) >= limit:
                break
        return messages

    def _is_visible(self, queue: Queue, offset: int) -> bool:
        return queue.log_start <= offset < self._end(queue)


class _Seeking:
    """Which records of batches have a key, as far as known in one query."""

    def __init__(self, key: bytes, threads: BatchThreads) -> None:
        self._key = key
        self._threads = threads
        self._light_left = LIGHT_MAX
        self.indexes: dict[int, Sequence[int]] = {}
        """By position of the batch; the last first."""
        self.unknown: dict[int, memoryview] = {}
        """Batches that a thread has to open first."""

    def keys(self, position: int, body: memoryview) -> Sequence[bytes]:
        """Return the key if a batch has a record with it, as far as known."""
        indexes = self.indexes.get(position)
        if indexes is None and self._light_left and not is_heavy(body):
            self._light_left -= 1
            try:
                indexes = self.indexes[position] = indexes_of(body, self._key, LIGHT)[::-1]
            except BatchTooLarge:
                indexes = None
        if indexes is None:
            self.unknown[position] = body
        return (self._key,) if indexes else ()

    async def find_out(self) -> None:
        """Open the batches that are not known yet."""
        unknown, self.unknown = self.unknown, {}
        for position, body in unknown.items():
            work = partial(indexes_of, body, self._key, self._threads.bounds)
            try:
                found = await self._threads.run(work)
            except BatchTooLarge as damage:
                self._threads.pass_over(damage, position=position, offset=-1)
                found = []
            self.indexes[position] = found[: -INDEXES_MAX - 1 : -1]
