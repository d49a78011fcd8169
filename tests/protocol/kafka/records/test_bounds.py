"""Which batches are opened by a thread, and which not at all."""

import pytest

from rockgate.protocol.kafka.errors import BatchTooLarge, ErrorCode
from rockgate.protocol.kafka.records.batch import Compression, read_header
from rockgate.protocol.kafka.records.bounds import LIGHT, Bounds, is_heavy
from rockgate.protocol.kafka.records.record import Record, build_batch, open_records, read_records
from rockgate.protocol.kafka.records.skimming import skim_keys, skim_times

DENSE = [Compression.GZIP, Compression.LZ4, Compression.ZSTD]
"""Snappy does not come further than 22 times its size."""


def batch(size: int, codec: Compression = Compression.NONE, count: int = 1) -> bytes:
    records = [Record(offset=n, timestamp=1, key=None, value=bytes(size)) for n in range(count)]
    return bytes(build_batch(records, base_offset=0, compression=codec))


@pytest.mark.parametrize("codec", Compression)
def test_a_small_batch_is_light(codec: Compression) -> None:
    assert not is_heavy(batch(1_000, codec, 20))


def test_a_batch_is_heavy_by_its_records_and_by_its_size() -> None:
    assert is_heavy(batch(1, count=LIGHT.records_max + 1))
    assert is_heavy(batch(LIGHT.inflated_bytes_max))


@pytest.mark.parametrize("codec", DENSE)
def test_a_small_batch_that_becomes_megabytes_is_heavy(codec: Compression) -> None:
    records = batch(4 * LIGHT.inflated_bytes_max, codec)
    assert len(records) < LIGHT.compressed_bytes_max
    assert is_heavy(records)


def test_what_is_no_batch_is_for_others_to_refuse() -> None:
    assert not is_heavy(b"short")


def headers(count: int, records: int = 1) -> bytes:
    many = tuple((f"h{n}", b"") for n in range(count))
    return bytes(
        build_batch([Record(n, 1, None, b"", many) for n in range(records)], base_offset=0)
    )


TIGHT = Bounds(inflated_bytes_max=5_000, records_max=20, record_headers_max=10, headers_max=50)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (batch(1, count=21), "Batch has 21 records; the maximum is 20"),
        (headers(11), "Record 0: 11 headers exceed the remaining limit of 10"),
        (headers(10, records=6), "Record 5: 10 headers exceed the remaining limit of 0"),
        (batch(5_001), "bytes; the maximum is 5,000"),
        (batch(5_001, Compression.GZIP), "exceeds the maximum of 5,000 bytes"),
        (batch(5_001, Compression.SNAPPY), "the maximum is 5,000"),
        (batch(5_001, Compression.LZ4), "exceeds the maximum of 5,000 bytes"),
        (batch(5_001, Compression.ZSTD), "exceeds the maximum of 5,000 bytes"),
    ],
)
def test_what_passes_a_bound_is_too_large_and_says_which(body: bytes, reason: str) -> None:
    with pytest.raises(BatchTooLarge, match=reason) as told:
        read_records(body, bounds=TIGHT)
    assert told.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("body", [batch(1, count=20), headers(10, records=5), batch(4_900)])
def test_what_is_within_the_bounds_is_read(body: bytes) -> None:
    assert read_records(body, bounds=TIGHT)


def test_headers_that_no_one_asks_for_are_not_counted() -> None:
    body = headers(11)
    header = read_header(body)
    data = open_records(body, header, bounds=TIGHT)
    assert list(skim_times(data, header)) == [(0, 1)]
    assert list(skim_keys(data, header)) == [(0, None)]
