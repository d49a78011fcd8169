"""What compressed records may become: never less than they do, and no bomb looks small."""

from random import Random

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.bounds import may_inflate_beyond
from rockgate.protocol.kafka.records.compression import compress, decompress

MIB = 1 << 20
CODECS = list(Compression)
PIECES = st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 20_000)), max_size=6)


def framed(data: bytes, codec: Compression) -> list[bytes]:
    """The same content in all the forms that clients write it in."""
    forms = [compress(data, codec)]
    match codec:
        case Compression.SNAPPY:
            forms.append(bytes(cramjam.snappy.compress_raw(data)))
        case Compression.LZ4:
            forms.append(bytes(cramjam.lz4.compress(data)))
        case Compression.ZSTD:
            # As Java's stream writes it: the frame does not say how large its content is.
            stream = cramjam.zstd.Compressor()
            stream.compress(data)
            forms += [bytes(stream.finish()), forms[0] + forms[0]]
    return forms


@given(PIECES, st.sampled_from(CODECS), st.integers(0, 400_000))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_what_becomes_larger_is_reported(
    pieces: list[tuple[bytes, int]], codec: Compression, limit: int
) -> None:
    data = b"".join(piece * count for piece, count in pieces)
    for form in framed(data, codec):
        if len(decompress(form, codec)) > limit:
            assert may_inflate_beyond(form, codec, limit)


@pytest.mark.parametrize("codec", CODECS)
def test_what_usual_clients_send_is_not_taken_for_more(codec: Compression) -> None:
    noise = Random(5).randbytes(6_000)
    for form in framed(noise * 10, codec):
        assert not may_inflate_beyond(form, codec, MIB)


@pytest.mark.parametrize("codec", [c for c in CODECS if c is not Compression.NONE])
def test_a_small_one_that_becomes_megabytes_is_reported(codec: Compression) -> None:
    size = 20 * MIB if codec is not Compression.SNAPPY else MIB + MIB // 2
    for form in framed(bytes(size), codec):
        assert may_inflate_beyond(form, codec, MIB)


def test_a_gzip_that_claims_to_be_small_is_looked_into() -> None:
    bomb = compress(bytes(20 * MIB), Compression.GZIP)
    assert may_inflate_beyond(bomb[:-4] + bytes(4), Compression.GZIP, MIB)


@given(st.binary(max_size=200), st.sampled_from(CODECS))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_bytes_that_are_nothing_are_answered_too(data: bytes, codec: Compression) -> None:
    may = may_inflate_beyond(data, codec, 100)
    try:
        size = len(decompress(data, codec))
    except MalformedBatch:
        return
    assert may or size <= 100
