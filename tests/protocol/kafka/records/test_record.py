import contextlib
import random
import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records import batch
from rockgate.protocol.kafka.records.batch import Compression, TimestampType, check, read_header
from rockgate.protocol.kafka.records.record import (
    Record,
    build_batch,
    iterate_records,
    read_records,
    rebuild_batch,
)

INT64 = st.integers(0, 2**62)
MAYBE_BYTES = st.none() | st.binary(max_size=300)


@st.composite
def some_records(draw: st.DrawFn) -> list[Record]:
    """Records with ascending offsets, gaps between them, and everything a record may leave out."""
    offsets = sorted(draw(st.sets(st.integers(0, 2**31 - 1), min_size=1, max_size=8)))
    base, first_time = draw(INT64), draw(INT64)
    return [
        Record(
            base + offset,
            first_time + draw(st.integers(-(2**40), 2**40)),
            draw(MAYBE_BYTES),
            draw(MAYBE_BYTES),
            tuple(draw(st.lists(st.tuples(st.text(max_size=20), MAYBE_BYTES), max_size=3))),
        )
        for offset in offsets
    ]


def with_payload(payload: bytes, count: int = 1, last_offset_delta: int = 100) -> bytearray:
    """A sealed batch around hand-made record bytes."""
    out = bytearray(61 + len(payload))
    fields = (0, len(out) - 12, 0, 2, 0, 0, last_offset_delta, 0, 0, -1, -1, -1, count)
    batch.HEADER.pack_into(out, 0, *fields)
    out[61:] = payload
    batch.seal(out)
    return out


def refusal(payload: bytes, count: int = 1, last_offset_delta: int = 100) -> MalformedBatch:
    with pytest.raises(MalformedBatch) as caught:
        read_records(with_payload(payload, count, last_offset_delta))
    return caught.value


# Round trips


