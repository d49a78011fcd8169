"""The headers that delay a record, and the due time they give.

    header                                  due
    DELAY = level                           the level's time from now; 0 is no delay
    TIMER_DELAY_SEC, TIMER_DELAY_MS         that duration from now
    TIMER_DELIVER_MS, __STARTDELIVERTIME    at that time, in milliseconds since 1970

Values are decimal numbers as text. A level counts before a time, and of the times the first in
this table; of two headers of one name the last. Whether a record is delayed depends on nothing but
the record, so that every reader of the log finds the same ones. Batches are opened here to find
them; a Python thread blocks the others for a millisecond or more at a time, so the one that opens
yields after every step. docs/internals/delay.md specifies it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from rockgate.protocol.kafka.records.batch import BatchHeader, Buffer, read_header
from rockgate.protocol.kafka.records.bounds import BOUNDS, Bounds
from rockgate.protocol.kafka.records.compression import Plain
from rockgate.protocol.kafka.records.record import Header
from rockgate.protocol.kafka.records.sifting import Sifter, Wanted
from rockgate.protocol.remoting.properties import (
    DELAY_LEVEL,
    DELAYING,
    START_DELIVER_TIME,
    TIMER_DELAY_MS,
    TIMER_DELAY_S,
    TIMER_DELIVER_MS,
)
from rockgate.store.api.delay import due_after, due_at

LEVEL: Final = DELAY_LEVEL
FROM_NOW: Final = {TIMER_DELAY_S: 1_000, TIMER_DELAY_MS: 1}
"""Names, and the milliseconds of their unit."""
AT: Final = (TIMER_DELIVER_MS, START_DELIVER_TIME)
NAMES: Final = DELAYING
HINT: Final = re.compile(rb"DELAY|DELIVER")
"""What the names of all these headers contain."""
_NUMBER: Final = re.compile(rb"-?[0-9]{1,18}")

STEP_RECORDS: Final = 50
"""Records that a thread reads before it yields to others: about half a millisecond."""

Asked = tuple[int, int, bool]
"""A Wait as a plain tuple: there may be millions, and the garbage collector skips those."""
Opened = Sifter[Asked]


class Wait(NamedTuple):
    """The delay that a record's headers request: a level, or else a time from now or since 1970."""

    level: int
    ms: int
    is_from_now: bool


def wait_of(headers: Sequence[Header]) -> Wait | None:
    """Return the delay that headers request, None if none; ValueError names an invalid header."""
    found = {name: _number(name, value) for name, value in headers if name in NAMES}
    if not found:
        return None
    level = found.get(LEVEL, 0)
    if level < 0:
        raise ValueError(f"Header {LEVEL} must be at least 1, not {level}.")
    if level:
        return Wait(level, 0, True)
    for name, unit_ms in FROM_NOW.items():
        if name in found:
            return Wait(0, found[name] * unit_ms, True)
    for name in AT:
        if name in found:
            return Wait(0, found[name], False)
    return None


def _number(name: str, value: bytes | None) -> int:
    # Python's int accepts more than Java's long: spaces, underscores, other digits.
    if value is None or not _NUMBER.fullmatch(value):
        quoted = "null" if value is None else repr(value[:40].decode("ascii", "replace"))
        raise ValueError(f"Header {name} must be a decimal number, not {quoted}.")
    return int(value)


def without_wait(headers: Sequence[Header]) -> tuple[Header, ...]:
    """Return the headers without those that delay the record."""
    return tuple(each for each in headers if each[0] not in NAMES)


class Terms(NamedTuple):
    """The times of the levels, and the maximum delay."""

    levels_ms: Sequence[int]
    delay_ms_max: int

    def due_ms(self, wait: Wait, now_ms: int) -> int:
        """Return when a record is due; a time in the past is due at once."""
        if wait.level:
            return now_ms + self.levels_ms[min(wait.level, len(self.levels_ms)) - 1]
        return max(0, now_ms + wait.ms if wait.is_from_now else wait.ms)

    def when(self, wait: Wait, now_ms: int) -> int:
        """Return the same for a schedule, which distinguishes a delay from a time of day."""
        due_ms = self.due_ms(wait, now_ms)
        if wait.is_from_now:
            return due_after(now_ms, due_ms - now_ms)
        return due_at(due_ms)

    def check(self, wait: Wait, now_ms: int) -> None:
        """ValueError if the delay exceeds the maximum."""
        if not wait.level and (ahead_ms := self.due_ms(wait, now_ms) - now_ms) > self.delay_ms_max:
            raise ValueError(
                f"Delay of {ahead_ms:,} ms exceeds the maximum of {self.delay_ms_max:,} ms."
            )


def asked_of(headers: tuple[Header, ...]) -> Asked | None:
    """Return the delay that headers request, None if none; ValueError names an invalid header."""
    wait = wait_of(headers)
    return None if wait is None else (wait.level, wait.ms, wait.is_from_now)


def open_batch(
    body: Buffer, wanted: Wanted[Asked] = asked_of, *, bounds: Bounds = BOUNDS
) -> Opened:
    """Decode a batch and find its delayed records; MalformedBatch if that is impossible."""
    return sifted(body, read_header(body), wanted, bounds=bounds)


def open_in_steps(
    body: Buffer, wanted: Wanted[Asked] = asked_of, *, bounds: Bounds = BOUNDS
) -> Opened:
    """Decode a batch in a thread, yielding to others between steps."""
    opened = Sifter(body, read_header(body), HINT, wanted, bounds=bounds)
    while opened.step(STEP_RECORDS):
        time.sleep(0)
    return opened


def sifted(
    body: Buffer,
    header: BatchHeader,
    wanted: Wanted[Asked],
    *,
    bounds: Bounds,
    data: Plain | None = None,
) -> Opened:
    """Find the delayed records of a batch; `data` has its records decompressed, if available."""
    opened = Sifter(body, header, HINT, wanted, bounds=bounds, data=data)
    opened.run()
    return opened


def waits_within(terms: Terms, now_ms: int) -> Wanted[Asked]:
    """Return a reader of a record's delay; it raises if the delay is longer than allowed."""

    def wanted(headers: tuple[Header, ...]) -> Asked | None:
        asked = asked_of(headers)
        if asked is not None:
            terms.check(Wait._make(asked), now_ms)
        return asked

    return wanted


def waits_of(
    opened: Opened, terms: Terms, now_ms: int, first: int = 0, count: int | None = None
) -> Sequence[tuple[int, int]]:
    """Return the index and due time of delayed records, from the `first` of them on."""
    end = len(opened.indexes) if count is None else first + count
    return [
        (index, terms.when(Wait._make(asked), now_ms))
        for index, asked in zip(opened.indexes[first:end], opened.found[first:end], strict=True)
    ]
