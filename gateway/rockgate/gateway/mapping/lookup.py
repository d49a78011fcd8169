"""Looking up single messages for RocketMQ's side: by address, and by key.

docs/mapping.md has the addresses. Nothing is found that a reader of the queue would not be given:
what was deleted, what lies behind the high watermark, what belongs to an earlier life of a topic.
"""

from __future__ import annotations

from typing import NamedTuple

from rockgate.gateway.mapping.address import unpack_address
from rockgate.gateway.mapping.keys import indexes_of
from rockgate.gateway.mapping.transcoder import Transcoder
from rockgate.protocol.entry import MAGIC_BATCH, body_of, places
from rockgate.store.consumequeue import Queue
from rockgate.store.keyindex import FOREVER_MS
from rockgate.store.lookup import Lookup
from rockgate.store.reading import Reader, Slice


class Found(NamedTuple):
    """One message, wherever it lies."""

    queue: Queue
    offset: int
    message: memoryview
    """As a pull would hand it out."""


class MessageLookup:
    """Finds messages. Keeps nothing but what the transcoder keeps."""

    def __init__(self, lookup: Lookup, reader: Reader, transcoder: Transcoder) -> None:
        self._lookup = lookup
        self._high_watermark = reader.high_watermark
        self._transcoder = transcoder

    def message(self, address: int, heavy: list[Slice] | None = None) -> Found | None:
        """Return the message with an address; None if there is none, or if its batch is `heavy`.

        What was added to `heavy` is to be prepared by the transcoder before asking again.
        """
        place = unpack_address(address)
        found = self._lookup.entry(place.position) if place is not None else None
        if place is None or found is None:
            return None
        queue, entry = found
        is_batch = places(entry.entry, 0)[1] == MAGIC_BATCH
        if is_batch is not (place.record_index >= 0):
            return None
        if not is_batch:
            return Found(queue, entry.unit.base, entry.entry)
        return self._record(queue, entry, entry.unit.base + place.record_index, heavy)

    def by_key(
        self,
        topic: bytes,
        key: bytes,
        *,
        limit: int,
        begin_ms: int = 0,
        end_ms: int = FOREVER_MS,
        heavy: list[Slice] | None = None,
    ) -> list[Found]:
        """Return messages and records with a key, the last appended first, `limit` at most."""
        messages: list[Found] = []
        for position in self._lookup.by_key(
            topic, key, limit=limit, begin_ms=begin_ms, end_ms=end_ms
        ):
            found = self._lookup.entry(position)
            if found is None:
                continue
            queue, entry = found
            if places(entry.entry, 0)[1] != MAGIC_BATCH:
                messages.append(Found(queue, entry.unit.base, entry.entry))
            else:
                for index in reversed(indexes_of(body_of(entry.entry), key)):
                    record = self._record(queue, entry, entry.unit.base + index, heavy)
                    if record is not None:
                        messages.append(record)
                    if len(messages) >= limit:
                        break
            if len(messages) >= limit:
                break
        return messages

    def _record(
        self, queue: Queue, entry: Slice, offset: int, heavy: list[Slice] | None
    ) -> Found | None:
        if not queue.log_start <= offset < self._high_watermark(queue):
            return None
        message = self._transcoder.message(entry, offset, heavy)
        return None if message is None else Found(queue, offset, message)
