"""Scheduling what was held: batches whose transaction was committed, and very large ones.

A little at a time, between other work: some records of a batch are scheduled together with the
batch's progress, in one atomic group. So a restart resumes there, and schedules nothing twice.
"""

from __future__ import annotations

import logging
from typing import Final

from rockgate.gateway.delay.headers import Opened, Terms, open_batch, open_in_steps, waits_of
from rockgate.protocol.entry import body_of
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.bounds import LIGHT, WIDEST, is_heavy
from rockgate.store.api.append import Appender
from rockgate.store.api.clock import Clock
from rockgate.store.api.delay import (
    HELD_TOPIC,
    Deliveries,
    Held,
    HeldChangeKind,
    HeldEntries,
    Scheduled,
    encode,
)
from rockgate.store.api.log import Log, PageResidency
from rockgate.store.api.problems import DeferralLog, Remembered
from rockgate.store.api.queues import Queues, Unit
from rockgate.store.api.read import Reader, Slice
from rockgate.store.errors import StoreError

STEP_RECORDS: Final = 500
RETRY_MS: Final = 1_000
"""How long to wait after a full disk, or one that failed."""

log = logging.getLogger(__name__)


class HeldScheduling:
    """Makes the schedules. `step` belongs to the server's upkeep."""

    def __init__(
        self,
        *,
        appender: Appender,
        deliveries: Deliveries,
        queues: Queues,
        reader: Reader,
        residency: PageResidency,
        commit_log: Log,
        clock: Clock,
        held: HeldEntries,
        terms: Terms,
    ) -> None:
        self._appender = appender
        self._deliveries = deliveries
        self._queues = queues
        self._reader = reader
        self._residency = residency
        self._log = commit_log
        self._clock = clock
        self._held = held
        self._terms = terms
        self._position = -1
        self._opened: Opened | None = None
        """The batch in progress, and where it is stored."""
        self._is_opening = False
        self._not_before_ms = 0
        self._schedules = DeferralLog(log, "schedules of delayed records")
        self._reported = Remembered()
        """Batches already reported as damaged."""

    def step(self) -> bool:
        """Schedule some records; return whether to be called again soon."""
        item = self._held.next_ready()
        if item is None or self._is_opening:
            return False
        if self._clock.monotonic_ms() < self._not_before_ms:
            return False
        try:
            is_soon = self._advance(item)
        except _Unreadable as error:
            self._pass_over(item, error)
            return False
        except StoreError as error:
            self._schedules.report(error)
            self._not_before_ms = self._clock.monotonic_ms() + RETRY_MS
            return False
        self._schedules.end()
        return is_soon

    def _advance(self, item: Held) -> bool:
        queue = self._queues.find(*item.key)
        unit = None if queue is None else queue.find(item.base)
        if queue is None or unit is None or unit.base != item.base:
            log.error("held batch is missing queue=%d offset=%d", item.key[1], item.base)
            self._append(item, [], item.done_count, is_last=True)
            return True
        if unit.base >= self._reader.high_watermark(queue):
            return False
        found = self._reader.entry(queue, unit)
        opened = self._open(found, item)
        if opened is None:
            return True
        first = item.done_count
        waits = [
            (item.base + index, due_ms)
            for index, due_ms in waits_of(opened, self._terms, item.from_ms, first, STEP_RECORDS)
        ]
        done = first + len(waits)
        is_last = done >= len(opened.indexes)
        self._append(item, waits, done, is_last=is_last)
        if is_last:
            self._position, self._opened = -1, None
        return True

    def _pass_over(self, item: Held, reason: _Unreadable) -> None:
        """Try a damaged batch again later, after the others, and log it once."""
        if self._reported.is_new((item.key, item.base)):
            log.error(
                "delivery of delayed records stopped until the log is repaired reason=%s", reason
            )
        self._held.put_last(item)
        self._not_before_ms = self._clock.monotonic_ms() + RETRY_MS

    def _append(
        self, item: Held, waits: list[tuple[int, int]], done: int, *, is_last: bool
    ) -> None:
        change = encode(HeldChangeKind.SCHEDULED, Scheduled(*item.key, item.base, done, is_last))
        schedule = self._deliveries.schedule(item.key, waits)
        self._appender.append_states([*schedule, (HELD_TOPIC, change)])

    def _open(self, found: Slice, item: Held) -> Opened | None:
        """Return the batch, opened; None while a job opens it."""
        unit, view = found
        if self._position == unit.position and self._opened is not None:
            return self._opened
        residency = self._residency
        is_cold = unit.position < residency.resident_from(self._log.end) and residency.is_cold(
            unit.position, unit.size
        )
        try:
            if not is_cold and not is_heavy(body_of(view)):
                self._opened = open_batch(body_of(view), bounds=LIGHT)
                self._position = unit.position
                return self._opened
        except BatchTooLarge:
            pass
        except MalformedBatch as damage:
            raise _unreadable(unit, damage) from damage
        self._open_later(unit, view, item)
        return self._opened if self._position == unit.position else None

    def _open_later(self, unit: Unit, view: memoryview, item: Held) -> None:
        chunks = self._residency.plan([(unit.position, unit.size)], self._log.end)
        opened: list[Opened] = []

        def work() -> None:
            self._residency.fault_in(chunks)
            # It was accepted, so it is delivered, whatever the bounds are now.
            opened.append(open_in_steps(body_of(view), bounds=WIDEST))

        def done(failure: Exception | None) -> None:
            self._is_opening = False
            self._residency.note(chunks)
            if failure is None:
                self._position, self._opened = unit.position, opened[0]
            else:
                self._pass_over(item, _unreadable(unit, failure))

        self._is_opening = True
        self._deliveries.jobs().submit(work, done)


class _Unreadable(StoreError):
    """A batch that was held is damaged."""


def _unreadable(unit: Unit, damage: Exception) -> _Unreadable:
    return _Unreadable(f"batch at position {unit.position} is unreadable: {damage}")
