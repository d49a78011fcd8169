"""Work outside the loop: what takes long and touches nothing that the loop changes.

Reading a request of a hundred thousand names, or writing its answer, takes a second of the
interpreter. In a thread it lets the loop have a turn every millisecond. There is one thread for all
connections: with several of them the loop would wait for each in turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Given = TypeVarTuple("Given")


class Beside:
    """One thread, started when it is first needed, that runs work in order."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    def do(self, work: Callable[[*Given], T], *given: *Given) -> asyncio.Future[T]:
        """Run work in the thread; the future is done when it is."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-requests")
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *given)
