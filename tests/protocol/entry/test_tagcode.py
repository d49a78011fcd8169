"""Tag codes: what Java's String.hashCode says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.entry.tagcode import cached, tag_code


@pytest.mark.row("U-10")
@pytest.mark.row("I-04")
@pytest.mark.parametrize(
    ("tags", "code"),
    [
        ("", 0),
        ("a", 97),
        ("TagA", 2_598_919),
        ("TagB", 2_598_920),
        ("*", 42),
        ("polygenelubricants", -2_147_483_648),
        ("AaAa", 2_031_744),
        ("BBBB", 2_031_744),
        ("標籤", 873_835),
        ("😀", 1_772_899),
    ],
)
def test_a_code_is_javas_hash_of_the_tags(tags: str, code: int) -> None:
    assert tag_code(tags.encode()) == code


@settings(deadline=None, max_examples=budget("property_examples"))
@given(st.binary(max_size=300))
def test_any_bytes_have_a_code_of_32_bits_and_always_the_same(tags: bytes) -> None:
    assert -(1 << 31) <= tag_code(tags) < 1 << 31
    assert tag_code(tags) == tag_code(bytes(bytearray(tags)))


def test_codes_of_very_long_tags_are_not_kept_in_memory() -> None:
    """A property may be 32 KB, and a client may send another one with every message."""
    before = cached.cache_info().currsize
    for number in range(100):
        tag_code(b"%d" % number + b"x" * 1_000)
    assert cached.cache_info().currsize == before
    tag_code(b"a tag that no other test has")
    assert cached.cache_info().currsize == before + 1
