"""Opening batches of which records wait: here, or by a thread if that takes longer than a moment.

A thread of Python's keeps the others from running for up to five milliseconds at a time, so the one
that opens lets go after every step.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from rockgate.gateway.delay.headers import HINT, Terms, Wait, wait_of
from rockgate.protocol.kafka.records.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    Buffer,
    read_header,
)
from rockgate.protocol.kafka.records.inflation import inflates_beyond
from rockgate.protocol.kafka.records.record import Header
from rockgate.protocol.kafka.records.sifting import Sifter, Wanted

HEAVY_RECORDS: Final = 500
HEAVY_COMPRESSED: Final = 32 << 10
HEAVY_PLAIN: Final = 1 << 20
"""From these sizes on a batch is opened by a thread; the last counts for what is inflated, too."""
POLITE_RECORDS: Final = 50
"""Records that a thread looks at before it lets others run: about half a millisecond."""
OPEN_BYTES_MAX: Final = 64 << 20

Opened = Sifter[Wait]


def is_heavy(body: Buffer) -> bool:
    """Whether a batch takes long to open; one that is none is looked at by others."""
    size = len(body)
    if size < HEADER_SIZE:
        return False
    header = read_header(body)
    if header.record_count > HEAVY_RECORDS or size >= HEAVY_PLAIN:
        return True
    codec = header.attributes & COMPRESSION_MASK
    if not codec:
        return False
    return size >= HEAVY_COMPRESSED or inflates_beyond(body, header, HEAVY_PLAIN)


def open_batch(body: Buffer, wanted: Wanted[Wait] = wait_of) -> Opened:
    """Open a batch and find the records that wait; MalformedBatch if that cannot be."""
    opened = _begin(body, wanted)
    opened.run()
    return opened


def open_politely(body: Buffer, wanted: Wanted[Wait] = wait_of) -> Opened:
    """Open a batch in a thread of its own, and let others run meanwhile."""
    opened = _begin(body, wanted)
    while opened.step(POLITE_RECORDS):
        time.sleep(0)
    return opened


def _begin(body: Buffer, wanted: Wanted[Wait]) -> Opened:
    return Sifter(body, read_header(body), HINT, wanted, size_max=OPEN_BYTES_MAX)


def waits_within(terms: Terms, now_ms: int) -> Wanted[Wait]:
    """Return how records are looked at that come in now: none may wait for too long."""

    def wanted(headers: tuple[Header, ...]) -> Wait | None:
        wait = wait_of(headers)
        if wait is not None:
            terms.check(wait, now_ms)
        return wait

    return wanted


def waits_of(
    opened: Opened, terms: Terms, now_ms: int, first: int = 0, count: int | None = None
) -> Sequence[tuple[int, int]]:
    """Return index and due time of records that wait, from the `first` of them on."""
    end = len(opened.indexes) if count is None else first + count
    return [
        (index, terms.due_ms(wait, now_ms))
        for index, wait in zip(opened.indexes[first:end], opened.found[first:end], strict=True)
    ]
