"""Which batches are opened by a thread."""

import pytest

from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.bounds import LIGHT, is_heavy
from rockgate.protocol.kafka.records.record import Record, build_batch

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
