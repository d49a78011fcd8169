import pytest

from rockgate.gateway.delay.headers import (
    HINT,
    NAMES,
    Terms,
    Wait,
    asked_of,
    open_batch,
    open_in_steps,
    wait_of,
    waits_of,
    without_wait,
)
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.store.delay.changes import due_after

TERMS = Terms((1_000, 5_000, 10_000), 86_400_000)
NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("headers", "due_ms"),
    [
        ([("DELAY", b"1")], NOW_MS + 1_000),
        ([("DELAY", b"3")], NOW_MS + 10_000),
        ([("DELAY", b"18")], NOW_MS + 10_000),
        ([("TIMER_DELAY_MS", b"250")], NOW_MS + 250),
        ([("TIMER_DELAY_SEC", b"2")], NOW_MS + 2_000),
        ([("TIMER_DELIVER_MS", b"1700000000007")], NOW_MS + 7),
        ([("__STARTDELIVERTIME", b"1700000000008")], NOW_MS + 8),
        ([("TIMER_DELIVER_MS", b"5")], 5),
        ([("TIMER_DELIVER_MS", b"-5")], 0),
        ([("TIMER_DELAY_MS", b"-250")], NOW_MS - 250),
        ([("TIMER_DELAY_MS", b"9"), ("DELAY", b"2")], NOW_MS + 5_000),
        ([("DELAY", b"0"), ("TIMER_DELAY_MS", b"9")], NOW_MS + 9),
        ([("DELAY", b"1"), ("a", b"b"), ("DELAY", b"2")], NOW_MS + 5_000),
    ],
)
def test_a_header_says_when_a_record_is_due(
    headers: list[tuple[str, bytes | None]], due_ms: int
) -> None:
    wait = wait_of(headers)
    assert wait is not None
    assert TERMS.due_ms(wait, NOW_MS) == due_ms
    TERMS.check(wait, NOW_MS)


@pytest.mark.parametrize("headers", [[], [("a", b"1")], [("DELAY", b"0")], [("delay", b"1")]])
def test_other_headers_delay_nothing(headers: list[tuple[str, bytes | None]]) -> None:
    assert wait_of(headers) is None


@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize(
    "value", [None, b"", b"soon", b" 1", b"1_0", b"1.5", b"\xd9\xa1", b"9" * 19]
)
def test_what_is_no_number_is_refused_by_name(name: str, value: bytes | None) -> None:
    with pytest.raises(ValueError, match=f"Header {name} must be a decimal number, not .*"):
        wait_of([(name, value)])


def test_a_level_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        wait_of([("DELAY", b"-1")])


def test_a_wait_that_is_too_long_is_refused() -> None:
    with pytest.raises(
        ValueError, match="Delay of 86,400,001 ms exceeds the maximum of 86,400,000 ms"
    ):
        TERMS.check(Wait(0, 86_400_001, True), NOW_MS)
    with pytest.raises(ValueError, match="exceeds the maximum"):
        TERMS.check(Wait(0, NOW_MS + 86_400_001, False), NOW_MS)
    TERMS.check(Wait(18, 0, True), NOW_MS)


def test_the_hint_is_in_every_name() -> None:
    assert all(HINT.search(name.encode()) for name in NAMES)


def test_a_record_that_has_waited_has_its_other_headers() -> None:
    headers = (("a", b"1"), ("DELAY", b"2"), ("TIMER_DELAY_MS", b"3"), ("a", None))
    assert without_wait(headers) == (("a", b"1"), ("a", None))


# Batches with delayed records


TWO_LEVELS = Terms((1_000, 5_000), 86_400_000)
RECORDS = [
    Record(0, 1, None, b"now"),
    Record(1, 1, None, b"later", (("TIMER_DELAY_MS", b"70"),)),
    Record(2, 1, None, b"level", (("DELAY", b"2"),)),
]


def test_records_that_wait_are_reported_with_the_time_they_are_due() -> None:
    body = build_batch(RECORDS, base_offset=0)
    for opened in (open_batch(body), open_in_steps(body)):
        assert waits_of(opened, TWO_LEVELS, 1_000) == [
            (1, due_after(1_000, 70)),
            (2, due_after(1_000, 5_000)),
        ]
        assert waits_of(opened, TWO_LEVELS, 1_000, 1, 1) == [(2, due_after(1_000, 5_000))]


def test_what_a_record_asks_for_is_held_as_a_plain_tuple() -> None:
    for record in RECORDS:
        assert asked_of(record.headers) == wait_of(record.headers)
        assert type(asked_of(record.headers)) in (tuple, type(None))
