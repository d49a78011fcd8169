from __future__ import annotations

import cramjam
import pytest

from rockgate.protocol.inflating import CannotInflate, inflate

DATA = bytes(100_000)
PACKED = bytes(cramjam.zlib.compress(DATA))


@pytest.mark.parametrize("size_max", [100_000, 1 << 30])
def test_what_fits_the_bound_comes_out(size_max: int) -> None:
    assert inflate(cramjam.zlib.decompress_into, PACKED, "zlib", size_max) == DATA


def test_more_than_the_bound_is_refused() -> None:
    with pytest.raises(CannotInflate, match="zlib: more than 99999 bytes"):
        inflate(cramjam.zlib.decompress_into, PACKED, "zlib", 99_999)


def test_bad_input_is_refused_with_the_codec_s_name() -> None:
    with pytest.raises(CannotInflate, match="zstd: "):
        inflate(cramjam.zstd.decompress_into, b"not zstd", "zstd", 1 << 30)
