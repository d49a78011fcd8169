"""Builds the `/metrics` page from its sources, in slices.

A source writes its metrics and may pause: then other work gets its turn, if this one has taken
long. A request that arrives while a page is being written gets that page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from time import perf_counter

from rockgate.gateway.telemetry import metrics
from rockgate.gateway.telemetry.exposition import Exposition

SLICE_SECONDS = 0.002

Source = Callable[[Exposition], Iterator[None]]


class Telemetry:
    """The sources of metrics. Owned by the app; each part adds its own as it is built."""

    def __init__(self, *, now: Callable[[], float] = perf_counter) -> None:
        self.sources: list[Source] = []
        self._now = now
        self._under_way: asyncio.Task[str] | None = None

    async def page(self) -> str:
        """The page as of now."""
        if self._under_way is None:
            self._under_way = asyncio.ensure_future(self._gather())
            self._under_way.add_done_callback(self._done)
        # A cancelled request must not cancel the page for the others.
        return await asyncio.shield(self._under_way)

    def _done(self, task: asyncio.Task[str]) -> None:
        self._under_way = None

    async def _gather(self) -> str:
        now = self._now
        began = until = now()
        until += SLICE_SECONDS
        page = Exposition()
        for source in list(self.sources):
            for _ in source(page):
                if now() >= until:
                    await asyncio.sleep(0)
                    until = now() + SLICE_SECONDS
        page.add(metrics.SCRAPE, now() - began)
        return page.text()
