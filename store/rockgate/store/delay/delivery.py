"""Schedules delayed entries and delivers them as ordinary ones.

docs/internals/delay.md specifies it. A delayed entry is appended together with its schedule, and a
delivery together with the end of the delay, each as one atomic group. The gateway decides what a
delivered entry looks like and where it goes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from rockgate.protocol.entry import DELAYED, MAGIC_BATCH, places
from rockgate.store.clock import SteadyClock
from rockgate.store.delay.changes import DELAY_TOPIC, DelayChangeKind, encode_schedule
from rockgate.store.delay.fold import Delay, Due, Key
from rockgate.store.delay.given import Records, Redeliver, end_of, with_origin
from rockgate.store.errors import EntryTooLarge, StoreError, UnknownTopic
from rockgate.store.log.commitlog import CommitLog, Draft
from rockgate.store.log.page_residency import PageResidency
from rockgate.store.problem_log import DeferralLog, Remembered
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit, UnitFields
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.queues.view import QueueView
from rockgate.store.read.reader import entry_of
from rockgate.store.read.slices import Slice
from rockgate.store.workers import Jobs
from rockgate.store.write.append import Appended, Appender, Intake

_log = logging.getLogger(__name__)
_new = tuple.__new__  # skips the call of NamedTuple._make

COUNT_MAX: Final = 64
BYTES_MAX: Final = 256 << 10
"""Items per delivery, and the bytes of their entries: about a millisecond of work."""
RETRY_MS: Final = 10_000
FETCHING_MS: Final = 1
"""How soon to check again whether the disk has responded."""
TURN_WORK: Final = 500
"""Units that the wheel moves per step."""


class _Picked(NamedTuple):
    due: Due
    queue: Queue
    unit: Unit


class _Found(NamedTuple):
    due: Due
    queue: Queue
    entry: Slice
    is_record: bool


class _Outgoing(NamedTuple):
    intake: Intake
    dues: Sequence[Due]
    """The items that it delivers."""


class Deliveries:
    """Schedules and delivers. Owned by the store; `step` belongs to its thread."""

    def __init__(
        self,
        *,
        delay: Delay,
        appender: Appender,
        queues: QueueTable,
        residency: PageResidency,
        log: CommitLog,
        clock: SteadyClock,
        jobs: Callable[[], Jobs],
    ) -> None:
        self._delay = delay
        self._appender = appender
        self._queues = queues
        self._residency = residency
        self._log = log
        self._clock = clock
        self.jobs = jobs
        self._picked: list[_Picked] = []
        self._is_fetching = False
        self.redeliver: Redeliver | None = None
        """Set by the gateway; without it nothing is delivered."""
        self.records: Records | None = None
        """Set by the gateway, for batch entries; without it they are delivered like messages."""
        self._appends, self._ends = DeferralLog(_log, "deliveries"), DeferralLog(_log, "ends")
        self._bad = Remembered()
        self.delivered_count = self.lost_count = 0
        self.dropped_count = self.put_off_count = 0

    def now_ms(self) -> int:
        """Return the time at which new delays start."""
        return self._clock.now_ms()

    def wait_ms(self) -> int:
        """Return how long nothing will be due, as far as known now."""
        if self._is_fetching:
            return FETCHING_MS
        next_ms = self._delay.next_due_ms
        return 1 << 62 if next_ms is None else max(0, next_ms - self._clock.day_ms())

    @staticmethod
    def is_batch(found: Slice) -> bool:
        """Say whether an entry is a batch of records."""
        return places(found.entry, 0)[1] == MAGIC_BATCH

    def append(self, queue: QueueView, draft: Draft, waits: Sequence[tuple[int, int]]) -> Appended:
        """Append an entry with delayed offsets, given as (index in the entry, due time).

        StoreFull, with nothing appended, if there is no space for it or its schedule.
        """
        return self._appender.group(self.intakes(queue, draft, waits))[0]

    def intakes(
        self, queue: QueueView, draft: Draft, waits: Sequence[tuple[int, int]]
    ) -> list[Intake]:
        """Return the entry and its schedule, to be appended first in an atomic group."""
        self._delay.units.reserve(len(waits))
        base = queue.next_offset
        offsets = [(base + index, due_ms) for index, due_ms in waits]
        schedule = encode_schedule(queue.topic_id, queue.queue_id, offsets)
        marked = draft._replace(sys_flag=draft.sys_flag | DELAYED)
        changes = [Intake(None, Draft(DELAY_TOPIC, 0, -1, body)) for body in schedule]
        return [Intake(queue, marked), *changes]

    def schedule(self, key: Key, waits: Sequence[tuple[int, int]]) -> list[tuple[bytes, bytes]]:
        """Return the changes that schedule offsets of a held entry, to be appended atomically."""
        self._delay.units.reserve(len(waits))
        return [(DELAY_TOPIC, body) for body in encode_schedule(*key, waits)]

    def step(self) -> bool:
        """Deliver some of the due items; say whether there is more to do at once."""
        if self._is_fetching or self._appender.is_read_only:
            return False
        now_ms = self._clock.day_ms()
        is_turning = self._delay.turn(now_ms, TURN_WORK)
        if self.redeliver is None:
            return is_turning
        if self._picked:
            self._pick_again()
        else:
            self._pick(now_ms)
        if not self._picked:
            return is_turning
        if self._fetch():
            return True
        found = self._open(now_ms)
        if self._prepare(found):
            return True
        self._picked = []
        return not found or self._deliver(found, self.redeliver, now_ms)

    def _pick(self, now_ms: int) -> None:
        """Take due items, as many as one group may have."""
        size = 0
        queue: Queue | None = None
        unit: Unit | None = None
        units: Iterator[UnitFields] = iter(())
        lost: list[Due] = []
        while len(self._picked) < COUNT_MAX and size < BYTES_MAX:
            due = self._delay.take(now_ms)
            if due is None:
                break
            topic_id, queue_id, offset, _ = due.waiting
            before, queue = queue, self._queues.find(topic_id, queue_id)
            # Records of one batch are mostly due consecutively, and so are messages.
            if queue is before and unit is not None and offset == unit.base + unit.offset_count:
                unit = _next(units)
            if queue is not before or unit is None or not _holds(unit, offset):
                units = iter(()) if queue is None else queue.walk(offset)
                unit = _next(units)
            if queue is None or unit is None or not _holds(unit, offset):
                lost.append(due)
                continue
            self._picked.append(_Picked(due, queue, unit))
            size += unit.size // unit.offset_count
        if lost:
            self._lose(lost, now_ms)

    def _pick_again(self) -> None:
        """Check items picked before a job again: they may be recalled, relocated or deleted."""
        picked, self._picked = self._picked, []
        for due, queue, unit in picked:
            topic_id, queue_id, offset, _ = due.waiting
            if self._delay.is_waiting(topic_id, queue_id, offset):
                self._picked.append(_Picked(due, queue, queue.find(offset) or unit))
            else:
                self._delay.units.free(due.unit)

    def _lose(self, lost: Sequence[Due], now_ms: int) -> None:
        if self._end(DelayChangeKind.LOST, lost, now_ms):
            self.lost_count += len(lost)
            for due in lost:
                _log.error("delayed message is missing queue=%d offset=%d", *due.waiting[1:3])

    def _end(self, kind: DelayChangeKind, dues: Sequence[Due], now_ms: int) -> bool:
        """End the delay of items without a delivery; on failure, retry without blocking others."""
        try:
            self._appender.append_state(DELAY_TOPIC, end_of(kind, dues))
        except StoreError as error:
            self._ends.report(error)
            self._put_off(dues, now_ms)
            return False
        self._ends.end()
        self._free(dues)
        return True

    def _drop(self, dropped: Mapping[str, Sequence[Due]], now_ms: int) -> None:
        """End the delay of items whose destination topic was deleted."""
        for topic, dues in dropped.items():
            if not self._end(DelayChangeKind.DROPPED, dues, now_ms):
                continue
            self.dropped_count += len(dues)
            _log.warning(
                "dropped delayed messages of a deleted topic topic=%s count=%d dropped=%d",
                topic,
                len(dues),
                self.dropped_count,
            )

    def _fetch(self) -> bool:
        """Have a job load cold entries; say whether there are any."""
        resident_from = self._residency.resident_from(self._log.end)
        sizes = {unit.position: unit.size for _, _, unit in self._picked}
        cold = [
            (position, size)
            for position, size in sizes.items()
            if position < resident_from and self._residency.is_cold(position, size)
        ]
        if not cold:
            return False
        chunks = self._residency.plan(cold, self._log.end)

        def done(failure: Exception | None) -> None:
            self._is_fetching = False
            self._residency.note(chunks)

        self._is_fetching = True
        self.jobs().submit(lambda: self._residency.fault_in(chunks), done)
        return True

    def _open(self, now_ms: int) -> list[_Found]:
        """Return the entries of the picked items; those without one are postponed."""
        found: list[_Found] = []
        entry: Slice | None = None
        last: Unit | None = None
        is_record = False
        for due, queue, unit in self._picked:
            if entry is None or last is None or unit.position != last.position:
                try:
                    entry = entry_of(self._log, queue, unit)
                except StoreError as error:
                    self._cannot(due, error, now_ms)
                    entry = None
                    continue
                last = unit
                is_record = self.records is not None and self.is_batch(entry)
            found.append(_Found(due, queue, entry, is_record))
        if len(found) < len(self._picked):
            there = {each.due.unit for each in found}
            self._picked = [each for each in self._picked if each.due.unit in there]
        return found

    def _prepare(self, found: Sequence[_Found]) -> bool:
        """Have a job decode batches that take long; say whether there are any."""
        batches: dict[int, tuple[Slice, list[int]]] = {}
        for due, _, entry, is_record in found:
            if is_record:
                batches.setdefault(entry.unit.position, (entry, []))[1].append(due.waiting.offset)
        if self.records is None or not batches:
            return False
        opening = self.records.prepare(list(batches.values()))
        if opening is None:
            return False

        def done(failure: Exception | None) -> None:
            self._is_fetching = False
            opening.keep()

        self._is_fetching = True
        self.jobs().submit(opening.run, done)
        return True

    def _deliver(self, found: Sequence[_Found], redeliver: Redeliver, now_ms: int) -> bool:
        """Append what items become; those that cannot be delivered are postponed."""
        outgoing: list[_Outgoing] = []
        dropped: dict[str, list[Due]] = {}
        for run in _runs(found):
            if self._picked:
                self._leave(run)
                continue
            for part in (run,) if len(run) == 1 else (run, *([each] for each in run)):
                # A run fails as a whole; then each item is tried alone, and only the bad one is
                # reported.
                try:
                    outgoing += self._make(part, redeliver, now_ms)
                except UnknownTopic as error:
                    dropped.setdefault(error.topic, []).extend(each.due for each in run)
                    break
                except StoreError as error:
                    if len(part) == 1:
                        self._cannot(part[0].due, error, now_ms)
                    continue
                if part is run:
                    break
        self._drop(dropped, now_ms)
        return not outgoing or self._append(outgoing, now_ms)

    def _make(self, run: list[_Found], redeliver: Redeliver, now_ms: int) -> list[_Outgoing]:
        """Convert a run to deliveries."""
        if self.records is None or not run[0].is_record:
            [(due, _, entry, _)] = run
            intake = redeliver(entry, due.waiting.offset)
            if intake is None:
                self._put_off([due], now_ms)
                return []
            return [_Outgoing(with_origin(intake, [due]), [due])]
        made: list[_Outgoing] = []
        while run:
            one = self.records.redeliver([(each.entry, each.due.waiting.offset) for each in run])
            if one is None:
                self._leave(run)
                break
            intake, count = one
            dues = [each.due for each in run[:count]]
            made.append(_Outgoing(with_origin(intake, dues), dues))
            run = run[count:]
        return made

    def _leave(self, run: Sequence[_Found]) -> None:
        """Leave items for the next step, before any others."""
        self._picked += [_Picked(each.due, each.queue, each.entry.unit) for each in run]

    def _append(self, outgoing: Sequence[_Outgoing], now_ms: int) -> bool:
        """Append deliveries and the ends of their delays, in as few groups as segments allow."""
        dues = [due for each in outgoing for due in each.dues]
        end = Draft(DELAY_TOPIC, 0, -1, end_of(DelayChangeKind.DELIVERED, dues))
        try:
            self._appender.group([*(each.intake for each in outgoing), Intake(None, end)])
        except StoreError as error:
            half = len(outgoing) // 2
            if isinstance(error, EntryTooLarge) and half:
                is_done = self._append(outgoing[:half], now_ms)
                return self._append(outgoing[half:], now_ms) and is_done
            self._appends.report(error)
            self._put_off(dues, now_ms)
            return False
        self._appends.end()
        self.delivered_count += len(dues)
        self._free(dues)
        return True

    def _cannot(self, due: Due, error: StoreError, now_ms: int) -> None:
        """Postpone an item that cannot be delivered, and log it once."""
        topic_id, queue_id, offset, _ = due.waiting
        if self._bad.is_new((topic_id, queue_id, offset)):
            _log.error("cannot deliver delayed message %d:%d reason=%s", queue_id, offset, error)
        self._put_off([due], now_ms)

    def _put_off(self, dues: Sequence[Due], now_ms: int) -> None:
        self.put_off_count += len(dues)
        for due in dues:
            self._delay.give_back(due, now_ms + RETRY_MS)

    def _free(self, dues: Sequence[Due]) -> None:
        for due in dues:
            self._delay.units.free(due.unit)


def _runs(found: Sequence[_Found]) -> list[list[_Found]]:
    """Group consecutive records of one queue, which are delivered together."""
    runs: list[list[_Found]] = []
    last: Queue | None = None
    for each in found:
        if each.is_record and each.queue is last:
            runs[-1].append(each)
        else:
            runs.append([each])
        last = each.queue if each.is_record else None
    return runs


def _next(units: Iterator[UnitFields]) -> Unit | None:
    fields = next(units, None)
    return None if fields is None else _new(Unit, fields)


def _holds(unit: Unit, offset: int) -> bool:
    return unit.base <= offset < unit.base + unit.offset_count
