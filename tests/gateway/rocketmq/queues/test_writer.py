"""The table of outcomes of docs/internals/rocketmq-cluster.md, row by row, and the line."""

from __future__ import annotations

import asyncio

import pytest
from tests.gateway.rocketmq.fake_brokers import LOST, settle
from tests.gateway.rocketmq.queues.writing import NOW_MS, Writing, code_of

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.rocketmq.queues.line import JOINED_COUNT_MAX, LINE_BYTES_MAX
from rockgate.protocol.kafka.errors import BatchTooLarge, ErrorCode, MalformedBatch
from rockgate.protocol.kafka.records.batch import Compression, read_header
from rockgate.protocol.kafka.records.record import Record, build_batch

# The line


async def test_what_waits_is_joined_and_each_batch_gets_its_offsets() -> None:
    world = Writing()
    world.brokers.is_paused = True
    first = world.append(3)
    await settle(lambda: world.brokers.sends)
    rest = [world.append(count) for count in (2, 1, 4)]
    world.brokers.go.set()
    assert [await each for each in (first, *rest)] == [0, 3, 5, 6]
    assert world.brokers.sends == [3, 7]
    assert world.brokers.in_flight_max == 1


async def test_no_more_is_joined_than_fits() -> None:
    world = Writing()
    world.brokers.is_paused = True
    outcomes = [world.append(JOINED_COUNT_MAX // 2) for _ in range(4)]
    world.brokers.go.set()
    assert [await each for each in outcomes] == [0, 8000, 16_000, 24_000]
    assert world.brokers.sends == [16_000, 16_000]
    # By bytes: two of them are more than a request takes.
    world.brokers.go.clear()
    more = [world.append(value=bytes(600_000)) for _ in range(3)]
    world.brokers.go.set()
    await asyncio.gather(*more)
    assert world.brokers.sends[2:] == [1, 1, 1]


async def test_a_compressed_batch_is_opened_and_nothing_overtakes_it() -> None:
    world = Writing()
    heavy = world.append(2000, compression=Compression.GZIP, value=b"heavy")
    light = world.append(1, value=b"light")
    assert (await heavy, await light) == (0, 2000)
    assert [body for body, _ in world.brokers.messages[1999:]] == [b"heavy", b"light"]


async def test_a_batch_that_cannot_be_opened_leaves_its_place_to_others() -> None:
    world = Writing()
    batch = bytearray(
        build_batch(
            [Record(at, NOW_MS, None, b"v", ()) for at in range(2000)],
            base_offset=0,
            compression=Compression.GZIP,
        )
    )
    batch[80:90] = bytes(10)
    until = asyncio.get_running_loop().time() + 9
    broken = world.writer.append(
        bytes(batch), read_header(batch), is_all=True, deadline=until, now_ms=NOW_MS
    )
    good = world.append(1)
    with pytest.raises(RequestError):
        await broken
    assert await good == 0


async def test_a_batch_that_no_request_holds_is_refused_at_once() -> None:
    world = Writing()
    with pytest.raises((BatchTooLarge, RequestError)):
        await world.append(32_768)
    with pytest.raises(MalformedBatch):
        batch = build_batch([Record(0, NOW_MS, None, b"v", ())], base_offset=0)
        header = read_header(batch)._replace(record_count=2, last_offset_delta=1)
        world.writer.append(bytes(batch), header, is_all=True, deadline=1e9, now_ms=NOW_MS)
    assert await world.append(1) == 0


async def test_the_line_is_bounded() -> None:
    world = Writing()
    world.brokers.is_paused = True
    outcomes = []
    with pytest.raises(RequestError):
        for _ in range(1 + (LINE_BYTES_MAX >> 20)):
            outcomes += [world.append(value=bytes(1 << 20))]
    assert len(outcomes) == (LINE_BYTES_MAX >> 20) - 1
    world.brokers.go.set()
    await asyncio.gather(*outcomes)
    assert await world.append() == len(world.brokers.messages) - 1


# Outcomes


@pytest.mark.parametrize("code", [2, 215])
async def test_a_busy_broker_gets_the_same_again(code: int) -> None:
    world = Writing()
    world.brokers.script = [code, code]
    assert await world.append(2) == 0
    assert world.brokers.sends == [2, 2, 2]


async def test_what_is_busy_for_too_long_times_out_and_what_waits_is_sent_again() -> None:
    world = Writing()
    world.brokers.script = [2] * 100
    first = world.append(wait_s=0.01, producer=7, sequence=0)
    await settle(lambda: world.brokers.sends)
    second = world.append(wait_s=60, producer=7, sequence=1)
    assert await code_of(first) is ErrorCode.REQUEST_TIMED_OUT
    assert await code_of(second) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.brokers.script = []
    # Both come again, in order: nothing was assumed of them.
    assert await world.append(producer=7, sequence=0) == 0
    assert await world.append(producer=7, sequence=1) == 1


@pytest.mark.parametrize("code", [10, 11, 12])
async def test_stored_but_late_is_an_offset_for_one_and_an_error_for_all(code: int) -> None:
    world = Writing()
    world.brokers.script = [code, code]
    assert await world.append(2, is_all=False) == 0
    late = world.append(1, producer=7, sequence=0)
    assert await code_of(late) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    # Sent again it is not stored again, and has the same outcome.
    again = world.append(1, producer=7, sequence=0)
    assert await code_of(again) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert len(world.brokers.messages) == 3
    assert world.writer.confirmed == 3


@pytest.mark.parametrize("code", [13, 29])
async def test_of_joined_batches_only_the_illegal_one_is_refused(code: int) -> None:
    world = Writing()
    world.brokers.is_paused = True
    first = world.append()
    await settle(lambda: world.brokers.sends)
    good, bad, last = world.append(2), world.append(3), world.append(1)
    world.brokers.script = [0, code, 0, code, 0]
    world.brokers.go.set()
    assert (await first, await good, await last) == (0, 1, 3)
    assert await code_of(bad) is ErrorCode.INVALID_RECORD
    assert world.brokers.sends == [1, 6, 2, 3, 1]


@pytest.mark.parametrize("code", [1, 14, 16, LOST])
async def test_after_an_uncertain_outcome_everything_that_waits_is_sent_again(code: int) -> None:
    world = Writing()
    world.brokers.script = [code]
    world.brokers.is_paused = True
    first = world.append(producer=7, sequence=0)
    await settle(lambda: world.brokers.sends)
    second = world.append(producer=7, sequence=1)
    world.brokers.go.set()
    for outcome in (first, second):
        assert await code_of(outcome) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    await settle(lambda: world.writer.is_idle)
    assert await world.append(producer=7, sequence=0) == 0


async def test_a_stop_drops_what_waits_and_answers_what_is_under_way() -> None:
    world = Writing()
    world.brokers.is_paused = True
    first = world.append()
    await settle(lambda: world.brokers.sends)
    second = world.append()
    closing = asyncio.ensure_future(world.writer.close())
    assert await code_of(second) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.brokers.go.set()
    await closing
    assert await first == 0


# Sequences


async def test_a_repeat_has_the_offset_of_the_first_also_while_that_waits() -> None:
    world = Writing()
    world.brokers.is_paused = True
    first = world.append(2, producer=7, sequence=0)
    repeated = world.append(2, producer=7, sequence=0)
    world.brokers.go.set()
    assert (await first, await repeated) == (0, 0)
    assert await world.append(2, producer=7, sequence=0) == 0
    assert len(world.brokers.messages) == 2


async def test_five_batches_are_remembered_and_a_gap_is_out_of_order() -> None:
    world = Writing()
    for sequence in range(6):
        assert await world.append(producer=7, sequence=sequence) == sequence
    for sequence in range(1, 6):
        assert await world.append(producer=7, sequence=sequence) == sequence
    for sequence in (0, 7):
        with pytest.raises(RequestError) as raised:
            world.append(producer=7, sequence=sequence)
        assert raised.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(world.brokers.messages) == 6


async def test_sequences_go_on_after_the_last_number() -> None:
    world = Writing()
    last = (1 << 31) - 2
    assert await world.append(3, producer=7, sequence=last) == 0
    assert await world.append(1, producer=7, sequence=1) == 3


async def test_a_new_epoch_begins_with_0_and_an_old_one_is_refused() -> None:
    world = Writing()
    await world.append(producer=7, sequence=5)
    with pytest.raises(RequestError) as raised:
        world.append(producer=7, sequence=6, epoch=1)
    assert raised.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert await world.append(producer=7, sequence=0, epoch=1) == 1
    with pytest.raises(RequestError) as raised:
        world.append(producer=7, sequence=6, epoch=0)
    assert raised.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
