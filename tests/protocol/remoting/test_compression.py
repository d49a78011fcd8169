import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.entry import COMPRESSED
from rockgate.protocol.remoting import compression
from rockgate.protocol.remoting.compression import (
    Compression,
    compress,
    compression_of,
    decompress,
)
from rockgate.protocol.remoting.errors import MalformedContent

KINDS = list(Compression)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.binary(max_size=300))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_what_is_compressed_comes_back(kind: Compression, data: bytes) -> None:
    assert decompress(compress(data, kind), kind) == data


def test_the_kind_lies_in_the_sys_flag() -> None:
    assert compression_of(0) is None
    assert compression_of(3 << 8) is None
    assert compression_of(COMPRESSED) is Compression.ZLIB_OF_OLD
    assert [compression_of(COMPRESSED | kind) for kind in KINDS] == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_that_is_met_exactly_is_kept(kind: Compression) -> None:
    data = compress(bytes(100_000), kind)
    assert len(decompress(data, kind, size_max=100_000)) == 100_000
    with pytest.raises(MalformedContent, match="exceeds the maximum of 99,999 bytes"):
        decompress(data, kind, size_max=99_999)


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_explode_cost_no_more_than_the_bound(kind: Compression) -> None:
    data = compress(bytes(64 * 1024 * 1024), kind)
    tracemalloc.start()
    with pytest.raises(MalformedContent, match="exceeds the maximum"):
        decompress(data, kind, size_max=1024 * 1024)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 1024 * 1024


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", [b"", b"junk", bytes(50)])
def test_bytes_that_are_not_compressed_are_refused(kind: Compression, data: bytes) -> None:
    try:
        out = decompress(data, kind)
    except MalformedContent:
        return
    assert out == b""


def test_a_stream_that_is_cut_off_is_refused() -> None:
    with pytest.raises(MalformedContent, match="truncated"):
        decompress(zlib.compress(b"hello " * 100)[:-5], Compression.ZLIB)


def test_without_cramjam_zlib_still_works_and_the_others_say_why_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compression, "_cramjam", None)
    assert decompress(compress(b"x", Compression.ZLIB), Compression.ZLIB) == b"x"
    for kind in (Compression.LZ4, Compression.ZSTD):
        with pytest.raises(MalformedContent, match="requires cramjam"):
            decompress(b"", kind)
        with pytest.raises(MalformedContent, match="requires cramjam"):
            compress(b"", kind)
