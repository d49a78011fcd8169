"""Batch entries for RocketMQ's side: opened once, kept within a bound, read piece by piece.

What may take longer than a millisecond is opening: decompressing a large batch. Such an entry is
not opened on the loop but noted, as cold ones are; whoever asked has it prepared by a thread and
asks again. A batch that cannot be opened is reported once and has no messages; its offsets stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from rockgate.gateway.mapping.cache import MessageCache
from rockgate.gateway.mapping.messages import Accepts, AcceptsCode, Cut, Messages, Origin
from rockgate.protocol.entry import DELAYED, places, read
from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import COMPRESSION_MASK, HEADER_SIZE, read_header
from rockgate.protocol.kafka.records.inflation import inflates_beyond
from rockgate.store.reading import Slice

log = logging.getLogger(__name__)

HEAVY_COMPRESSED: Final = 32 << 10
HEAVY_PLAIN: Final = 4 << 20
"""From these sizes on a batch is opened by a thread."""
HEAVY_INFLATED: Final = 1 << 20
"""So is a smaller one that becomes larger than this."""
_REPORTED_MAX: Final = 10_000


class Transcoder:
    """Reads batch entries as messages. One for the whole server; belongs to the loop's thread."""

    def __init__(
        self,
        *,
        cache_bytes_max: int,
        message_bytes_max: int,
        is_aborted: Callable[[Origin], bool] = lambda origin: False,
    ) -> None:
        self._is_aborted = is_aborted
        self.cache = MessageCache(cache_bytes_max)
        self._message_bytes_max = message_bytes_max
        self._reported: OrderedDict[int, None] = OrderedDict()
        self.unreadable_count = 0
        """Batches that could not be read to their end, each counted once."""

    def select(
        self,
        found: Slice,
        offset: int,
        *,
        count_max: int,
        size_max: int,
        accepts_code: AcceptsCode | None = None,
        accepts: Accepts | None = None,
        heavy: list[Slice] | None = None,
    ) -> Cut | None:
        """Return messages of a batch entry from `offset` on, as `Messages.select` does.

        One that is to be opened by a thread first is added to `heavy`, and the answer is None;
        without such a list it is opened here, however long that takes.
        """
        messages = self._open(found, heavy)
        if messages is None:
            return None
        if messages.origin is not None and self._is_aborted(messages.origin):
            return Cut([], 0, 0, max(messages.end, offset + 1))
        cut = messages.select(
            offset,
            count_max=count_max,
            size_max=size_max,
            accepts_code=accepts_code,
            accepts=accepts,
        )
        self._keep(found, messages)
        return cut

    def message(
        self, found: Slice, offset: int, heavy: list[Slice] | None = None
    ) -> memoryview | None:
        """Return the message of one offset of a batch entry; None if there is none, or `heavy`."""
        messages = self._open(found, heavy)
        if messages is None:
            return None
        if messages.origin is not None and self._is_aborted(messages.origin):
            return None
        message = messages.message(offset)
        self._keep(found, messages)
        return message

    async def prepare(self, heavy: Iterable[Slice]) -> None:
        """Let a thread open what is too much for the loop."""
        for found in heavy:
            if self.cache.get(found.unit.position) is None:
                opened = await asyncio.to_thread(self._try, found)
                self._take(found, opened)

    # Opening

    def _open(self, found: Slice, heavy: list[Slice] | None) -> Messages | None:
        kept = self.cache.get(found.unit.position)
        if kept is not None:
            return kept
        if heavy is not None and is_heavy(found.entry):
            heavy.append(found)
            return None
        return self._take(found, self._try(found))

    def _try(self, found: Slice) -> Messages | MalformedBatch:
        try:
            return Messages.open(found.entry, message_bytes_max=self._message_bytes_max)
        except MalformedBatch as damage:
            return damage

    def _take(self, found: Slice, opened: Messages | MalformedBatch) -> Messages:
        if isinstance(opened, MalformedBatch):
            messages = Messages.unreadable(found.entry)
            self._report(found, opened)
        else:
            messages = opened
        self.cache.put(found.unit.position, messages)
        return messages

    def _keep(self, found: Slice, messages: Messages) -> None:
        """Count what was made of it meanwhile."""
        self.cache.put(found.unit.position, messages)
        if messages.damage is not None:
            self._report(found, messages.damage)

    def _report(self, found: Slice, damage: MalformedBatch) -> None:
        position = found.unit.position
        if position in self._reported:
            return
        self._reported[position] = None
        if len(self._reported) > _REPORTED_MAX:
            self._reported.popitem(last=False)
        self.unreadable_count += 1
        log.warning(
            "batch not readable as messages position=%d offset=%d count=%d reason=%s",
            position,
            found.unit.base,
            found.unit.offset_count,
            damage,
        )


def is_heavy(view: memoryview) -> bool:
    """Whether a batch entry takes long to open."""
    *_, body_at, body_size = places(view, 0)
    if body_size < HEADER_SIZE:
        return False
    if body_size >= HEAVY_COMPRESSED and (
        body_size >= HEAVY_PLAIN or read(view).sys_flag & DELAYED
    ):
        return True
    header = read_header(view[body_at : body_at + HEADER_SIZE])
    if not header.attributes & COMPRESSION_MASK:
        return False
    body = view[body_at : body_at + body_size]
    return body_size >= HEAVY_COMPRESSED or inflates_beyond(body, header, HEAVY_INFLATED)
