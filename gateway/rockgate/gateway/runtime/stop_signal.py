"""The signal that ends a process: the first one asks, a second interrupt insists."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import Final

INTERRUPTED_STATUS: Final = 130
log = logging.getLogger(__name__)


class Stop:
    """Waits for the signal that ends the server. A second SIGINT exits immediately."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._asked: asyncio.Future[str] = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)

    async def asked(self) -> str:
        """The name of the signal, once it was received."""
        return await self._asked

    def _on_signal(self, number: signal.Signals) -> None:
        if not self._asked.done():
            self._asked.set_result(number.name)
        elif number == signal.SIGINT:
            log.warning("second interrupt, exiting immediately")
            os._exit(INTERRUPTED_STATUS)
