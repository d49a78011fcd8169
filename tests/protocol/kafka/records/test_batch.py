import contextlib
import re
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch
from rockgate.protocol.kafka.records import batch
from rockgate.protocol.kafka.records.batch import (
    BatchHeader,
    Compression,
    TimestampType,
    attributes_of,
    check,
    check_produced,
    read_header,
    seal,
    split,
    stamp,
    stamp_append_time,
)
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records

RECORDS = [Record(i, 1_000 + i, b"k%d" % i, b"v" * i, ()) for i in range(5)]


def produced(**changes: object) -> bytearray:
    """A batch as a producer sends it, with some header fields changed and sealed again."""
    good = build_batch(RECORDS, base_offset=0)
    header = read_header(good)._replace(**changes)  # type: ignore[arg-type]
    batch.HEADER.pack_into(good, 0, *header)
    seal(good)
    return good


def refusal(records: bytes | bytearray | None, version: int = 9) -> ErrorCode:
    with pytest.raises(MalformedBatch) as caught:
        check_produced(None if records is None else memoryview(records), version)
    return caught.value.code


# The layout


def test_the_header_is_61_bytes_and_the_crc_starts_at_its_attributes() -> None:
    assert batch.HEADER_SIZE == 61
    assert struct.calcsize(">qiibI") == batch.CRC_START


def test_the_page_draws_the_header_as_it_is() -> None:
    page = (Path(__file__).parents[4] / "docs" / "internals" / "record-batches.md").read_text(
        encoding="utf-8"
    )
    drawn = [
        (int(at), name.replace(" ", "_").lower(), int(size))
        for at, name, size in re.findall(r"^\| (\d+) \| ([\w ]+) \| (\d+) \|", page, re.MULTILINE)
    ]
    codes = batch.HEADER.format[1:]
    sizes = [struct.calcsize(f">{code}") for code in codes]
    places = [sum(sizes[:number]) for number in range(len(sizes))]
    assert drawn == list(zip(places, BatchHeader._fields, sizes, strict=True))


@given(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-128, 127),
        st.integers(0, 2**32 - 1),
        st.integers(-(2**15), 2**15 - 1),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**63), 2**63 - 1),
        st.integers(-(2**63), 2**63 - 1),
        st.integers(-(2**63), 2**63 - 1),
        st.integers(-(2**15), 2**15 - 1),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**31), 2**31 - 1),
    ),
    st.integers(0, 20),
)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_any_header_is_read_as_it_was_packed_at_any_place(fields: tuple[int, ...], at: int) -> None:
    header = BatchHeader(*fields)
    assert read_header(bytes(at) + batch.HEADER.pack(*header), at) == header


def test_a_header_that_is_cut_off_is_malformed_and_says_how_much_is_there() -> None:
    with pytest.raises(MalformedBatch, match="A batch header is 61 bytes; only 60 are left"):
        read_header(bytes(61), 1)


# What the attributes say


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("timestamp_type", list(TimestampType))
@pytest.mark.parametrize("is_transactional", [False, True])
@pytest.mark.parametrize("is_control", [False, True])
def test_attributes_say_what_they_were_made_of(
    codec: Compression, timestamp_type: TimestampType, is_transactional: bool, is_control: bool
) -> None:
    header = read_header(
        produced(
            attributes=attributes_of(
                codec, timestamp_type, is_transactional=is_transactional, is_control=is_control
            )
        )
    )
    assert header.compression is codec
    assert header.timestamp_type is timestamp_type
    assert header.is_transactional is is_transactional
    assert header.is_control is is_control
    assert not header.has_delete_horizon


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_no_one_defined_is_unsupported(codec: int) -> None:
    with pytest.raises(MalformedBatch) as caught:
        _ = read_header(produced(attributes=codec)).compression
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_offsets_and_sequences_follow_from_the_header() -> None:
    header = read_header(produced(base_offset=40, base_sequence=2**31 - 2))
    assert (header.size, header.last_offset, header.next_offset) == (len(produced()), 44, 45)
    assert header.last_sequence == 2, "sequences start again at 0"


# check


def test_a_whole_batch_passes_and_its_header_comes_back() -> None:
    good = produced()
    assert check(good) == check(memoryview(good)) == check(bytes(good)) == read_header(good)


def test_a_batch_whose_last_records_were_compacted_away_is_whole() -> None:
    assert check(produced(last_offset_delta=99)).record_count == 5


