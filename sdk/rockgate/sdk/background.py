"""One event loop in a dedicated thread, for programs that have none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Final, TypeVar

from rockgate.sdk.errors import Closed, SdkError

T = TypeVar("T")

END_S: Final = 1.0
JOIN_S: Final = 5.0
"""How long the last to close waits for the background loop to end."""


class Background:
    """One loop in one thread, for as long as it is in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._user_count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether the thread exists."""
        return self._thread is not None

    def acquire(self) -> None:
        """Add a user; the first one starts the loop."""
        with self._lock:
            self._user_count += 1
            if self._thread is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="rockgate-sdk", daemon=True
                )
                self._thread.start()

    def release(self) -> None:
        """Remove a user; the last one stops the loop."""
        with self._lock:
            self._user_count -= 1
            if self._user_count or self._loop is None or self._thread is None:
                return
            loop, thread = self._loop, self._thread
            self._thread = self._loop = None
        # Waited for without the lock: an open in the meantime gets a new loop.
        loop.call_soon_threadsafe(loop.stop)
        thread.join(JOIN_S)

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop; any other thread may wait for the future."""
        try:
            self.check_thread()
            # Under the lock, because a loop that is ending drops new calls silently.
            with self._lock:
                if self._loop is None:
                    raise Closed("It is not open. Use `with` or `open()`.")
                return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except SdkError:
            coroutine.close()
            raise

    def check_thread(self) -> None:
        """Refuse a call from the loop's own thread: it would wait for itself."""
        if threading.current_thread() is self._thread:
            raise SdkError("Blocking calls from the SDK's event loop would deadlock.")

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result."""
        future = self.submit(coroutine)
        try:
            return future.result()
        except CancelledError:
            raise Closed("It was closed before the response arrived.") from None
        finally:
            # Matters only if the wait was interrupted: the abandoned call ends there too.
            future.cancel()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_end_tasks())
    finally:
        # It waits for no thread of its pool: results of lookups and compression are unused by now.
        loop.close()


async def _end_tasks() -> None:
    """Cancel what is left, so that no caller waits for it forever."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=END_S)


background: Final = Background()
"""The loop of all blocking producers and consumers of this process."""