@given(
    some_records(),
    st.sampled_from(Compression),
    st.integers(-1, 2**62),
    st.integers(-1, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_records_come_back_as_they_were_built(
    records: list[Record], codec: Compression, producer_id: int, epoch: int, sequence: int
) -> None:
    built = build_batch(
        records,
        base_offset=records[0].offset,
        compression=codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    header = check(built)
    assert read_records(built) == list(iterate_records(memoryview(built))) == records
    assert header.compression is codec
    assert (header.producer_id, header.producer_epoch) == (producer_id, epoch)
    assert (header.base_sequence, header.is_transactional) == (sequence, True)
    assert (header.base_offset, header.last_offset) == (records[0].offset, records[-1].offset)
    assert header.max_timestamp == max(record.timestamp for record in records)


def test_the_bytes_of_one_record_are_these() -> None:
    built = build_batch(
        [Record(7, 1_000, b"k", None, (("h", b""), ("h", None)))], base_offset=6, max_timestamp=1
    )
    record = bytes.fromhex("00 00 02 02 6b 01 04 02 68 00 02 68 01")
    assert built[61:] == bytes((len(record) * 2,)) + record


def test_headers_keep_their_order_their_nulls_and_their_doubles() -> None:
    headers = (("b", b"1"), ("a", None), ("b", b"1"), ("", b""), ("ключ", b"\x00"))
    record = Record(0, 0, None, None, headers)
    assert read_records(build_batch([record], base_offset=0)) == [record]


def test_a_header_key_that_is_no_utf8_is_read_as_java_reads_it() -> None:
    payload = bytes.fromhex("12 00 00 00 01 01 02 02 ff 01")
    assert read_records(with_payload(payload))[0].headers == (("�", None),)


def test_append_time_is_the_time_of_every_record() -> None:
    records = [Record(i, i, None, b"v") for i in range(3)]
    built = build_batch(
        records, base_offset=0, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=99
    )
    assert [record.timestamp for record in read_records(built)] == [99, 99, 99]


@pytest.mark.parametrize("codec", list(Compression))
def test_a_batch_of_no_records_is_its_header_alone_and_keeps_its_span(codec: Compression) -> None:
    empty = build_batch([], base_offset=40, last_offset_delta=9, compression=codec)
    assert len(empty) == 61
    assert check(empty).next_offset == 50
    assert read_records(empty) == []


# Taking records out of a batch


@pytest.mark.parametrize("codec", list(Compression))
def test_a_rebuilt_batch_keeps_offsets_span_producer_and_codec(codec: Compression) -> None:
    records = [Record(100 + i, 1_000 + i, b"k", b"v" * 50) for i in range(10)]
    whole = build_batch(
        records,
        base_offset=100,
        leader_epoch=3,
        compression=codec,
        producer_id=5,
        producer_epoch=6,
        base_sequence=7,
        is_transactional=True,
    )
    header = read_header(whole)
    kept = records[2:4] + records[6:7]
    rebuilt = rebuild_batch(header, kept)
    assert read_records(rebuilt) == kept
    changed = {"length", "crc", "record_count", "max_timestamp"}
    for name, old, new in zip(header._fields, header, check(rebuilt), strict=True):
        assert (old == new) is (name not in changed), name
    assert check(rebuilt).max_timestamp == 1_006


def test_a_batch_rebuilt_with_nothing_left_still_takes_its_offsets() -> None:
    records = [Record(i, 5, b"k", b"v") for i in range(3)]
    whole = build_batch(records, base_offset=0, compression=Compression.GZIP)
    rebuilt = rebuild_batch(read_header(whole), [])
    header = check(rebuilt)
    assert (header.record_count, header.last_offset_delta, header.max_timestamp) == (0, 2, 5)
    assert read_records(rebuilt) == []


# Records that are not what they say


@pytest.mark.parametrize(
    ("payload", "what"),
    [
        ("01", "Length -1 "),
        ("0e 00 00 00 01 01 00", "Length 7 exceeds the 6 bytes left."),
        ("0c 00 00 00 01 01", "Length 6 exceeds the 5 bytes left."),
        ("0c 00 00 00 03 01 00", "Key has length -2."),
        ("0c 00 00 00 01 03 00", "Value has length -2."),
        ("0c 00 00 00 08 01 00", "Key of 4 bytes exceeds the 2 left."),
        ("0c 00 00 00 01 08 00", "Value of 4 bytes exceeds the 1 left."),
        ("0c 00 00 00 01 01 01", "-1 headers"),
        ("0c 00 00 00 01 01 02", "1 headers cannot fit in 0 bytes."),
        ("10 00 00 00 01 01 02 01 00", "Header key is null."),
        ("10 00 00 00 01 01 02 00 05", "Header value has length -3."),
        ("10 00 00 00 01 01 02 04 00", "Header key of 2 bytes exceeds"),
        ("0c 00 00 01 01 01 00", "Offset delta is -1;"),
        ("0e 00 00 d0 0f 01 01 00", "Offset delta is 1000;"),
        ("0e 00 00 00 01 01 00 00", "Length is off by 1 bytes."),
        ("0a 00 00 00 01 01 00", "Length is off by 1 bytes."),
        ("ff ff ff ff ff 00", "Varint exceeds 32 bits."),
        ("ff ff ff ff 1f", "Varint exceeds 32 bits."),
        ("20 00 ff ff ff ff ff ff ff ff ff ff 00 00 01 01 00", "Varint exceeds 64 bits."),
        ("20 00 ff ff ff ff ff ff ff ff ff 03 00 00 01 01 00", "Varint exceeds 64 bits."),
        ("", "The batch ends inside the record."),
        ("80", "The batch ends inside the record."),
    ],
)
def test_a_record_that_contradicts_itself_is_malformed(payload: str, what: str) -> None:
    error = refusal(bytes.fromhex(payload))
    assert what in str(error)
    assert error.index == 0


def test_the_error_names_the_record() -> None:
    good = bytes.fromhex("0c 00 00 00 01 01 00")
    error = refusal(good + bytes.fromhex("0c 00 00 02 03 01 00"), count=2)
    assert (error.index, str(error)) == (1, "Record 1: Key has length -2.")


def test_offset_deltas_must_ascend() -> None:
    one = bytes.fromhex("0c 00 00 04 01 01 00")
    assert "Offset delta is 2; expected 3 to " in str(refusal(one + one, count=2))


def test_bytes_after_the_last_record_are_malformed() -> None:
    one = bytes.fromhex("0c 00 00 00 01 01 00")
    assert "7 bytes follow the last of 1 records." in str(refusal(one + one))


def test_a_timestamp_outside_int64_is_malformed() -> None:
    bad = with_payload(bytes.fromhex("0c 00 02 00 01 01 00"))
    header = read_header(bad)._replace(base_timestamp=2**63 - 1)
    batch.HEADER.pack_into(bad, 0, *header)
    with pytest.raises(MalformedBatch, match="out of range"):
        read_records(bad)


def test_padded_varints_are_read_as_java_reads_them() -> None:
    padded = bytes.fromhex("94 80 80 80 00 00 80 00 80 00 81 00 81 00 00")
    assert read_records(with_payload(padded)) == [Record(0, 0, None, None)]


# Hostile


def damaged(chance: random.Random, data: bytes) -> bytes:
    bad = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        bad[chance.randrange(len(bad))] = chance.choice(
            (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
        )
    return bytes(bad)


SAMPLE = bytes(
    build_batch(
        [Record(i, i * 1000, b"key", b"v" * 90, (("h", b"x"), ("n", None))) for i in range(4)],
        base_offset=0,
    )[61:]
)


def test_truncation_at_every_byte_is_malformed() -> None:
    for cut in range(len(SAMPLE)):
        refusal(SAMPLE[:cut], count=4)


def test_mutations_end_well_or_as_malformed() -> None:
    chance = random.Random(61)
    for _ in range(budget("fuzz_rounds")):
        with contextlib.suppress(MalformedBatch):
            read_records(with_payload(damaged(chance, SAMPLE), count=4))


@given(st.binary(max_size=100), st.integers(-(2**31), 2**31 - 1))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_no_bytes_raise_anything_but_a_malformed_batch(payload: bytes, count: int) -> None:
    with contextlib.suppress(MalformedBatch):
        read_records(with_payload(payload, count))


@pytest.mark.parametrize(
    "payload",
    [
        bytes.fromhex("0c 00 00 00 01 01 00"),
        struct.pack(">B", 0x0C) + bytes.fromhex("00 00 00 01 fe ff ff ff 0f"),
        bytes.fromhex("1e 00 00 00 01 01 fe ff ff ff 0f 00 00 00 00 00"),
    ],
    ids=["a huge record count", "a huge value", "a huge header count"],
)
def test_what_a_record_only_promises_is_not_allocated(payload: bytes) -> None:
    bad = with_payload(payload, count=2**31 - 1, last_offset_delta=2**31 - 1)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedBatch):
            read_records(bad)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024