@pytest.mark.parametrize("length", range(61))
def test_a_batch_cut_within_its_header_is_corrupt(length: int) -> None:
    with pytest.raises(MalformedBatch) as caught:
        check(produced()[:length])
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_batch_cut_at_any_later_byte_is_corrupt() -> None:
    good = produced()
    for length in range(61, len(good)):
        with pytest.raises(MalformedBatch, match="bytes follow"):
            check(good[:length])


def test_any_flipped_bit_behind_the_crc_is_corrupt() -> None:
    good = produced()
    for at in range(batch.CRC_START - 4, len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[at] ^= 1 << bit
            with pytest.raises(MalformedBatch, match="CRC mismatch") as caught:
                check(bad)
            assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    "changes",
    [
        {"record_count": -1},
        {"record_count": 6},
        {"record_count": 2**31 - 1, "last_offset_delta": 2**31 - 1},
        {"last_offset_delta": -1},
        {"magic": 1},
        {"length": 2**31 - 1},
        {"length": -1},
    ],
)
def test_counts_and_lengths_that_cannot_be_true_are_refused(changes: dict[str, int]) -> None:
    with pytest.raises(MalformedBatch):
        check(produced(**changes))


# What a producer may send


def test_exactly_one_batch_of_magic_2_is_taken() -> None:
    good = produced()
    assert check_produced(memoryview(good), 3) == read_header(good)


def with_bad_crc(records: bytearray) -> bytearray:
    records[-1] ^= 1
    return records


GOOD = bytes(produced())

