"""The offsets that one group has in flight in one queue, as pop needs them: one by one.

docs/internals/pop.md has the state table. A window decides by the times it is passed; it has no
clock, and only the fold that applies changes writes to it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from rockgate.store.inflight.changes import Acquire, Extend, offsets_of
from rockgate.store.inflight.tracked import Key, Tracked

IN_FLIGHT_MAX: Final = 10_000
"""Maximum number of offsets per window: they fit into one snapshot slice, and a scan is cheap."""
DELIVERIES_MAX: Final = 0x7FFF
_IN_PLACE: Final = 0x8000
_COUNT_BITS: Final = 16
_ITEM: Final = struct.Struct(">qqH")


class InFlight(msgspec.Struct, frozen=True, gc=False):
    """One offset in flight."""

    offset: int
    deadline_ms: int
    deliveries: int
    is_in_place: bool


class Window(Tracked):
    """The offsets in flight, in ascending order, and where the rest of the queue starts."""

    __slots__ = ("_items", "attempt", "committed", "has_in_place", "quiet_rounds", "scanned")

    def __init__(self, key: Key, end: int, position: int) -> None:
        super().__init__(key, end, position)
        self.scanned = end
        """From here on nothing was examined; in memory only, a restart examines again."""
        self.committed: int | None = None
        """The offset that was last committed for it, if known. In memory only."""
        self.quiet_rounds = 0
        """In how many rounds of upkeep nothing was in flight. In memory only."""
        self.attempt: str | None = None
        """The attempt by which it was last acquired in order. In memory only."""
        self.has_in_place = False
        """Whether anything in flight is redelivered in place."""
        # Deadline, in place and count in one integer: a tuple for each would take five times as
        # much.
        self._items: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    @property
    def room(self) -> int:
        """How many more offsets may be in flight."""
        return IN_FLIGHT_MAX - len(self._items)

    @property
    def start(self) -> int:
        """Everything before this offset is finished."""
        return next(iter(self._items), self.end)

    def find(self, offset: int) -> InFlight | None:
        """Return an offset that is in flight."""
        packed = self._items.get(offset)
        return None if packed is None else _unpack(offset, packed)

    def holds(self, offset: int, deadline_ms: int) -> bool:
        """Say whether an offset is in flight from the delivery with this deadline."""
        packed = self._items.get(offset)
        return packed is not None and packed >> _COUNT_BITS == deadline_ms

    def deliveries(self, offset: int) -> int:
        """Return how often an offset was delivered; 0 if it is not in flight."""
        return self._items.get(offset, 0) & DELIVERIES_MAX

    def is_held(self, now_ms: int) -> bool:
        """Say whether anything in flight has not expired."""
        return any(packed >> _COUNT_BITS > now_ms for packed in self._items.values())

    def all(self) -> Iterator[InFlight]:
        """Yield all that are in flight; consume it before the next change."""
        return (_unpack(offset, packed) for offset, packed in self._items.items())

    def expired(self, now_ms: int, *, is_in_place: bool) -> list[InFlight]:
        """Return those of one kind whose deadline has passed."""
        return [
            _unpack(offset, packed)
            for offset, packed in self._items.items()
            if packed >> _COUNT_BITS <= now_ms and bool(packed & _IN_PLACE) is is_in_place
        ]

    def next_deadline(self, after_ms: int = -1) -> int | None:
        """Return the earliest deadline after a time; None without any."""
        least = (after_ms + 1) << _COUNT_BITS
        found = min((each for each in self._items.values() if each >= least), default=None)
        return None if found is None else found >> _COUNT_BITS

    # Changes: only the fold makes them

    def acquired(self, change: Acquire) -> None:
        """Put offsets in flight, as a change says."""
        self.acquire(
            offsets_of(change.runs), change.end, change.deadline_ms, is_in_place=change.is_in_place
        )

    def extended(self, change: Extend) -> None:
        """Set another deadline, as a change says."""
        self.extend(offsets_of(change.runs), change.deadline_ms)

    def acquire(
        self, offsets: Iterable[int], end: int, deadline_ms: int, *, is_in_place: bool
    ) -> None:
        """Put offsets in flight, or deliver some again."""
        items = self._items
        lead = deadline_ms << _COUNT_BITS | (_IN_PLACE if is_in_place else 0)
        is_sorted = True
        last = self.end - 1
        for offset in offsets:
            known = items.get(offset)
            if known is not None:
                items[offset] = lead | min((known & DELIVERIES_MAX) + 1, DELIVERIES_MAX)
                continue
            items[offset] = lead | 1
            is_sorted = is_sorted and offset > last
            last = offset
        if not is_sorted:
            self._items = dict(sorted(items.items()))
        self.has_in_place = self.has_in_place or (is_in_place and bool(items))
        self.end = max(self.end, end)
        self.scanned = max(self.scanned, self.end)
        self.quiet_rounds = 0

    def extend(self, offsets: Iterable[int], deadline_ms: int) -> None:
        """Set another deadline for offsets."""
        items = self._items
        mask = (1 << _COUNT_BITS) - 1
        for offset in offsets:
            known = items.get(offset)
            if known is not None:
                items[offset] = deadline_ms << _COUNT_BITS | known & mask

    def ended(self, runs: Sequence[int]) -> None:
        """Remove runs of offsets."""
        self.finish(offsets_of(runs))

    def finish(self, offsets: Iterable[int]) -> None:
        """Remove offsets."""
        items = self._items
        for offset in offsets:
            items.pop(offset, None)
        if not items:
            # A dictionary retains the space of deleted items, and finding its first one scans that.
            self._items = {}
            self.has_in_place = False

    def shift(self, by_ms: int) -> None:
        """Move all deadlines."""
        by, mask = by_ms << _COUNT_BITS, (1 << _COUNT_BITS) - 1
        self._items = {
            offset: max(packed + by, packed & mask) for offset, packed in self._items.items()
        }

    def reset(self, offset: int) -> None:
        """Start at another offset, with nothing in flight."""
        self._items = {}
        self.end = self.scanned = offset
        self.committed = self.attempt = None
        self.quiet_rounds = 0
        self.has_in_place = False

    # Snapshots

    def packed(self) -> bytes:
        """Return for each offset: itself, deadline, and deliveries with the bit for in place."""
        pack, mask = _ITEM.pack, (1 << _COUNT_BITS) - 1
        return b"".join(
            [
                pack(offset, packed >> _COUNT_BITS, packed & mask)
                for offset, packed in self._items.items()
            ]
        )

    def unpack(self, data: bytes) -> None:
        """Put in flight what a snapshot has."""
        if len(data) > IN_FLIGHT_MAX * _ITEM.size:
            raise ValueError("a window holds too many offsets")
        for item in _ITEM.iter_unpack(data):
            self.put(*item)

    def put(self, offset: int, deadline_ms: int, flags: int) -> None:
        """Add an offset."""
        self._items[offset] = deadline_ms << _COUNT_BITS | flags
        self.has_in_place = self.has_in_place or bool(flags & _IN_PLACE)


def _unpack(offset: int, packed: int) -> InFlight:
    return InFlight(
        offset, packed >> _COUNT_BITS, packed & DELIVERIES_MAX, bool(packed & _IN_PLACE)
    )
