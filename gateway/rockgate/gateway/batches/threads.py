"""Threads that decode large batches, few at a time, so that decompressed data stays bounded.

What is light (`bounds.LIGHT`) is opened wherever it is met. Anything else comes here, whoever wants
it opened. A thread of Python's keeps the loop waiting for a millisecond at most, as long as it does
nothing large in one step; so whatever runs here goes through a batch record by record.

A batch that passes the bounds, or that cannot be read, is passed over by whoever reads: that is
said once and counted, and the reader goes on behind it.
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
"""Threads, however much room there is: they share one interpreter with the loop."""
_REPORTED_MAX: Final = 10_000

T = TypeVar("T")
log = logging.getLogger(__name__)


class BatchThreads:
    """Opens batches beside the loop. One for the whole server; belongs to the loop's thread."""

    def __init__(self, config: BatchesConfig | None = None) -> None:
        config = config or BatchesConfig()
        self.bounds = config.bounds()
        room = config.decoding_bytes_max // config.inflated_bytes_max
        self._threads = ThreadPoolExecutor(max(1, min(AT_ONCE_MAX, room)), "rockgate-batches")
        self._reported: OrderedDict[int, None] = OrderedDict()
        self.unreadable_count = 0
        """Batches that could not be read to their end, each counted once."""
        self.too_large_count = 0
        """Batches that pass the bounds, each counted once."""

    async def run(self, work: Callable[[], T]) -> T:
        """Have work done by a thread, when it is its turn."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def pass_over(
        self, damage: MalformedBatch, *, position: int, offset: int, count: int = 1
    ) -> None:
        """Say once that a batch is not read, and why."""
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
        """Say that a batch is not found by the keys of its records; wherever it will lie."""
        self.too_large_count += 1
        log.warning("cannot index batch by key crc=%#010x reason=%s", crc, damage)

    def close(self) -> None:
        """Let go of the threads; what waits for one is not done any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
