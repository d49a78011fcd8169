import contextlib
import gzip
import mmap
import random
import resource
import tracemalloc

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.compression import compress, decompress

REAL = [codec for codec in Compression if codec is not Compression.NONE]
MIB = 1024 * 1024


@pytest.mark.parametrize("codec", list(Compression))
@given(data=st.binary(max_size=2_000).map(lambda seed: seed * 40))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_what_was_compressed_comes_back(codec: Compression, data: bytes) -> None:
    packed = compress(data, codec)
    assert decompress(packed, codec) == data
    assert decompress(memoryview(bytearray(packed)), codec) == data


@pytest.mark.parametrize("codec", list(Compression))
def test_output_far_larger_than_its_input_comes_back_whole(codec: Compression) -> None:
    data = bytes(5 * MIB) + random.Random(codec).randbytes(1000)
    opened = decompress(compress(data, codec), codec)
    assert (len(opened), opened[:]) == (len(data), data)
    assert isinstance(opened, mmap.mmap)  # clearing and copying it blocks no other thread


# Foreign writers and readers


@pytest.mark.parametrize("size", [0, 1, 100, 32 * 1024, 32 * 1024 + 1, 200_000])
def test_snappy_is_read_raw_and_in_xerial_framing(size: int) -> None:
    data = random.Random(size).randbytes(size // 2) * 2
    assert decompress(bytes(cramjam.snappy.compress_raw(data)), Compression.SNAPPY) == data
    xerial = compress(data, Compression.SNAPPY)
    assert xerial[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    assert decompress(xerial + xerial, Compression.SNAPPY) == data + data, "streams concatenate"


def test_lz4_is_written_with_independent_blocks_and_no_content_checksum() -> None:
    packed = compress(bytes(200_000), Compression.LZ4)
    assert packed[:4] == b"\x04\x22\x4d\x18"
    flags = packed[4]
    assert flags >> 6 == 1, "version"
    assert flags & 0x20, "independent blocks"
    assert not flags & 0x04, "content checksum"


def test_lz4_of_other_writers_is_read() -> None:
    data = b"some words again and again " * 10_000
    assert decompress(bytes(cramjam.lz4.compress(data)), Compression.LZ4) == data


def test_gzip_of_other_writers_is_read() -> None:
    data = b"some words again and again " * 1_000
    assert decompress(gzip.compress(data), Compression.GZIP) == data
    assert gzip.decompress(compress(data, Compression.GZIP)) == data


# Bounds


@pytest.mark.parametrize("codec", REAL)
def test_output_of_exactly_the_bound_passes_and_one_byte_more_does_not(codec: Compression) -> None:
    packed = compress(bytes(100_000), codec)
    assert len(decompress(packed, codec, size_max=100_000)) == 100_000
    with pytest.raises(MalformedBatch):
        decompress(packed, codec, size_max=99_999)


def bomb(codec: Compression) -> bytes:
    """About a megabyte of input, or less, that inflates to a gigabyte: 64 streams in a row."""
    if codec is Compression.SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(bytes(16 * MIB)))
        return compress(b"", codec) + (len(block).to_bytes(4, "big") + block) * 64
    return compress(bytes(16 * MIB), codec) * 64


@pytest.mark.parametrize("codec", REAL)
def test_a_bomb_stops_at_the_bound(codec: Compression) -> None:
    packed = bomb(codec)
    size_max = 8 * MIB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        with pytest.raises(MalformedBatch):
            decompress(packed, codec, size_max=size_max)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert peak < 2 * size_max + MIB
    assert grown < 4 * size_max + 16 * MIB, "what the codecs take is not seen by tracemalloc"


def test_a_snappy_block_that_promises_gigabytes_allocates_nothing() -> None:
    lie = b"\xff\xff\xff\xff\x0f" + b"\x00a"
    tracemalloc.start()
    try:
        with pytest.raises(MalformedBatch, match=r"declare [0-9,]+ decompressed"):
            decompress(lie, Compression.SNAPPY, size_max=2**32)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * 1024


def test_one_wrong_byte_does_not_cost_the_whole_bound() -> None:
    tracemalloc.start()
    try:
        for codec in REAL:
            with pytest.raises(MalformedBatch):
                decompress(b"\x01\x02\x03", codec)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MIB


# Hostile


@pytest.mark.parametrize("codec", REAL)
def test_truncation_at_every_byte_is_malformed(codec: Compression) -> None:
    packed = compress(b"abcdefgh" * 30 + random.Random(codec).randbytes(50), codec)
    for cut in range(len(packed)):
        if codec is Compression.SNAPPY and cut == 16:
            continue  # A framing header and no block is a whole stream of nothing.
        with pytest.raises(MalformedBatch):
            decompress(packed[:cut], codec)


@pytest.mark.parametrize("codec", REAL)
def test_mutations_end_well_or_as_malformed(codec: Compression) -> None:
    chance = random.Random(codec)
    packed = compress(b"abcdefgh" * 300 + chance.randbytes(500), codec)
    for _ in range(budget("fuzz_rounds")):
        bad = bytearray(packed)
        for _ in range(chance.randrange(1, 5)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        with contextlib.suppress(MalformedBatch):
            decompress(bad, codec, size_max=MIB)


@pytest.mark.parametrize(
    "framed",
    [
        b"\x82SNAPPY\x00",
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00",
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff",
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff\xff\xffabc",
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00",
    ],
)
def test_broken_snappy_framing_is_malformed(framed: bytes) -> None:
    with pytest.raises(MalformedBatch, match="snappy"):
        decompress(framed, Compression.SNAPPY)
