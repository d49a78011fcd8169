"""Records put together anew are those that were taken, without some headers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.batch import Compression, TimestampType, check, read_header
from rockgate.protocol.kafka.records.bounds import Bounds
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records
from rockgate.protocol.kafka.records.regrouping import raw_record, regrouped
from rockgate.protocol.kafka.records.sifting import Sifter

DROPPED = frozenset({"gone"})
NAMES = st.sampled_from(["gone", "kept", "", "é"])
RECORDS = st.lists(
    st.tuples(
        st.integers(-(2**60), 2**60),
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=3)), max_size=4),
    ),
    min_size=1,
    max_size=10,
)


def sifted(records: list[Record], codec: Compression, **more: object) -> Sifter[int]:
    body = build_batch(records, base_offset=0, compression=codec, **more)  # type: ignore[arg-type]
    sifter = Sifter(body, read_header(body), re.compile(rb"(?s)."), lambda headers: 1)
    sifter.run()
    return sifter


@given(RECORDS, st.sampled_from(Compression), st.booleans())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_records_come_back_without_the_headers_that_were_dropped(
    given: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    codec: Compression,
    is_append_time: bool,
) -> None:
    records = [Record(n, *each[:3], tuple(each[3])) for n, each in enumerate(given)]
    kind = TimestampType.LOG_APPEND_TIME if is_append_time else TimestampType.CREATE_TIME
    opened = sifted(records, codec, timestamp_type=kind, max_timestamp=77)
    raws = [
        raw_record(opened.data, opened.header, *opened.span(n), DROPPED)
        for n in range(len(records))
    ]
    body = regrouped(raws, codec)
    header = check(body)
    assert (header.compression, header.record_count) == (codec, len(records))
    expected = [
        Record(
            record.offset,
            77 if is_append_time else record.timestamp,
            record.key,
            record.value,
            tuple(each for each in record.headers if each[0] not in DROPPED),
        )
        for record in records
    ]
    assert read_records(body) == expected
    assert header.max_timestamp == max(record.timestamp for record in expected)


def test_a_record_that_is_cut_or_has_too_much_is_refused() -> None:
    opened = sifted([Record(0, 1, b"k", b"v", (("h", b"1"),) * 5)], Compression.NONE)
    at, end = opened.span(0)
    with pytest.raises(MalformedBatch):
        raw_record(opened.data, opened.header, at, end - 1, DROPPED)
    with pytest.raises(BatchTooLarge):
        raw_record(opened.data, opened.header, at, end, DROPPED, Bounds(record_headers_max=4))


def test_an_index_that_was_not_wanted_lies_nowhere() -> None:
    opened = sifted([Record(0, 1, b"k", b"v")], Compression.NONE)
    assert opened.span(7) == (0, 0)
