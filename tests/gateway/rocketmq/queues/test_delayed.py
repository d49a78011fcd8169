"""Delayed records go alone, the others of their batch as usual, and offsets are those of these."""

from __future__ import annotations

import asyncio

import pytest
from tests.gateway.rocketmq.queues.writing import NOW_MS, Writing, code_of

from rockgate.gateway.rocketmq.queues.delayed import DelayRule
from rockgate.gateway.rocketmq.queues.messages import BatchForm
from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch
from rockgate.protocol.kafka.records.batch import read_header
from rockgate.protocol.kafka.records.record import Header, Record, build_batch

LATE: tuple[Header, ...] = (("TIMER_DELAY_MS", b"1000"), ("h", b"1"))


def append(
    world: Writing,
    *records: tuple[bytes | None, tuple[Header, ...]],
    rule: DelayRule = DelayRule.ALL,
    wait_s: float = 9.0,
) -> asyncio.Future[int]:
    made = [Record(at, NOW_MS, b"k", value, headers) for at, (value, headers) in enumerate(records)]
    batch = build_batch(made, base_offset=0)
    return world.writer.append(
        bytes(batch),
        read_header(batch),
        is_all=True,
        deadline=asyncio.get_running_loop().time() + wait_s,
        now_ms=NOW_MS,
        form=BatchForm(rule),
    )


async def test_delayed_records_go_alone_with_their_time() -> None:
    world = Writing()
    assert await append(world, (b"a", ()), (b"late", LATE), (b"b", ())) == 0
    assert [body for body, _ in world.brokers.messages] == [b"a", b"b"]
    due = NOW_MS + 1000
    assert world.brokers.alone == [
        (b"late", f"KEYS\x01k\x02h\x011\x02TIMER_DELIVER_MS\x01{due}\x02")
    ]


async def test_without_others_the_offset_is_not_known() -> None:
    world = Writing()
    level: tuple[Header, ...] = (("DELAY", b"3"),)
    assert await append(world, (b"late", level), rule=DelayRule.LEVELS) == -1
    assert world.brokers.alone == [(b"late", "KEYS\x01k\x02DELAY\x013\x02")]
    assert world.writer.confirmed == 0
    assert await append(world, (b"a", ())) == 0


async def test_on_topics_of_another_type_the_headers_are_ordinary() -> None:
    world = Writing()
    assert await append(world, (b"a", LATE), rule=DelayRule.NONE) == 0
    assert world.brokers.alone == []


@pytest.mark.parametrize(
    ("value", "headers", "rule"),
    [
        (b"v", (("TIMER_DELAY_MS", b"soon"),), DelayRule.ALL),
        (b"v", LATE, DelayRule.LEVELS),
        (None, LATE, DelayRule.ALL),
        (b"", LATE, DelayRule.ALL),
    ],
)
async def test_what_cannot_be_delayed_is_refused_and_nothing_is_stored(
    value: bytes | None, headers: tuple[Header, ...], rule: DelayRule
) -> None:
    world = Writing()
    with pytest.raises(MalformedBatch) as raised:
        append(world, (b"a", ()), (value, headers), rule=rule)
    assert raised.value.code is ErrorCode.INVALID_RECORD
    assert not world.brokers.messages
    assert not world.brokers.alone


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0, 13], ErrorCode.INVALID_RECORD),
        ([0, 1], ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ([0, -99], ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
async def test_a_broker_that_refuses_or_fails_is_passed_on(
    codes: list[int], expected: ErrorCode
) -> None:
    world = Writing()
    world.brokers.script = codes
    assert await code_of(append(world, (b"a", ()), (b"late", LATE))) is expected


async def test_a_busy_broker_is_asked_again_until_the_time_is_over() -> None:
    world = Writing()
    world.brokers.script = [2, 0, 2, 0]
    assert await append(world, (b"a", ()), (b"late", LATE)) == 0
    assert len(world.brokers.alone) == 1
    world.brokers.script = [2] * 100
    late = append(world, (b"late", LATE), wait_s=0.0)
    assert await code_of(late) is ErrorCode.REQUEST_TIMED_OUT
