"""Waits for the signals that end a process, and does nothing else with them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def setting(event: asyncio.Event) -> Iterator[None]:
    """SIGINT and SIGTERM set an event in this block. A second one has its previous effect."""
    loop = asyncio.get_running_loop()
    before = {each: signal.getsignal(each) for each in SIGNALS}

    def restore() -> None:
        for each, handler in before.items():
            loop.remove_signal_handler(each)
            # None: it was not installed from Python, and cannot be restored.
            if handler is not None:
                signal.signal(each, handler)
        before.clear()

    def came() -> None:
        event.set()
        restore()

    for each in SIGNALS:
        loop.add_signal_handler(each, came)
    try:
        yield
    finally:
        restore()
