"""Filters: compiled once, cached within bytes, and limited in cost for one pull."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.world import World

from rockgate.gateway.remoting.messages.puller import Pulled, Puller
from rockgate.gateway.remoting.messages.subscriptions import (
    TAGS_CHARS_MAX,
    WORK_MAX,
    Evaluation,
    Filters,
    filter_of,
)
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.message import decode_all
from rockgate.protocol.remoting.sql import compile_expression

COUNT = 1_024
LARGE = " OR ".join(f"no = {number}" for number in range(2_000, 2_990)) + " OR no IN ('7', '1000')"
"""Thirteen kilobytes, and true of few."""
STALL_SECONDS_MAX = 0.05


def filled() -> tuple[Puller, Any]:
    world = World()
    world.topic()
    for number in range(COUNT):
        world.message(body=b"x", properties={"no": str(number)})
    store = world.store
    puller = Puller(
        reader=store.reader,
        cold_reads=ColdReads(store.residency, store.log),
        stable_offsets=StableOffsets(store.topics),
        transcoder=Transcoder(cache_bytes_max=1 << 20, message_bytes_max=1 << 20),
    )
    return puller, world.queue()


def test_one_pull_of_a_large_expression_looks_at_some_and_the_next_continues() -> None:
    puller, queue = filled()
    wanted = filter_of("SQL92", LARGE)
    assert 12_000 < len(LARGE) < 16_384
    at, found, seconds = 0, [], []
    while at < COUNT:
        began = time.thread_time()
        pulled = puller.pull(queue, at, wanted, 32, 1 << 20)
        seconds.append(time.thread_time() - began)
        assert isinstance(pulled, Pulled)
        expected = ResponseCode.SUCCESS if pulled.buffers else ResponseCode.PULL_RETRY_IMMEDIATELY
        assert pulled.code == expected
        assert pulled.next_offset > at, "it never stands still"
        at = pulled.next_offset
        found += [m.properties["no"] for each in pulled.buffers for m in decode_all(each)]
    assert found == ["7", "1000"]
    assert sorted(seconds)[len(seconds) // 2] < STALL_SECONDS_MAX


def test_a_small_expression_is_asked_about_as_many_as_a_pull_looks_at() -> None:
    puller, queue = filled()
    pulled = puller.pull(queue, 0, filter_of("SQL92", "no = 1023"), 32, 1 << 20)
    assert isinstance(pulled, Pulled)
    assert (pulled.next_offset, len(pulled.buffers)) == (COUNT, 1)


def test_what_is_asked_costs_by_words_and_by_properties() -> None:
    asked = Evaluation(compile_expression("a = 1"), work_max=100)
    count = 0
    while asked.properties({"a": "1"}) is not None:
        count += 1
    assert 4 <= count <= 20
    wide = Evaluation(compile_expression("a = 1"), work_max=100)
    assert wide.properties({str(number): "" for number in range(200)}) is False
    assert wide.is_spent and wide.properties({}) is None
    assert WORK_MAX > 1_024 * 16


def test_filters_are_kept_within_bytes() -> None:
    filters = Filters(bytes_max=3 << 20)
    first = filters.of("TAG", "A || B")
    assert filters.of("TAG", "A || B") is first
    for number in range(50):
        filters.of("SQL92", f"{LARGE} OR no = {number}")
        assert filters.cache.size <= 3 << 20
    assert 0 < len(filters.cache) < 4
    assert filters.of("TAG", "A || B") is not first


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        (
            "TAG",
            "t" * (TAGS_CHARS_MAX + 1),
            "Tag expression is 16,385 characters; the maximum is 16,384.",
        ),
        ("TAG", " || ", "has no tags"),
        ("SQL92", "a = 1 OR " * 2_000, "Expression of 17,999 characters"),
        ("SQL92", "a", None),
        ("XPATH", "a", "Unknown expression type 'XPATH'"),
    ],
)
def test_what_is_too_much_is_refused(kind: str, text: str, why: str | None) -> None:
    if why is None:
        assert filter_of(kind, text).accepts is not None
        return
    with pytest.raises(Refused, match=why):
        filter_of(kind, text)
