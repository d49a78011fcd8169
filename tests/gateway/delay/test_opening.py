"""What is taken from a batch with delayed records."""

from rockgate.gateway.delay.headers import (
    Terms,
    asked_of,
    open_batch,
    open_politely,
    wait_of,
    waits_of,
)
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.store.delay.times import after

TERMS = Terms((1_000, 5_000), 86_400_000)
RECORDS = [
    Record(0, 1, None, b"now"),
    Record(1, 1, None, b"later", (("TIMER_DELAY_MS", b"70"),)),
    Record(2, 1, None, b"level", (("DELAY", b"2"),)),
]


def test_records_that_wait_are_told_with_the_time_they_are_due() -> None:
    body = build_batch(RECORDS, base_offset=0)
    for opened in (open_batch(body), open_politely(body)):
        assert waits_of(opened, TERMS, 1_000) == [(1, after(1_000, 70)), (2, after(1_000, 5_000))]
        assert waits_of(opened, TERMS, 1_000, 1, 1) == [(2, after(1_000, 5_000))]


def test_what_a_record_asks_for_is_held_as_a_plain_tuple() -> None:
    for record in RECORDS:
        assert asked_of(record.headers) == wait_of(record.headers)
        assert type(asked_of(record.headers)) in (tuple, type(None))
