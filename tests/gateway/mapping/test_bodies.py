from __future__ import annotations

import zlib

import cramjam
import pytest

from rockgate.gateway.mapping.bodies import decompress
from rockgate.protocol.inflating import CannotInflate

PLAIN = b"body" * 1000


@pytest.mark.parametrize(
    ("codec", "body"),
    [
        (0, zlib.compress(PLAIN)),
        (1, bytes(cramjam.lz4.compress(PLAIN))),
        (2, bytes(cramjam.zstd.compress(PLAIN))),
        (3, zlib.compress(PLAIN)),
    ],
)
def test_the_flags_say_how_a_body_is_opened(codec: int, body: bytes) -> None:
    assert decompress(body, 1 | codec << 8) == PLAIN


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4, 7])
def test_a_body_that_is_something_else_is_refused(codec: int) -> None:
    with pytest.raises(CannotInflate):
        decompress(PLAIN, 1 | codec << 8)


def test_a_body_is_opened_up_to_a_bound() -> None:
    with pytest.raises(CannotInflate, match="more than 3999 bytes"):
        decompress(zlib.compress(PLAIN), 1, size_max=3999)
