"""Standard input and output beside an event loop, and a line with the current rate.

Reading and writing may block for as long as a person or a slow program takes. Both happen in
dedicated threads, so that heartbeats continue; the threads are daemons, so Ctrl-C ends a command
that waits for input.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from rockgate.cli.client.kafka.errors import Unusable
from rockgate.cli.text.values import size_text

READ_BYTES: Final = 1 << 18
LINE_BYTES_MAX: Final = 64 << 20
_CHUNKS_AHEAD: Final = 16
OUT_SECONDS: Final = 1.0
"""How long an interrupted command waits for output that is being written."""


async def chunks(descriptor: int) -> AsyncIterator[bytes]:
    """Chunks as they arrive, until the end of input."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    room = threading.Semaphore(_CHUNKS_AHEAD)

    def read() -> None:
        found: bytes | OSError = b"?"
        while found and not isinstance(found, OSError):
            room.acquire()
            try:
                found = os.read(descriptor, READ_BYTES)
            except OSError as error:
                found = error
            try:
                loop.call_soon_threadsafe(waiting.put_nowait, found)
            except RuntimeError:
                # The loop has ended meanwhile: the data is no longer needed.
                return

    threading.Thread(target=read, name="input", daemon=True).start()
    while True:
        found = await waiting.get()
        room.release()
        if isinstance(found, OSError):
            raise found
        if not found:
            return
        yield found


async def lines(descriptor: int) -> AsyncIterator[list[bytes]]:
    """Whole lines without their ends, in as many as came at once; the last may lack its end."""
    rest = b""
    async for chunk in chunks(descriptor):
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > LINE_BYTES_MAX:
            raise Unusable(f"Input line exceeds the maximum of {LINE_BYTES_MAX:,} bytes.")
        if whole:
            yield [line[:-1] if line.endswith(b"\r") else line for line in whole]
    if rest:
        yield [rest]


class Output:
    """Writes to a descriptor in a thread; `write` returns when the bytes are out."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._jobs: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._work, name="output", daemon=True).start()

    async def write(self, data: bytes) -> None:
        """Write all of it; BrokenPipeError when the reader has closed the pipe.

        What is out counts as written: a caller that is cancelled meanwhile can still report it, up
        to the next wait.
        """
        done: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put((data, done))
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait([done], timeout=OUT_SECONDS)
            if not done.done():
                done.cancel()
                raise
            done.result()
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            task.cancel()

    def _work(self) -> None:
        while True:
            data, done = self._jobs.get()
            error: OSError | None = None
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError as failed:
                error = failed
            try:
                self._loop.call_soon_threadsafe(_settle, done, error)
            except RuntimeError:
                # The loop has ended meanwhile: there is no waiter left.
                return


def _settle(done: asyncio.Future[None], error: OSError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


class Meter:
    """Counts records and bytes, and shows them on a terminal's line a few times a second."""

    SHOW_S: Final = 0.2

    def __init__(
        self,
        word: str,
        *,
        is_visible: bool,
        clock: Callable[[], float] = time.monotonic,
        show: Callable[[str], None] | None = None,
    ) -> None:
        self.record_count = 0
        self.size = 0
        self._word = word
        self._is_visible = is_visible
        self._clock = clock
        self._show = show or _to_standard_error
        self._started = self._printed_at = clock()

    def add(self, count: int, size: int) -> None:
        """Count what was done, and show it if it is time."""
        self.record_count += count
        self.size += size
        now = self._clock()
        if self._is_visible and now - self._printed_at >= self.SHOW_S:
            self._printed_at = now
            self._show(f"\r\x1b[K{self.text()}")

    def text(self) -> str:
        """The totals and the rate."""
        seconds = max(self._clock() - self._started, 1e-3)
        return (
            f"{self._word} {self.record_count:,} records, {size_text(self.size)}"
            f" ({self.record_count / seconds:,.0f}/s, {size_text(int(self.size / seconds))}/s)"
        )

    def clear(self) -> None:
        """Erase the line."""
        if self._is_visible:
            self._show("\r\x1b[K")


def _to_standard_error(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
