import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records import batch
from rockgate.protocol.kafka.records.batch import Compression, check, read_header
from rockgate.protocol.kafka.records.record import (
    Header,
    Record,
    build_batch,
    read_records,
    walk_records,
)
from rockgate.protocol.kafka.records.sifting import BAD_MAX, Sifter

HINT = re.compile(rb"PICK")


def picked(headers: tuple[Header, ...]) -> bytes | None:
    for name, value in headers:
        if name == "PICK":
            if value is None:
                raise ValueError("PICK is null")
            return value
    return None


def sifted(body: bytes | bytearray, step: int = 3) -> Sifter[bytes]:
    sifter = Sifter(body, read_header(body), HINT, picked)
    while sifter.step(step):
        pass
    return sifter


HEADERS = st.lists(
    st.tuples(st.sampled_from(("PICK", "PICKY", "a", "é")), st.binary(max_size=9)), max_size=3
)
RECORDS = st.lists(
    st.tuples(
        st.integers(-(2**40), 2**40),
        st.none() | st.sampled_from((b"", b"PICK", b"k" * 200)),
        st.none() | st.sampled_from((b"", b"PICK", b"v" * 20_000)),
        HEADERS,
    ),
    min_size=1,
    max_size=12,
)


@given(rows=RECORDS, codec=st.sampled_from(Compression), step=st.integers(1, 5))
@settings(max_examples=budget("property_examples"))
def test_the_rest_is_the_batch_without_what_was_wanted(
    rows: list[tuple[int, bytes | None, bytes | None, list[Header]]], codec: Compression, step: int
) -> None:
    records = [
        Record(1_000 + at, 10**13 + time, key, value, tuple(headers))
        for at, (time, key, value, headers) in enumerate(rows)
    ]
    body = build_batch(
        records,
        base_offset=1_000,
        leader_epoch=7,
        compression=codec,
        producer_id=5,
        producer_epoch=1,
        base_sequence=9,
        is_transactional=True,
    )
    wanted = [at for at, record in enumerate(records) if picked(record.headers) is not None]
    sifter = sifted(body, step)
    assert list(sifter.indexes) == wanted
    assert sifter.found == [picked(records[at].headers) for at in wanted]
    assert [sifter.record(at) for at in wanted] == [records[at] for at in wanted]
    if not sifter.has_hint:
        assert not wanted
        return
    others = [record for at, record in enumerate(records) if at not in wanted]
    rest = sifter.rest()
    header = check(rest)
    assert read_records(rest) == others
    assert header.record_count == sifter.rest_count == len(others)
    assert list(walk_records(sifter.rest_data(), header)) == others
    before = read_header(body)
    assert header[:1] + header[2:4] == before[:1] + before[2:4]
    assert header.last_offset_delta == before.last_offset_delta
    assert header[9:12] == before[9:12]
    if others:
        assert header.max_timestamp == max(record.timestamp for record in others)
        assert header.compression is codec
    else:
        assert len(rest) == batch.HEADER_SIZE


def test_a_batch_without_the_hint_is_not_looked_at() -> None:
    body = build_batch([Record(0, 1, None, b"x", (("a", b"b"),))], base_offset=0)
    sifter = Sifter(body, read_header(body), HINT, picked)
    assert not sifter.has_hint
    assert not sifter.step()


def test_a_bad_header_names_its_record() -> None:
    records = [Record(0, 1, None, b"x"), Record(1, 1, None, b"x", (("PICK", None),))]
    with pytest.raises(MalformedBatch, match="Record 1: PICK is null") as caught:
        sifted(build_batch(records, base_offset=0))
    assert caught.value.index == 1


def test_the_first_ten_thousand_bad_records_are_named_and_no_more() -> None:
    records = [Record(at, 1, None, b"x", (("PICK", None),)) for at in range(BAD_MAX + 5)]
    with pytest.raises(MalformedBatch, match="Record 0: PICK is null") as caught:
        sifted(build_batch(records, base_offset=0), step=1_000)
    assert [index for index, _ in caught.value.bad] == list(range(10_000))


def test_a_record_that_was_not_wanted_is_not_given() -> None:
    records = [Record(0, 1, None, b"x"), Record(1, 1, None, b"x", (("PICK", b"1"),))]
    sifter = sifted(build_batch(records, base_offset=0))
    assert sifter.record(0) is None
    assert sifter.record(2) is None


@pytest.mark.parametrize("cut", range(62, 80))
def test_a_batch_that_ends_early_or_late_is_refused(cut: int) -> None:
    body = build_batch([Record(0, 1, b"key", b"PICK", (("PICK", b"1"),))] * 1, base_offset=0)
    bad = bytearray(body[:cut] + b"PICK")
    with pytest.raises(MalformedBatch):
        sifted(bad)
