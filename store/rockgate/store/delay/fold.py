"""Delayed entries: a fold over schedules, deliveries and recalls.

docs/internals/delay.md specifies it. A bit in its queue's set says whether an item is pending; its
due time is in a unit of a file, in a list of the wheel. A unit whose bit is cleared is skipped when
it comes up, so no unit is ever searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from typing import Final, NamedTuple

import msgspec

from rockgate.store.clock import SteadyClock
from rockgate.store.delay.changes import (
    DELAY_TOPIC,
    DUE_MAX,
    DelayChangeKind,
    Ended,
    Scheduled,
    decode,
    encode_ended,
)
from rockgate.store.delay.items import pack_items, unpack_items
from rockgate.store.delay.offset_set import OffsetSet
from rockgate.store.delay.units import FILE_UNITS, NONE, Fields, Units
from rockgate.store.delay.wheel import Wheels
from rockgate.store.errors import StoreCorrupt
from rockgate.store.files.interface import Directory
from rockgate.store.state.fold import Change, Journal, check_format
from rockgate.store.state.topicchanges import TOPICS_TOPIC, deleted_ids
from rockgate.store.state.topics import Topics

_FORMAT: Final = 1
_SLICE_UNITS: Final = 2_000
_NEVER: Final = 1 << 62
_SNAPSHOT: Final = "Delay snapshot"

_new: Final = tuple.__new__  # skips the call of NamedTuple._make

Key = tuple[bytes, int]
"""Topic id and queue id."""


class WaitingOffset(NamedTuple):
    """A pending item."""

    topic_id: bytes
    queue_id: int
    offset: int
    due_ms: int


class Listed(NamedTuple):
    """A pending item with its sequence; they sort in delivery order."""

    due_ms: int
    sequence: int
    topic_id: bytes
    queue_id: int
    offset: int


class Due(NamedTuple):
    """An item that is due, and its unit."""

    unit: int
    sequence: int
    waiting: WaitingOffset


class _Slice(msgspec.Struct, array_like=True, frozen=True):
    queues: list[Key]
    items: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Slice).decode


class Delay:
    """The fold. A message is scheduled by appending it with its schedule: see `Deliveries`."""

    name: Final = "delay"
    topics: Final = frozenset((DELAY_TOPIC, TOPICS_TOPIC))

    def __init__(
        self,
        journal: Journal,
        topics: Topics,
        directory: Directory,
        clock: SteadyClock,
        *,
        file_units: int = FILE_UNITS,
        slice_units: int = _SLICE_UNITS,
    ) -> None:
        self._journal = journal
        self._find_topic = topics.find
        self._clock = clock
        self._slice_units = slice_units
        self.units = Units(directory, file_units)
        self.looks_at_ms = _NEVER
        """Time of the next delivery check; set by the owner of the timer."""
        self.on_sooner: Callable[[], None] = lambda: None
        """Called when something is scheduled that is due before that check."""
        self._begin()

    def _begin(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._queues: list[tuple[Key, OffsetSet]] = []
        self._sequence = 0
        self.waiting_count = 0
        self._wheels = Wheels(self.units, self._clock)

    # Asking

    def is_waiting(self, topic_id: bytes, queue_id: int, offset: int) -> bool:
        """Say whether an item is pending."""
        number = self._numbers.get((topic_id, queue_id))
        return number is not None and offset in self._queues[number][1]

    def counts(self) -> dict[Key, int]:
        """Return the number of pending items of each queue that has any."""
        return {key: len(offsets) for key, offsets in self._queues if offsets}

    def wants(self, topic: bytes, queue_id: int, first: int, end: int) -> bool:
        """Say whether a range of offsets has pending items, which retention must not delete."""
        found = self._find_topic(topic.decode())
        number = None if found is None else self._numbers.get((found.id, queue_id))
        return number is not None and self._queues[number][1].has_any(first, end)

    def all(self) -> Iterator[WaitingOffset]:
        """Yield all pending items, unordered. The caller may pause between two."""
        for some in self._walk():
            for when, _, offset, number, _ in some:
                if number != NONE and offset in self._queues[number][1]:
                    due = self._wheels.unit_due_ms(when)
                    yield WaitingOffset(*self._queues[number][0], offset, due)

    def _walk(self) -> Iterator[list[Fields]]:
        """Yield the current units, a slice at a time, without those added later.

        Otherwise an iteration might never end while units are added at its speed.
        """
        start, end = 0, len(self.units)
        while start < end:
            some = self.units.some(start, min(self._slice_units, end - start))
            start += len(some)
            yield some

    @property
    def part_end(self) -> int:
        """The number at which the last `part` ends, as of now."""
        return len(self.units)

    def part(self, start: int, count: int, offset: int = -1) -> tuple[list[Listed], int]:
        """Return the pending items of units from a number on, and the next number, or -1.

        Reads a limited number of units; with an offset, returns only items at that offset. An item
        that is pending from the first part to the last is in exactly one of them.
        """
        if start >= len(self.units):
            return [], -1
        some = self.units.some(start, count)
        end = start + len(some)
        queues, unit_due_ms = self._queues, self._wheels.unit_due_ms
        if offset >= 0:
            some = [each for each in some if each[2] == offset]
        found = [
            _new(Listed, (unit_due_ms(when), sequence, *queues[number][0], at))
            for when, sequence, at, number, _ in some
            if number != NONE and at in queues[number][1]
        ]
        return found, (end if end < len(self.units) else -1)

    # Changing

    def recall(self, topic_id: bytes, queue_id: int, offset: int) -> bool:
        """End an item's delay if it is pending; the outcome is final when this returns."""
        if not self.is_waiting(topic_id, queue_id, offset):
            return False
        body = encode_ended(DelayChangeKind.RECALLED, [Ended(topic_id, queue_id, [offset])])
        self._journal.append_state(DELAY_TOPIC, body)
        return True

    def apply(self, change: Change) -> None:
        """Apply a change."""
        if change.topic == TOPICS_TOPIC:
            self._forget_topics(deleted_ids(change))
            return
        kind, items = decode(change)
        if kind is DelayChangeKind.SCHEDULE:
            for scheduled in items:
                self._schedule(scheduled)
        else:
            for ended in items:
                self._end(ended)

    def _schedule(self, scheduled: Scheduled) -> None:
        number = self._number((scheduled.topic_id, scheduled.queue_id))
        wheels = self._wheels
        is_new, add = self._queues[number][1].add, wheels.add
        sequence, count, first_ms = self._sequence, 0, DUE_MAX
        wheels.look()
        for offset, when in scheduled.waits:
            if is_new(offset):
                add(when, sequence, offset, number)
                count += 1
                if when & DUE_MAX < first_ms:
                    first_ms = when & DUE_MAX
            sequence += 1
        self._sequence = sequence
        self.waiting_count += count
        if first_ms < self.looks_at_ms and count:
            self.on_sooner()

    def _number(self, key: Key) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._queues)
            self._queues.append((key, OffsetSet()))
        return number

    def _end(self, ended: Ended) -> None:
        number = self._numbers.get((ended.topic_id, ended.queue_id))
        if number is None:
            return
        offsets = self._queues[number][1]
        for offset in ended.offsets:
            self.waiting_count -= offsets.discard(offset)

    def _forget_topics(self, topic_ids: Sequence[bytes]) -> None:
        if not topic_ids or not self._queues:
            return
        gone = frozenset(topic_ids)
        for number, (key, offsets) in enumerate(self._queues):
            if key[0] in gone and offsets:
                # The number stays: units that refer to it find no pending offset.
                self.waiting_count -= len(offsets)
                self._queues[number] = (key, OffsetSet())

    # Delivery

    @property
    def next_due_ms(self) -> int | None:
        """When to check again, as a time of day; None if nothing is pending."""
        return self._wheels.next_ms if self.units.used_count else None

    def late_ms(self) -> int:
        """Return for how long the next item has been due; 0 if it is not, or none is near."""
        return self._wheels.late_ms()

    def take(self, now_ms: int) -> Due | None:
        """Return the next item that is due at a time of day; None if there is none yet.

        It stays pending. The caller owns its unit, and must give it back or free it.
        """
        if not self.units.used_count:
            return None
        while (unit := self._wheels.pop(now_ms)) is not None:
            when, sequence, offset, number, _ = self.units.read(unit)
            key, offsets = self._queues[number]
            if offset in offsets:
                return Due(
                    unit, sequence, WaitingOffset(*key, offset, self._wheels.unit_due_ms(when))
                )
            self.units.free(unit)
        return None

    def give_back(self, due: Due, not_before_ms: int) -> None:
        """Schedule an item that could not be delivered again, at a time of day."""
        self._wheels.put(due.unit, not_before_ms, due.sequence)

    def turn(self, now_ms: int, work: int) -> bool:
        """Advance the wheels; say whether there is more to do at once."""
        return bool(self.units.used_count) and self._wheels.turn(now_ms, work)

    # The fold

    def snapshot(self) -> Iterator[bytes]:
        """Yield the pending items, about a millisecond of work at a time."""
        start, end = 0, len(self.units)
        while start < end:
            columns = self.units.columns(start, min(self._slice_units, end - start))
            start += len(columns[0])
            waits = self._which(columns[2], columns[3])
            pending = columns if all(waits) else [list(compress(each, waits)) for each in columns]
            due_times, sequences, offsets, numbers = pending
            self._wheels.look()
            table = {number: index for index, number in enumerate(dict.fromkeys(numbers))}
            keys = [self._queues[number][0] for number in table]
            indexes = [table[number] for number in numbers]
            items = pack_items(self._wheels.all_stored(due_times), sequences, offsets, indexes)
            yield bytes((_FORMAT,)) + _encode(_Slice(keys, items))

    def _which(self, offsets: list[int], numbers: list[int]) -> list[bool]:
        """Say of each unit, given by column, whether its item is pending."""
        queues, number = self._queues, numbers[0]
        if number != NONE and numbers.count(number) == len(numbers):
            return queues[number][1].which(offsets)
        return [
            number != NONE and offset in queues[number][1]
            for offset, number in zip(offsets, numbers, strict=True)
        ]

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace the pending items."""
        self.clear()
        for piece in slices:
            check_format(piece[0] if piece else 0, _FORMAT, _SNAPSHOT)
            try:
                self._restore(_decode(piece[1:]))
            except (IndexError, ValueError, msgspec.MsgspecError) as error:
                raise StoreCorrupt(_SNAPSHOT, 0, str(error)) from error

    def _restore(self, found: _Slice) -> None:
        """Add a slice's items by column, because a start waits for this."""
        if not found.items:
            return
        due_times, sequences, offsets, indexes = unpack_items(found.items)
        numbers = [self._number(key) for key in found.queues]
        for index in range(len(numbers)):
            own: Sequence[int] = offsets
            if len(numbers) > 1:
                own = [o for o, i in zip(offsets, indexes, strict=True) if i == index]
            pending = self._queues[numbers[index]][1]
            had = len(pending)
            pending.add_all(own)
            if len(pending) != had + len(own):
                raise StoreCorrupt(_SNAPSHOT, 0, "duplicate delayed message")
        queues = [numbers[index] for index in indexes]
        self._wheels.look()
        self._wheels.add_all(due_times, sequences, offsets, queues)
        self.waiting_count += len(offsets)
        self._sequence = max(self._sequence, max(sequences) + 1)

    def clear(self) -> None:
        """Remove everything."""
        self.units.clear()
        self._begin()