# Each verdict but those marked as ours was seen from Apache Kafka 4.3.1 for the same bytes.
VERDICTS = {
    "nothing": (b"", ErrorCode.INVALID_RECORD),
    "11 bytes": (bytes(11), ErrorCode.INVALID_RECORD),
    "16 zeros": (bytes(16), ErrorCode.CORRUPT_MESSAGE),
    "61 zeros": (bytes(61), ErrorCode.CORRUPT_MESSAGE),
    "cut within the header": (GOOD[:60], ErrorCode.INVALID_RECORD),
    "cut by one byte": (GOOD[:-1], ErrorCode.INVALID_RECORD),
    "two batches": (GOOD + GOOD, ErrorCode.INVALID_RECORD),
    "16 zeros behind it": (GOOD + bytes(16), ErrorCode.CORRUPT_MESSAGE),
    "one byte behind it (ours)": (GOOD + b"\x00", ErrorCode.INVALID_RECORD),
    "half a batch behind it (ours)": (GOOD + GOOD[:70], ErrorCode.INVALID_RECORD),
    "magic 0": (produced(magic=0), ErrorCode.INVALID_RECORD),
    "magic 1": (produced(magic=1), ErrorCode.INVALID_RECORD),
    "magic 3": (produced(magic=3), ErrorCode.CORRUPT_MESSAGE),
    "magic -1": (produced(magic=-1), ErrorCode.CORRUPT_MESSAGE),
    "bad crc": (with_bad_crc(produced()), ErrorCode.CORRUPT_MESSAGE),
    "length -1": (produced(length=-1), ErrorCode.CORRUPT_MESSAGE),
    "length 0": (produced(length=0), ErrorCode.CORRUPT_MESSAGE),
    "length 13": (produced(length=13), ErrorCode.CORRUPT_MESSAGE),
    "length 14": (produced(length=14), ErrorCode.CORRUPT_MESSAGE),
    "length 48": (produced(length=48), ErrorCode.CORRUPT_MESSAGE),
    "length 49": (produced(length=49), ErrorCode.CORRUPT_MESSAGE),
    "length one too large": (produced(length=len(GOOD) - 11), ErrorCode.INVALID_RECORD),
    "length far too large (ours)": (produced(length=2**31 - 1), ErrorCode.INVALID_RECORD),
    "base offset 1": (produced(base_offset=1), ErrorCode.INVALID_RECORD),
    "base offset 1, bad crc": (with_bad_crc(produced(base_offset=1)), ErrorCode.INVALID_RECORD),
    "no records": (produced(record_count=0), ErrorCode.INVALID_RECORD),
    "fewer records than offsets": (produced(record_count=4), ErrorCode.INVALID_RECORD),
    "more records than offsets": (produced(record_count=6), ErrorCode.INVALID_RECORD),
    "a negative count": (produced(record_count=-1), ErrorCode.INVALID_RECORD),
    "more offsets than records": (produced(last_offset_delta=5), ErrorCode.INVALID_RECORD),
    "no offsets": (produced(last_offset_delta=-1, record_count=0), ErrorCode.INVALID_RECORD),
    "count, bad crc": (with_bad_crc(produced(record_count=4)), ErrorCode.CORRUPT_MESSAGE),
    "control records": (produced(attributes=0x20), ErrorCode.INVALID_RECORD),
    "control, bad crc": (with_bad_crc(produced(attributes=0x20)), ErrorCode.CORRUPT_MESSAGE),
    "producer without sequence": (produced(producer_id=7), ErrorCode.INVALID_RECORD),
    "codec 5 (ours)": (produced(attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "codec 7 (ours)": (produced(attributes=7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "codec 5, bad crc": (with_bad_crc(produced(attributes=5)), ErrorCode.CORRUPT_MESSAGE),
}


@pytest.mark.parametrize(("records", "code"), VERDICTS.values(), ids=VERDICTS.keys())
def test_what_kafka_refuses_is_refused_with_the_same_code(
    records: bytes | bytearray, code: ErrorCode
) -> None:
    assert refusal(records) is code


def test_null_records_are_an_invalid_record() -> None:
    assert refusal(None) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    "changes",
    [
        {"attributes": 0x08},
        {"attributes": 0x40},
        {"attributes": -0x8000},
        {"leader_epoch": 9},
        {"producer_id": -2},
        {"producer_id": 99, "base_sequence": 0},
        {"base_sequence": 4},
    ],
)
def test_oddities_that_kafka_takes_are_taken(changes: dict[str, int]) -> None:
    check_produced(produced(**changes), 9)


@pytest.mark.parametrize(("version", "is_taken"), [(3, False), (6, False), (7, True), (13, True)])
def test_zstd_is_taken_from_produce_v7_on(version: int, is_taken: bool) -> None:
    records = build_batch(RECORDS, base_offset=0, compression=Compression.ZSTD)
    if is_taken:
        assert check_produced(memoryview(records), version).compression is Compression.ZSTD
    else:
        assert refusal(records, version) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_zstd_below_v7_is_seen_before_anything_else() -> None:
    records = with_bad_crc(build_batch(RECORDS, base_offset=0, compression=Compression.ZSTD))
    assert refusal(records, 6) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert refusal(records, 7) is ErrorCode.CORRUPT_MESSAGE


@given(st.binary(max_size=200))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_no_bytes_raise_anything_but_a_malformed_batch(data: bytes) -> None:
    for examine in (check, lambda d: check_produced(d, 9), lambda d: list(split(memoryview(d)))):
        with contextlib.suppress(MalformedBatch):
            examine(data)


# Stamping


def test_a_stamp_changes_offset_and_epoch_and_leaves_the_crc_true() -> None:
    records = produced()
    before = read_header(records)
    stamp(memoryview(records), 2**40, 17)
    assert check(records) == before._replace(base_offset=2**40, leader_epoch=17)
    assert [r.offset for r in read_records(records)] == [2**40 + i for i in range(5)]


@pytest.mark.parametrize("codec", list(Compression))
def test_append_time_becomes_the_time_of_every_record(codec: Compression) -> None:
    records = build_batch(RECORDS, base_offset=0, compression=codec)
    stamp_append_time(memoryview(records), 77_000)
    header = check(records)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.compression is codec
    assert {r.timestamp for r in read_records(records)} == {77_000}


# split


def test_a_fetched_range_splits_into_its_batches() -> None:
    batches = [produced(base_offset=n) for n in range(0, 30, 10)]
    found = list(split(memoryview(b"".join(batches))))
    assert [bytes(view) for _, view in found] == batches
    assert [header.base_offset for header, _ in found] == [0, 10, 20]


def test_a_tail_cut_off_at_any_byte_is_left_out() -> None:
    one = bytes(produced())
    for cut in range(len(one)):
        assert len(list(split(memoryview(one + one[:cut])))) == 1


def test_a_range_that_is_no_row_of_batches_is_refused_where_it_breaks() -> None:
    one = bytes(produced())
    with pytest.raises(MalformedBatch, match=f"Batch at byte {len(one)} has magic 0, not 2"):
        list(split(memoryview(one + bytes(20))))
    with pytest.raises(MalformedBatch, match="length 3, shorter"):
        list(split(memoryview(produced(length=3))))


def test_checking_and_splitting_copy_nothing() -> None:
    big = memoryview(build_batch([Record(0, 0, None, bytes(4_000_000))], base_offset=0))
    tracemalloc.start()
    try:
        check(big)
        check_produced(big, 9)
        list(split(big))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * 1024
