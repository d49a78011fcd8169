"""Batch entries for RocketMQ clients: decoded once, cached within a limit, read in pieces.

Decompressing a large batch may take longer than a millisecond. Such an entry is not opened on the
loop but noted, as cold ones are; the reader has a thread prepare it and retries. A batch that
cannot be opened, or that exceeds the bounds, is reported once and has no messages; its offsets
remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.runtime.bounded_cache import BoundedCache
from rockgate.gateway.transcode.messages import Accepts, AcceptsCode, Cut, Messages, Origin
from rockgate.protocol.entry import body_of
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.bounds import LIGHT, Bounds, is_heavy
from rockgate.store.api.read import Slice


class Transcoder:
    """Reads batch entries as messages. One for the whole server; belongs to the loop's thread."""

    def __init__(
        self,
        *,
        cache_bytes_max: int,
        message_bytes_max: int,
        is_aborted: Callable[[Origin], bool] = lambda origin: False,
        threads: BatchThreads | None = None,
    ) -> None:
        self._is_aborted = is_aborted
        self.cache: BoundedCache[int, Messages] = BoundedCache(cache_bytes_max)
        self._message_bytes_max = message_bytes_max
        self.threads = threads or BatchThreads()

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

        One that a thread must open first is added to `heavy`, and the result is None; without such
        a list it is opened immediately, however long that takes.
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

    async def read(self, found: Slice, offset: int) -> memoryview | None:
        """Return the same, after a thread has opened the batch if that takes long."""
        heavy: list[Slice] = []
        message = self.message(found, offset, heavy)
        if heavy:
            # Nothing else runs between the opening and this, so it is still cached.
            await self.prepare(heavy)
            message = self.message(found, offset)
        return message

    async def prepare(self, heavy: Iterable[Slice]) -> None:
        """Open in a thread what takes too long on the loop."""
        for found in heavy:
            if self.cache.get(found.unit.position) is None:
                opened = await self.threads.run(partial(self._try, found))
                self._take(found, opened)

    # Opening

    def _open(self, found: Slice, heavy: list[Slice] | None) -> Messages | None:
        cached = self.cache.get(found.unit.position)
        if cached is not None:
            return cached
        if heavy is None:
            return self._take(found, self._try(found))
        opened: Messages | MalformedBatch | None = None
        if not is_heavy(body_of(found.entry)):
            opened = self._try(found, LIGHT)
        if opened is None or isinstance(opened, BatchTooLarge):
            heavy.append(found)
            return None
        return self._take(found, opened)

    def _try(self, found: Slice, bounds: Bounds | None = None) -> Messages | MalformedBatch:
        try:
            return Messages.open(
                found.entry,
                message_bytes_max=self._message_bytes_max,
                bounds=bounds or self.threads.bounds,
                reading=self.threads.bounds,
            )
        except MalformedBatch as damage:
            # Its frames reference the decompressed data.
            return damage.with_traceback(None)

    def _take(self, found: Slice, opened: Messages | MalformedBatch) -> Messages:
        if isinstance(opened, MalformedBatch):
            messages = Messages.unreadable(found.entry)
            self._report(found, opened)
        else:
            messages = opened
        self.cache.put(found.unit.position, messages, messages.size)
        return messages

    def _keep(self, found: Slice, messages: Messages) -> None:
        """Count the messages that were translated in the meantime."""
        self.cache.put(found.unit.position, messages, messages.size)
        if messages.damage is not None:
            self._report(found, messages.damage)

    def _report(self, found: Slice, damage: MalformedBatch) -> None:
        unit = found.unit
        self.threads.pass_over(
            damage, position=unit.position, offset=unit.base, count=unit.offset_count
        )
