"""Subscriptions are the clients'; what the server reads of them is bounded and never an error."""

from __future__ import annotations

import struct

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.gateway.kafka.groups.subscription import topics_of


def subscription(topics: list[str], version: int = 3) -> bytes:
    names = [each.encode() for each in topics]
    packed = b"".join(struct.pack(">h", len(each)) + each for each in names)
    return struct.pack(">hi", version, len(names)) + packed + struct.pack(">i", -1)


def test_the_topics_are_read_whatever_the_version_adds_behind_them() -> None:
    assert topics_of(subscription(["a", "bc"])) == ["a", "bc"]
    assert topics_of(subscription([], 0)) == []


def test_what_is_no_subscription_names_no_topics() -> None:
    whole = subscription(["orders"])
    for size in range(len(whole) - 4):
        assert topics_of(whole[:size]) == []
    assert topics_of(struct.pack(">hi", 0, 2**31 - 1) + b"\0" * 100) == []


@settings(max_examples=budget("property_examples"), deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_are_an_error(data: bytes) -> None:
    topics_of(data)
