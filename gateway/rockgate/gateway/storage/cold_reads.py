"""Loads cold parts of the log in a thread before the event loop reads them.

A reader asks which of the entries it needs are cold, and has a thread load those first. Resident
ones cost a comparison and no turn of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from rockgate.store.api.log import Log, PageResidency, Place
from rockgate.store.api.queues import Unit


class ColdReads:
    """Loads entries of one store's log."""

    def __init__(self, residency: PageResidency, log: Log) -> None:
        self._residency = residency
        self._log = log

    def cold(self, units: Iterable[Unit | None]) -> list[Place]:
        """Return the positions of the entries that must be loaded first."""
        resident_from = self._residency.resident_from(self._log.end)
        return [
            (unit.position, unit.size)
            for unit in units
            if unit is not None
            and unit.position < resident_from
            and self._residency.is_cold(unit.position, unit.size)
        ]

    async def load(self, places: Sequence[Place]) -> None:
        """Load entries in a thread; without any it returns at once."""
        if places:
            chunks = self._residency.plan(places, self._log.end)
            await asyncio.to_thread(self._residency.fault_in, chunks)
            self._residency.note(chunks)
