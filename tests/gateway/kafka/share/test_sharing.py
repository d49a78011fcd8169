"""Share groups as their members see them: acquiring, acknowledging, locks, sessions."""

from __future__ import annotations

import pytest
from tests.gateway.kafka.share.world import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Sharer,
    Shares,
    got,
    joined,
    offsets,
)

from rockgate.protocol.kafka.errors import ErrorCode


@pytest.fixture
def world() -> Shares:
    world = Shares()
    world.topic("orders", 1)
    world.configure(auto_offset_reset="earliest")
    return world


async def test_members_get_different_records_of_one_partition(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    world.produce(b"1", b"2", b"3", b"4")
    first = await a.take(max_records=2)
    second = await b.take(max_records=2)
    assert [each.value for each in first + second] == [b"1", b"2", b"3", b"4"]
    assert {each.deliveries for each in first + second} == {1}
    assert await a.take() == []
    assert (world.window().start, world.window().end) == (0, 4)


async def test_what_is_accepted_is_finished_and_the_start_follows(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.batch(10)
    assert offsets(await a.take()) == list(range(10))
    assert a.code((5, 9, [ACCEPT])) == 0
    assert (world.window().start, len(world.window())) == (0, 5)
    assert a.code((0, 4, [ACCEPT])) == 0
    assert (world.window().start, len(world.window())) == (10, 0)
    assert await a.take() == []


async def test_an_acknowledgement_may_come_with_the_next_fetch(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.produce(b"1", b"2")
    await a.take(max_records=1)
    (partition,) = a.wanted
    answer = await a.fetch(acks={partition: [(0, 0, [ACCEPT])]})
    (data,) = answer.responses[0].partitions
    assert (data.acknowledge_error_code, offsets(got(answer))) == (0, [1])
    assert world.window().start == 1


async def test_types_may_be_given_one_by_one(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.batch(5)
    await a.take()
    assert a.code((0, 4, [ACCEPT, RELEASE, REJECT, GAP, ACCEPT])) == 0
    assert [(run.first, run.end) for run in world.window().runs()] == [(1, 2)]
    again = await a.take()
    assert [(each.offset, each.deliveries) for each in again] == [(1, 2)]


@pytest.mark.row("GRP-23")
async def test_a_lock_that_expires_gives_the_record_to_another_member(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    world.produce(b"1")
    await a.take()
    world.pass_time(29_000)
    assert await b.take() == []
    world.pass_time(2_000)
    assert [(each.offset, each.deliveries) for each in await b.take()] == [(0, 2)]
    assert a.code((0, 0, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE
    assert b.code((0, 0, [ACCEPT])) == 0


async def test_a_renewed_lock_holds_longer(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    world.produce(b"1")
    await a.take()
    world.pass_time(20_000)
    assert a.code((0, 0, [RENEW]), is_renew_ack=True) == 0
    world.pass_time(20_000)
    assert await b.take() == []
    assert a.code((0, 0, [ACCEPT])) == 0


async def test_a_group_may_forbid_to_renew(world: Shares) -> None:
    world.configure(auto_offset_reset="earliest", renew_acknowledge_enable="false")
    (a,) = joined(world, "a")
    world.produce(b"1")
    await a.take()
    code = a.code((0, 0, [RENEW]), is_renew_ack=True)
    assert code == ErrorCode.INVALID_RECORD_STATE
    assert a.code((0, 0, [RENEW])) == ErrorCode.INVALID_REQUEST, "without is_renew_ack"


@pytest.mark.row("GRP-26")
async def test_a_record_is_archived_after_its_last_delivery(world: Shares) -> None:
    world.configure(auto_offset_reset="earliest", delivery_count_limit="2")
    (a,) = joined(world, "a")
    world.produce(b"bad", b"good")
    assert offsets(await a.take(max_records=1)) == [0]
    assert a.code((0, 0, [RELEASE])) == 0
    assert [(g.offset, g.deliveries) for g in await a.take(max_records=1)] == [(0, 2)]
    assert a.code((0, 0, [RELEASE])) == 0
    assert world.window().start == 1
    assert offsets(await a.take()) == [1]
    assert world.records.archived_count == 1


async def test_a_lock_that_expires_at_the_limit_archives(world: Shares) -> None:
    world.configure(auto_offset_reset="earliest", delivery_count_limit="2")
    (a,) = joined(world, "a")
    world.produce(b"bad")
    for deliveries in (1, 2):
        assert [each.deliveries for each in await a.take()] == [deliveries]
        world.pass_time(31_000)
        assert not world.records.expire()
        a.beat()
    assert (world.window().start, len(world.window())) == (1, 0)
    assert await a.take() == []


@pytest.mark.row("GRP-26")
async def test_a_record_whose_last_delivery_a_restart_ended_is_archived(world: Shares) -> None:
    world.configure(auto_offset_reset="earliest", delivery_count_limit="2")
    (a,) = joined(world, "a")
    world.produce(b"bad")
    await a.take()
    assert a.code((0, 0, [RELEASE])) == 0
    assert [each.deliveries for each in await a.take()] == [2]
    world.reopen()
    a.epoch = 0
    a.beat()
    assert await a.take() == []
    assert (world.window().start, len(world.window())) == (1, 0)


async def test_a_restart_keeps_what_was_accepted_and_how_often_was_delivered(
    world: Shares,
) -> None:
    (a,) = joined(world, "a")
    world.batch(6)
    await a.take()
    assert a.code((1, 2, [ACCEPT]), (4, 4, [REJECT])) == 0
    world.reopen()
    assert a.code((0, 0, [ACCEPT])) == ErrorCode.SHARE_SESSION_NOT_FOUND
    a.epoch = 0
    assert a.beat().error_code == 0, "the member is still known"
    again = await a.take()
    assert [(each.offset, each.deliveries) for each in again] == [(0, 2), (3, 2), (5, 2)]


@pytest.mark.row("GRP-22")
async def test_a_kill_loses_nothing_that_was_acknowledged(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.batch(4)
    await a.take()
    assert a.code((0, 1, [ACCEPT])) == 0
    world.kill()
    a.epoch = 0
    a.beat(member_epoch=0, subscribed_topic_names=["orders"])
    assert offsets(await a.take()) == [2, 3]


@pytest.mark.row("GRP-23")
async def test_a_member_that_leaves_gives_back_what_it_holds(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    world.produce(b"1", b"2")
    await a.take(max_records=1)
    assert a.leave() == 0
    world.end_left_sessions()
    assert a.code((0, 0, [ACCEPT])) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert [(each.offset, each.deliveries) for each in await b.take()] == [(0, 2), (1, 1)]


async def test_who_wants_no_bytes_gets_no_records(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    world.produce(b"1")
    assert await a.take(max_bytes=0) == []
    assert offsets(await b.take()) == [0], "nothing was acquired"


async def test_a_member_that_is_not_heard_of_gives_back_what_it_holds(world: Shares) -> None:
    world.configure(auto_offset_reset="earliest", record_lock_duration_ms="60000")
    a, b = joined(world, "a", "b")
    world.produce(b"1")
    await a.take()
    world.pass_time(40_000)
    b.beat()
    world.pass_time(6_000)
    assert offsets(await b.take()) == [0]


@pytest.mark.row("GRP-23")
async def test_closing_a_session_acknowledges_and_gives_back_the_rest(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    world.batch(3)
    await a.take()
    assert a.code((0, 0, [ACCEPT]), share_session_epoch=-1) == 0
    assert [(each.offset, each.deliveries) for each in await b.take()] == [(1, 2), (2, 2)]
    assert a.code((1, 1, [ACCEPT])) == ErrorCode.SHARE_SESSION_NOT_FOUND


async def test_a_fetch_that_closes_the_session_reads_nothing(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.produce(b"1", b"2")
    await a.take(max_records=1)
    (partition,) = a.wanted
    answer = await a.fetch(share_session_epoch=-1, acks={partition: [(0, 0, [ACCEPT])]})
    assert got(answer) == []
    assert world.window().start == 1
    assert len(world.share_sessions) == 0


async def test_a_session_whose_connection_ended_is_closed(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    world.produce(b"1")
    await a.take()
    session = world.share_sessions.find("g", "a")
    session.peer.release()
    world.share_sessions.close_ended()
    assert offsets(await b.take()) == [0]


async def test_sessions_have_epochs(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    assert (await a.fetch(share_session_epoch=3)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    await a.take()
    wrong = await a.fetch(share_session_epoch=5)
    assert wrong.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert a.code((0, 0, [ACCEPT]), share_session_epoch=0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    (partition,) = b.wanted
    refused = await b.fetch(acks={partition: [(0, 0, [ACCEPT])]})
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert (await b.fetch(share_session_epoch=-1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.mark.parametrize(
    ("batches", "code"),
    [
        ([(1, 0, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 1, [ACCEPT]), (1, 2, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(2, 2, [ACCEPT]), (0, 0, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 0, [])], ErrorCode.INVALID_REQUEST),
        ([(0, 2, [ACCEPT, ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 0, [5])], ErrorCode.INVALID_REQUEST),
        ([(0, 0, [-1])], ErrorCode.INVALID_REQUEST),
        ([(0, 9, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 1, [ACCEPT]), (3, 3, [ACCEPT])], ErrorCode.INVALID_RECORD_STATE),
    ],
)
@pytest.mark.row("GRP-24")
async def test_a_wrong_acknowledgement_has_no_effect(
    world: Shares, batches: list[tuple[int, int, list[int]]], code: ErrorCode
) -> None:
    (a,) = joined(world, "a")
    world.batch(5)
    await a.take()
    assert a.code((3, 3, [ACCEPT])) == 0
    before = [(run.first, run.end, run.holder) for run in world.window().runs()]
    assert a.code(*batches) == code
    assert [(run.first, run.end, run.holder) for run in world.window().runs()] == before


async def test_a_request_has_a_largest_number_of_acknowledgements_and_partitions(
    world: Shares,
) -> None:
    (a,) = joined(world, "a")
    world.batch(5)
    await a.take()
    assert a.code((0, 10_000, [ACCEPT] * 10_001)) == ErrorCode.INVALID_REQUEST
    many = [(b"\1" * 16, number) for number in range(5_001)]
    assert (await a.fetch(wanted=many)).error_code == ErrorCode.INVALID_REQUEST
    assert a.code((0, 4, [ACCEPT])) == 0, "the session is as it was"


async def test_what_is_before_the_start_may_be_acknowledged_again(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.batch(3)
    await a.take()
    assert a.code((0, 1, [ACCEPT])) == 0
    assert a.code((0, 2, [ACCEPT])) == 0
    assert world.window().start == 3


async def test_a_partition_that_does_not_exist_is_an_error_of_its_own(world: Shares) -> None:
    (a,) = joined(world, "a")
    orders = world.store.topics.get("orders").id
    answer = await a.fetch(wanted=[(orders, 7), (b"\1" * 16, 0), (orders, 0)])
    codes = {
        (each.topic_id == orders, data.partition_index): data.error_code
        for each in answer.responses
        for data in each.partitions
    }
    assert codes == {
        (True, 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (False, 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }


async def test_a_fetch_waits_for_records(world: Shares) -> None:
    (a,) = joined(world, "a")
    await a.take()
    waiting = a.send(max_wait_ms=5_000)
    import asyncio

    task = asyncio.ensure_future(waiting)
    await asyncio.sleep(0)
    world.produce(b"1")
    assert offsets(got(await a.answer(task))) == [0]


async def test_a_fetch_waits_for_what_others_give_back(world: Shares) -> None:
    import asyncio

    a, b = joined(world, "a", "b")
    world.produce(b"1")
    await a.take()
    await b.take()
    task = asyncio.ensure_future(b.send(max_wait_ms=5_000))
    await asyncio.sleep(0)
    assert a.code((0, 0, [RELEASE])) == 0
    assert offsets(got(await b.answer(task))) == [0]


async def test_records_max_is_held_to_exactly_in_mode_one_alone(world: Shares) -> None:
    a, b = joined(world, "a", "b")
    world.batch(10)
    assert offsets(await a.take(max_records=3, share_acquire_mode=1)) == [0, 1, 2]
    assert offsets(await b.take(max_records=3)) == list(range(3, 10)), "the whole batch"


async def test_locks_are_bounded(world: Shares) -> None:
    world.configure(auto_offset_reset="earliest", partition_max_record_locks="100")
    a, b = joined(world, "a", "b")
    world.batch(150)
    assert offsets(await a.take()) == list(range(100))
    assert await b.take() == []
    assert a.code((10, 19, [ACCEPT])) == 0
    assert offsets(await b.take()) == list(range(100, 110))


async def test_a_new_group_begins_at_the_end_unless_it_is_told_otherwise(world: Shares) -> None:
    world.produce(b"old")
    member = Sharer(world, "m", group="late")
    member.beat()
    assert await member.take() == []
    world.produce(b"new")
    assert [each.value for each in await member.take()] == [b"new"]


async def test_a_new_group_may_begin_at_a_time(world: Shares) -> None:
    from tests.world import NOW_MS

    world.configure("timed", auto_offset_reset="by_duration:PT1H")
    for hours in (3, 2, 0):
        world.append(times=(NOW_MS - hours * 3_600_000,))
    member = Sharer(world, "m", group="timed")
    member.beat()
    assert offsets(await member.take()) == [2]


async def test_records_that_fail_often_come_in_ever_smaller_parts_and_alone_at_last(
    world: Shares,
) -> None:
    (a,) = joined(world, "a")
    world.batch(8)
    seen = []
    for _ in range(4):
        taken = offsets(await a.take())
        seen.append(len(taken))
        assert a.code((taken[0], taken[-1], [RELEASE])) == 0
    assert seen == [8, 8, 8, 4]
    assert offsets(await a.take()) == [0], "its last delivery"


async def test_what_retention_took_is_finished(world: Shares) -> None:
    (a,) = joined(world, "a")
    world.produce(*(b"x" for _ in range(6)))
    await a.take(max_records=3)
    world.store.topics.advance_log_starts({world.store.topics.get("orders"): {0: 5}})
    assert offsets(await a.take()) == [5]
    assert world.window().start == 5
