"""Skimming a batch tells what reading it tells."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import HEADER_SIZE, Compression, read_header
from rockgate.protocol.kafka.records.record import (
    Record,
    build_batch,
    open_records,
    read_records,
    skip_records,
)
from rockgate.protocol.kafka.records.skimming import (
    index_of,
    mark_records,
    record_at,
    skim_keys,
    skim_times,
)

RECORDS = st.lists(
    st.tuples(
        st.integers(1, 1_000),
        st.integers(-(2**40), 2**40),
        st.none() | st.binary(max_size=200),
        st.binary(max_size=5),
        st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=3)), max_size=2),
    ),
    min_size=1,
    max_size=30,
)


@given(RECORDS, st.sampled_from(Compression), st.integers(1, 7))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_what_is_skimmed_is_what_is_read(
    given: list[tuple[int, int, bytes | None, bytes, list[tuple[str, bytes]]]],
    codec: Compression,
    every: int,
) -> None:
    offset, records = 99, []
    for step, timestamp, key, value, headers in given:
        offset += step
        records.append(Record(offset, timestamp, key, value, tuple(headers)))
    body = build_batch(records, base_offset=100, compression=codec)
    header = read_header(body)
    data = open_records(body, header)
    assert list(skim_times(data, header)) == [(r.offset - 100, r.timestamp) for r in records]
    assert list(skim_keys(data, header)) == [(r.offset - 100, r.key) for r in records]
    assert [record_at(data, header, r.offset) for r in records] == read_records(body)
    assert record_at(data, header, records[-1].offset + 1) is None
    marks = mark_records(data, header, every)
    assert list(marks.deltas) == [r.offset - 100 for r in records[::every]]
    for index, place in zip(range(0, len(records), every), marks.places, strict=True):
        assert place == skip_records(data, 0, index)
        at = index_of(data, header, records[-1].offset - 100, first=index, at=place)
        assert at == len(records) - 1


@given(st.binary(max_size=60))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_bytes_that_are_no_records_are_malformed_or_end(data: bytes) -> None:
    body = build_batch([Record(n, 1, b"k", b"v") for n in range(3)], base_offset=0)
    header = read_header(body)
    mark_records(data, header, 1)
    for skim in (skim_times, skim_keys):
        try:
            found = list(skim(data, header))
        except MalformedBatch:
            continue
        assert len(found) == 3


def test_a_cut_batch_names_the_record_in_which_it_ends() -> None:
    body = build_batch([Record(n, 1, b"key", b"v") for n in range(3)], base_offset=0)
    header = read_header(body)
    with pytest.raises(MalformedBatch, match="Record 2"):
        list(skim_keys(bytes(body[HEADER_SIZE:-6]), header))
