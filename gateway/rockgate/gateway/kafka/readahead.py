"""Runs of messages that are made into batches before they are asked for.

A Kafka client that reads what RocketMQ's wrote asks for one run after the other, and nothing
happens here while it takes one apart. So after each run that more follow, the next one is made at
once, in a turn of its own, and lies here until it is asked for. What is asked for differently, or
not at all, is dropped.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from rockgate.protocol.kafka.varint import Buffer
from rockgate.store.clock import Clock
from rockgate.store.consumequeue import Queue
from rockgate.store.errors import StoreError

BYTES_MAX: Final = 32 << 20
"""What may lie here: a run takes one at most."""
PLANNED_MAX: Final = 32
"""Runs that wait to be made; each takes a turn."""
KEPT_MS: Final = 5_000
"""How long a run is kept when others want its place."""


class Run(NamedTuple):
    """Batches made of messages, and where they end."""

    records: list[Buffer]
    size: int
    next_offset: int


def soon(work: Callable[[], None]) -> None:
    """Do something in the loop's next turn."""
    asyncio.get_running_loop().call_soon(work)


class ReadAhead:
    """The runs that were made ahead. Belongs to the loop's thread."""

    def __init__(
        self,
        clock: Clock,
        later: Callable[[Callable[[], None]], None] = soon,
        *,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self._clock = clock
        self._later = later
        self._bytes_max = bytes_max
        self._kept: OrderedDict[tuple[Queue, int], tuple[Run, int]] = OrderedDict()
        self._planned: set[tuple[Queue, int]] = set()
        self.size = 0
        """Bytes of all that is kept."""

    def take(self, queue: Queue, offset: int, end: int, size_max: int) -> Run | None:
        """Return the run that begins at an offset, if it was made and fits; it is gone then."""
        found = self._kept.pop((queue, offset), None)
        if found is None:
            return None
        run = found[0]
        self.size -= run.size
        return run if run.next_offset <= end and run.size <= size_max else None

    def plan(self, queue: Queue, offset: int, make: Callable[[], Run | None]) -> None:
        """Have the run at an offset made soon, if there is room for one more."""
        place = (queue, offset)
        if place in self._planned or place in self._kept or not self._has_room():
            return
        self._planned.add(place)

        def work() -> None:
            self._planned.discard(place)
            try:
                run = make()
            except StoreError:
                # Whoever asks for it will be told.
                return
            if run is not None:
                self._kept[place] = (run, self._clock.monotonic_ms())
                self.size += run.size

        self._later(work)

    def _has_room(self) -> bool:
        """Say whether another run may be made; runs that nobody came for make room."""
        oldest_ms = self._clock.monotonic_ms() - KEPT_MS
        while self.size >= self._bytes_max:
            place, (run, made_ms) = next(iter(self._kept.items()))
            if made_ms > oldest_ms:
                return False
            del self._kept[place]
            self.size -= run.size
        return len(self._planned) < PLANNED_MAX
