"""Writes of whole batches: each is a message of its own, in order, with the outcomes of others."""

from __future__ import annotations

import asyncio

from tests.gateway.rocketmq.queues.writing import NOW_MS, Writing, code_of

from rockgate.gateway.rocketmq.queues.messages import BatchForm
from rockgate.gateway.transcode.remote.sent_records import MESSAGES_MAX
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.batch import Compression, read_header
from rockgate.protocol.kafka.records.record import Record, build_batch

WHOLE = BatchForm(is_whole=True)


def append(world: Writing, body: bytes, **changed: int) -> asyncio.Future[int]:
    return world.writer.append(
        body,
        read_header(body)._replace(**changed),
        is_all=True,
        deadline=asyncio.get_running_loop().time() + 9.0,
        now_ms=NOW_MS,
        form=WHOLE,
    )


def batch(count: int, producer: int = -1, sequence: int = -1) -> bytes:
    records = [Record(at, NOW_MS, None, b"v" * 100, ()) for at in range(count)]
    return bytes(
        build_batch(
            records,
            base_offset=0,
            compression=Compression.GZIP,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=sequence,
        )
    )


async def test_batches_are_messages_as_they_came_one_after_another() -> None:
    world = Writing()
    bodies = [batch(10), batch(1), batch(300)]
    outcomes = [append(world, body) for body in bodies]
    assert await asyncio.gather(*outcomes) == [0, 10, 11]
    assert [body for _, body, _ in world.brokers.inner] == bodies
    assert world.brokers.sends == []
    assert world.writer.confirmed == 311


async def test_a_busy_broker_is_sent_the_same_batch_again() -> None:
    world = Writing()
    world.brokers.script = [2, 2, 0]
    assert await append(world, batch(3)) == 0
    assert len(world.brokers.inner) == 1


async def test_a_broker_that_refuses_the_message_is_invalid_record() -> None:
    world = Writing()
    world.brokers.script = [13]
    assert await code_of(append(world, batch(3))) is ErrorCode.INVALID_RECORD


async def test_a_late_slave_is_told_to_those_who_ask_for_all() -> None:
    world = Writing()
    world.brokers.script = [11]
    late = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert await code_of(append(world, batch(3))) is late


async def test_a_repeat_has_the_offset_of_the_first() -> None:
    world = Writing()
    first, second = batch(3, 7, 0), batch(2, 7, 3)
    assert await append(world, first) == 0
    assert await append(world, second) == 3
    assert await append(world, first) == 0
    assert len(world.brokers.inner) == 2


async def test_too_many_records_are_refused() -> None:
    world = Writing()
    too_many = append(world, batch(1), record_count=MESSAGES_MAX + 1)
    assert await code_of(too_many) is ErrorCode.MESSAGE_TOO_LARGE
    assert await append(world, batch(1)) == 0
