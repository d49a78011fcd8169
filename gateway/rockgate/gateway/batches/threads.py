"""Threads that decode large batches, few at a time, so that decompressed data stays bounded.

Light batches (`bounds.LIGHT`) are opened inline; all others are opened here. A Python thread blocks
the loop for a millisecond at most, provided that it does nothing large in one step; so whatever
runs here processes a batch record by record.

A batch that exceeds the bounds, or that cannot be read, is skipped by its readers: it is logged
once and counted, and reading continues behind it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from rockgate.gateway.batches.config import BatchesConfig
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch

AT_ONCE_MAX: Final = 2
"""Maximum number of threads, however many cores there are:

they share one interpreter with the loop.
"""
_REPORTED_MAX: Final = 10_000

T = TypeVar("T")
log = logging.getLogger(__name__)


class BatchThreads:
    """Decodes batches outside the event loop.

    One for the whole server; belongs to the loop's thread.
    """

    def __init__(self, config: BatchesConfig | None = None) -> None:
        config = config or BatchesConfig()
        self.bounds = config.bounds()
        room = config.decoding_bytes_max // config.inflated_bytes_max
        self._threads = ThreadPoolExecutor(max(1, min(AT_ONCE_MAX, room)), "rockgate-batches")
        self._reported: OrderedDict[int, None] = OrderedDict()
        self.unreadable_count = 0
        """Batches that could not be decoded completely, each counted once."""
        self.too_large_count = 0
        """Batches that exceed the bounds, each counted once."""

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in a thread, in order of submission."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def pass_over(
        self, damage: MalformedBatch, *, position: int, offset: int, count: int = 1
    ) -> None:
        """Log once that a batch is skipped, and why."""
        if position in self._reported:
            return
        self._reported[position] = None
        if len(self._reported) > _REPORTED_MAX:
            self._reported.popitem(last=False)
        if isinstance(damage, BatchTooLarge):
            self.too_large_count += 1
        else:
            self.unreadable_count += 1
        log.warning(
            "cannot decode batch into messages position=%d offset=%d count=%d reason=%s",
            position,
            offset,
            count,
            damage,
        )

    def skip_keys(self, damage: BatchTooLarge, *, crc: int) -> None:
        """Log that a batch cannot be found by its records' keys; its position is not known yet."""
        self.too_large_count += 1
        log.warning("cannot index batch by key crc=%#010x reason=%s", crc, damage)

    def close(self) -> None:
        """Stop the threads; queued work is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
