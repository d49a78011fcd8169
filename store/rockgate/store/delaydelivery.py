"""Scheduling and delivering: entries that wait, and the ordinary entries that they become.

docs/delay.md is this module's twin. What is to wait is appended with its schedule, and what is
delivered with its end, each as one atomic group. What a delivered entry looks like and where it
goes is for the gateway to say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from rockgate.protocol.entry import DELAYED, MAGIC_BATCH, places
from rockgate.store.appending import Appended, Appender, Intake
from rockgate.store.background import Jobs
from rockgate.store.bodies import Bodies
from rockgate.store.commitlog import CommitLog, Draft
from rockgate.store.consumequeue import Queue
from rockgate.store.delaychanges import (
    DELAY_TOPIC,
    Ended,
    Kind,
    encode_ended,
    encode_schedule,
)
from rockgate.store.delayfold import Delay, Due, Key
from rockgate.store.errors import EntryTooLarge, StoreError, UnknownTopic
from rockgate.store.queueindex import Unit
from rockgate.store.queuetable import QueueTable
from rockgate.store.reading import Slice
from rockgate.store.steadyclock import SteadyClock
from rockgate.store.warmth import Warmth

_log = logging.getLogger(__name__)

COUNT_MAX: Final = 64
BYTES_MAX: Final = 256 << 10
"""Items of one delivery, and the bytes of their entries."""
RETRY_MS: Final = 10_000
FETCHING_MS: Final = 1
"""How soon to ask again whether the disk has answered."""
TURN_WORK: Final = 500
"""Units that the wheel moves in one step."""
ORIGIN: Final = b"__ORIGIN"
"""Property of a delivered entry: what it was while it waited."""

Redeliver = Callable[[Slice, int], Intake | None]
"""Makes of an entry that waited, and an offset in it, what is to be appended; None: not now.

UnknownTopic if the topic that it is for is not there any more.
"""


class Opening(Protocol):
    """Work that is to be done on entries before anything in them can be delivered."""

    def run(self) -> None:
        """Do it, in a thread."""

    def keep(self) -> None:
        """Take its outcome, on the store's thread."""


class Records(Protocol):
    """Knows what is in batch entries of which records wait."""

    def prepare(self, entries: Sequence[Slice]) -> Opening | None:
        """Return what a thread has to do first; None if nothing."""

    def redeliver(self, found: Slice, offset: int) -> Intake | None:
        """Make of one record what is to be appended; None: not now."""


class _Picked(NamedTuple):
    due: Due
    queue: Queue
    unit: Unit


