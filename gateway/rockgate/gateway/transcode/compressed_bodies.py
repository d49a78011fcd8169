"""Decompresses batch bodies: small ones inline, others in a thread, cached until they are read.

What takes longer than a millisecond is not decompressed on the loop. For a reader such a body is
not yet available, as if its message had not arrived; when a thread has decompressed it, the waiters
of the queue are notified.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from rockgate.gateway.runtime.bounded_cache import BoundedCache
from rockgate.protocol.remoting.compression import SIZE_MAX, Compression, decompress
from rockgate.protocol.remoting.errors import ContentTooLarge, MalformedContent
from rockgate.store.api.queues import Queue

INFLATED_BYTES_MAX: Final = 256 << 10
"""Bytes decompressed on the loop at a time: about 1 ms."""
COMPRESSED_BYTES_MAX: Final = 32 << 10
"""Bodies of this size or more are never decompressed on the loop."""
CACHE_BYTES_MAX: Final = 64 << 20
AT_ONCE_MAX: Final = 2
"""Threads that decompress; further bodies wait for their turn."""


class CompressedBodies:
    """Decompresses bodies. One for the whole server; belongs to the loop's thread."""

    def __init__(
        self,
        on_opened: Callable[[Queue], None] = lambda queue: None,
        *,
        cache_bytes_max: int = CACHE_BYTES_MAX,
    ) -> None:
        self._on_opened = on_opened
        self.cache: BoundedCache[int, bytes | MalformedContent] = BoundedCache(cache_bytes_max)
        self._asked: dict[int, Queue] = {}
        self._waiting: dict[int, tuple[bytes | memoryview, Compression]] = {}
        self._under_way = 0

    def body(
        self, queue: Queue, position: int, data: bytes | memoryview, kind: Compression
    ) -> bytes | None:
        """Return a message's decompressed body, or None while a thread decompresses it.

        Raises MalformedContent if it is invalid.
        """
        cached = self.cache.get(position)
        if cached is not None:
            if isinstance(cached, MalformedContent):
                raise cached
            return cached
        if len(data) < COMPRESSED_BYTES_MAX:
            try:
                return decompress(data, kind, size_max=INFLATED_BYTES_MAX)
            except ContentTooLarge:
                pass
        if position not in self._asked:
            self._asked[position] = queue
            self._waiting[position] = (data, kind)
            self._begin()
        return None

    def _begin(self) -> None:
        """Decompress the body that has waited longest, if a thread is free."""
        while self._waiting and self._under_way < AT_ONCE_MAX:
            position = next(iter(self._waiting))
            data, kind = self._waiting.pop(position)
            self._under_way += 1
            future = asyncio.get_running_loop().run_in_executor(None, _try, data, kind)
            future.add_done_callback(partial(self._opened, position))

    def _opened(self, position: int, future: asyncio.Future[bytes | MalformedContent]) -> None:
        self._under_way -= 1
        queue = self._asked.pop(position)
        if future.cancelled():
            return
        opened = future.result()
        self.cache.put(position, opened, _size(opened))
        self._begin()
        self._on_opened(queue)


def _try(data: bytes | memoryview, kind: Compression) -> bytes | MalformedContent:
    try:
        return decompress(data, kind, size_max=SIZE_MAX)
    except MalformedContent as damage:
        return damage


def _size(opened: bytes | MalformedContent) -> int:
    return len(opened) if isinstance(opened, bytes) else 100
