"""A batch without some of its records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records import batch
from rockgate.protocol.kafka.records.batch import Compression, TimestampType
from rockgate.protocol.kafka.records.compacting import Compacting, empty_batch, has_room_for
from rockgate.protocol.kafka.records.record import Record, build_batch, open_records, read_records
from rockgate.protocol.kafka.records.skimming import skim_keyed

TIMES = st.integers(-1, 1 << 41)
TEXTS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=5), TEXTS), max_size=3).map(tuple)
PARTS = st.lists(st.tuples(TIMES, TEXTS, TEXTS, HEADERS, st.booleans()), min_size=1, max_size=30)


@given(
    parts=PARTS,
    compression=st.sampled_from(list(Compression)),
    horizon_ms=st.none() | st.integers(0, 1 << 42),
    append_time=st.booleans(),
)
def test_what_stays_is_as_it_was(
    parts: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], bool]],
    compression: Compression,
    horizon_ms: int | None,
    append_time: bool,
) -> None:
    records = [
        Record(1_000 + index, time_ms, key, value, headers)
        for index, (time_ms, key, value, headers, _) in enumerate(parts)
    ]
    body = build_batch(
        records,
        base_offset=1_000,
        compression=compression,
        timestamp_type=TimestampType(append_time),
        producer_id=5,
        producer_epoch=2,
        base_sequence=77,
    )
    header = batch.read_header(body)
    data = open_records(body, header)
    made = Compacting(data, header, horizon_ms)
    for record, (*_, stays) in zip(skim_keyed(data, header), parts, strict=True):
        assert record.key == records[record.delta].key
        assert record.is_null == (records[record.delta].value is None)
        if stays:
            made.keep(record)
    wanted = [each for each, (*_, stays) in zip(read_records(body), parts, strict=True) if stays]
    if not wanted:
        return
    built = made.build()
    changed = batch.check(built)
    assert read_records(built) == wanted
    assert changed.delete_horizon_ms == horizon_ms
    assert changed.max_timestamp == max(each.timestamp for each in wanted)
    for name in ("base_offset", "last_offset_delta", "producer_id", "base_sequence"):
        assert getattr(changed, name) == getattr(header, name)
    assert changed.compression is compression


def test_an_empty_batch_covers_its_offsets() -> None:
    header = batch.check(empty_batch(1_000, 2_147_483_647, 3))
    assert (header.base_offset, header.next_offset) == (1_000, 2_147_484_647)
    assert (header.record_count, header.leader_epoch, header.producer_id) == (0, 3, -1)


def test_times_beyond_every_horizon_have_no_room_for_one() -> None:
    early = Record(0, -(1 << 63), b"k", None)
    header = batch.read_header(build_batch([early], base_offset=0))
    assert not has_room_for(header, 1 << 41)


def test_a_damaged_record_is_named() -> None:
    body = build_batch([Record(0, 1, b"key", b"value")], base_offset=0)
    header = batch.read_header(body)
    with pytest.raises(MalformedBatch):
        list(skim_keyed(bytes(open_records(body, header)) + b"x", header))
