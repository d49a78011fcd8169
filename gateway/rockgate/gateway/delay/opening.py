"""Opening batches of which records wait: which they are, and when each is due.

A thread of Python's keeps the others from running for a millisecond or more at a time, so the one
that opens lets go after every step.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from rockgate.gateway.delay.headers import HINT, Terms, Wait, wait_of
from rockgate.protocol.kafka.records.batch import BatchHeader, Buffer, read_header
from rockgate.protocol.kafka.records.bounds import BOUNDS, Bounds
from rockgate.protocol.kafka.records.compression import Plain
from rockgate.protocol.kafka.records.record import Header
from rockgate.protocol.kafka.records.sifting import Sifter, Wanted

POLITE_RECORDS: Final = 50
"""Records that a thread looks at before it lets others run: about half a millisecond."""

Asked = tuple[int, int, bool]
"""A Wait as it is held by the million: the garbage collector does not look at plain tuples."""
Opened = Sifter[Asked]


def asked_of(headers: tuple[Header, ...]) -> Asked | None:
    """Return what headers ask for, None if nothing; ValueError names the one that is bad."""
    wait = wait_of(headers)
    return None if wait is None else (wait.level, wait.ms, wait.is_from_now)


def open_batch(
    body: Buffer, wanted: Wanted[Asked] = asked_of, *, bounds: Bounds = BOUNDS
) -> Opened:
    """Open a batch and find the records that wait; MalformedBatch if that cannot be."""
    return sifted(body, read_header(body), wanted, bounds=bounds)


def open_politely(
    body: Buffer, wanted: Wanted[Asked] = asked_of, *, bounds: Bounds = BOUNDS
) -> Opened:
    """Open a batch in a thread of its own, and let others run meanwhile."""
    opened = Sifter(body, read_header(body), HINT, wanted, bounds=bounds)
    while opened.step(POLITE_RECORDS):
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
    """Find the records of a batch that wait; `data` has them in plain, if that was done."""
    opened = Sifter(body, header, HINT, wanted, bounds=bounds, data=data)
    opened.run()
    return opened


def waits_within(terms: Terms, now_ms: int) -> Wanted[Asked]:
    """Return how records are looked at that come in now: none may wait for too long."""

    def wanted(headers: tuple[Header, ...]) -> Asked | None:
        asked = asked_of(headers)
        if asked is not None:
            terms.check(Wait._make(asked), now_ms)
        return asked

    return wanted


def waits_of(
    opened: Opened, terms: Terms, now_ms: int, first: int = 0, count: int | None = None
) -> Sequence[tuple[int, int]]:
    """Return index of records that wait and when they are due, from the `first` of them on."""
    end = len(opened.indexes) if count is None else first + count
    return [
        (index, terms.when(Wait._make(asked), now_ms))
        for index, asked in zip(opened.indexes[first:end], opened.found[first:end], strict=True)
    ]