class Deliveries:
    """Schedules and delivers. Owned by the store; `step` belongs to its thread."""

    def __init__(
        self,
        *,
        delay: Delay,
        appender: Appender,
        queues: QueueTable,
        bodies: Bodies,
        warmth: Warmth,
        log: CommitLog,
        clock: SteadyClock,
        jobs: Callable[[], Jobs],
    ) -> None:
        self._delay = delay
        self._appender = appender
        self._queues = queues
        self._bodies = bodies
        self._warmth = warmth
        self._log = log
        self._clock = clock
        self.jobs = jobs
        self._picked: list[_Picked] = []
        self._is_fetching = False
        self.redeliver: Redeliver | None = None
        """Set by the gateway; without it nothing is delivered."""
        self.records: Records | None = None
        """Set by the gateway, for batch entries; without it they go the way of messages."""
        self.delivered_count = 0
        self.lost_count = 0
        self.dropped_count = 0
        self.put_off_count = 0

    def now_ms(self) -> int:
        """Return the time that delays are counted from."""
        return self._clock.now_ms()

    def wait_ms(self) -> int:
        """Return how long nothing will be due, as far as is known now."""
        if self._is_fetching:
            return FETCHING_MS
        next_ms = self._delay.next_due_ms
        return 1 << 62 if next_ms is None else max(0, next_ms - self._clock.now_ms())

    def append(self, queue: Queue, draft: Draft, waits: Sequence[tuple[int, int]]) -> Appended:
        """Append an entry of which offsets wait, given as (index in the entry, due time).

        StoreFull, and nothing appended, if there is no room for it or its schedule.
        """
        return self._appender.group(self.intakes(queue, draft, waits))[0]

    def intakes(self, queue: Queue, draft: Draft, waits: Sequence[tuple[int, int]]) -> list[Intake]:
        """Return entry and schedule, to be appended at once and first in their group."""
        self._delay.units.reserve(len(waits))
        base = queue.next_offset
        offsets = [(base + index, due_ms) for index, due_ms in waits]
        schedule = encode_schedule(queue.topic_id, queue.queue_id, offsets)
        marked = draft._replace(sys_flag=draft.sys_flag | DELAYED)
        changes = [Intake(None, Draft(DELAY_TOPIC, 0, -1, body)) for body in schedule]
        return [Intake(queue, marked), *changes]

    def schedule(self, key: Key, waits: Sequence[tuple[int, int]]) -> list[tuple[bytes, bytes]]:
        """Return the changes that let offsets of a marked entry wait, to be appended at once."""
        self._delay.units.reserve(len(waits))
        return [(DELAY_TOPIC, body) for body in encode_schedule(*key, waits)]

    def step(self) -> bool:
        """Deliver some of what is due; say whether there is more to do at once."""
        if self._is_fetching:
            return False
        now_ms = self._clock.now_ms()
        is_turning = self._delay.turn(now_ms, TURN_WORK)
        if self.redeliver is None:
            return is_turning
        if not self._picked:
            self._pick(now_ms)
        if not self._picked:
            return is_turning
        if self._fetch():
            return True
        picked, self._picked = self._picked, []
        return self._deliver(picked, self.redeliver, now_ms)

    def _pick(self, now_ms: int) -> None:
        """Take items that are due, as many as one group may have."""
        size = 0
        lost: list[Due] = []
        while len(self._picked) < COUNT_MAX and size < BYTES_MAX:
            due = self._delay.take(now_ms)
            if due is None:
                break
            topic_id, queue_id, offset, _ = due.waiting
            queue = self._queues.find(topic_id, queue_id)
            unit = None if queue is None else queue.find(offset)
            if queue is None or unit is None or not unit.base <= offset < _end(unit):
                lost.append(due)
                continue
            self._picked.append(_Picked(due, queue, unit))
            size += unit.size // unit.offset_count
        if lost:
            self._lose(lost)

    def _lose(self, lost: Sequence[Due]) -> None:
        for due in lost:
            _log.error("what waited is gone queue=%d offset=%d", *due.waiting[1:3])
        self._appender.append_state(DELAY_TOPIC, _ended(Kind.LOST, lost))
        self.lost_count += len(lost)
        self._free(lost)

    def _drop(self, dropped: Mapping[str, Sequence[Due]]) -> None:
        """End the waiting of what is for topics that are not there any more."""
        for topic, dues in dropped.items():
            self._appender.append_state(DELAY_TOPIC, _ended(Kind.DROPPED, dues))
            self.dropped_count += len(dues)
            self._free(dues)
            _log.warning(
                "dropped what waited for a topic that is gone topic=%s count=%d dropped=%d",
                topic,
                len(dues),
                self.dropped_count,
            )

    def _fetch(self) -> bool:
        """Have a job bring in what is cold; say whether there is any."""
        warm_from = self._warmth.warm_from(self._log.end)
        units = {unit.position: (queue, unit) for _, queue, unit in self._picked}
        cold = [
            (position, unit.size)
            for position, (_, unit) in units.items()
            if position < warm_from and self._warmth.is_cold(position, unit.size)
        ]
        if not cold:
            return self._prepare(units.values())
        chunks = self._warmth.plan(cold, self._log.end)

        def done(failure: Exception | None) -> None:
            self._is_fetching = False
            self._warmth.note(chunks)

        self._is_fetching = True
        self.jobs().submit(lambda: self._warmth.fault_in(chunks), done)
        return True

    def _prepare(self, units: Iterable[tuple[Queue, Unit]]) -> bool:
        """Have a job open batches that take long; say whether there are any."""
        if self.records is None:
            return False
        try:
            entries = [self._bodies.entry(queue, unit) for queue, unit in units]
        except StoreError:
            return False  # told when it is to be delivered
        opening = self.records.prepare([each for each in entries if _is_batch(each)])
        if opening is None:
            return False

        def done(failure: Exception | None) -> None:
            self._is_fetching = False
            opening.keep()

        self._is_fetching = True
        self.jobs().submit(opening.run, done)
        return True

    def _deliver(self, picked: Sequence[_Picked], redeliver: Redeliver, now_ms: int) -> bool:
        """Append what items have become; what cannot be is put off."""
        intakes: list[Intake] = []
        going: list[Due] = []
        dropped: dict[str, list[Due]] = {}
        for due, queue, unit in picked:
            # Meanwhile it may have been recalled, moved, or its topic deleted.
            topic_id, queue_id, offset, _ = due.waiting
            if not self._delay.is_waiting(topic_id, queue_id, offset):
                self._delay.units.free(due.unit)
                continue
            intake = None
            try:
                found = self._bodies.entry(queue, queue.find(offset) or unit)
                if self.records is not None and _is_batch(found):
                    intake = self.records.redeliver(found, offset)
                else:
                    intake = redeliver(found, offset)
            except UnknownTopic as error:
                dropped.setdefault(error.topic, []).append(due)
                continue
            except StoreError as error:
                _log.error("cannot deliver queue=%d offset=%d reason=%s", queue_id, offset, error)
            if intake is None:
                self._put_off([due], now_ms)
                continue
            intakes.append(_with_origin(intake, due))
            going.append(due)
        self._drop(dropped)
        return not going or self._append(intakes, going, now_ms)

    def _append(self, intakes: Sequence[Intake], going: Sequence[Due], now_ms: int) -> bool:
        """Append deliveries with their end, in one group or in as few as fit into a segment."""
        end = Draft(DELAY_TOPIC, 0, -1, _ended(Kind.DELIVERED, going))
        try:
            self._appender.group([*intakes, Intake(None, end)])
        except StoreError as error:
            half = len(going) // 2
            if isinstance(error, EntryTooLarge) and half:
                is_done = self._append(intakes[:half], going[:half], now_ms)
                return self._append(intakes[half:], going[half:], now_ms) and is_done
            _log.warning("deliveries put off count=%d reason=%s", len(going), error)
            self._put_off(going, now_ms)
            return False
        self.delivered_count += len(going)
        self._free(going)
        return True

    def _put_off(self, dues: Sequence[Due], now_ms: int) -> None:
        self.put_off_count += len(dues)
        for due in dues:
            self._delay.give_back(due, now_ms + RETRY_MS)

    def _free(self, dues: Sequence[Due]) -> None:
        for due in dues:
            self._delay.units.free(due.unit)


def _is_batch(found: Slice) -> bool:
    return places(found.entry, 0)[1] == MAGIC_BATCH


def _end(unit: Unit) -> int:
    return unit.base + unit.offset_count


def _ended(kind: Kind, dues: Sequence[Due]) -> bytes:
    """Return the change that ends the waiting of items of any queues."""
    by_queue: dict[Key, list[int]] = {}
    for due in dues:
        topic_id, queue_id, offset, _ = due.waiting
        by_queue.setdefault((topic_id, queue_id), []).append(offset)
    return encode_ended(kind, [Ended(*key, offsets) for key, offsets in by_queue.items()])


def _with_origin(intake: Intake, due: Due) -> Intake:
    topic_id, queue_id, offset, _ = due.waiting
    origin = b"%b\x01%b:%d:%d\x02" % (ORIGIN, topic_id.hex().encode(), queue_id, offset)
    return Intake(intake.queue, intake.draft._replace(properties=intake.draft.properties + origin))
