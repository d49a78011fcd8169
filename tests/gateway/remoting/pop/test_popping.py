"""Pop: messages delivered one by one, acknowledged, extended, and delivered again."""

from __future__ import annotations

import base64
import gc
import json

import pytest
from tests.gateway.fakes import turns
from tests.gateway.remoting.popworld import PopWorld
from tests.gateway.remoting.world import Everybody
from tests.waiting import until

from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.store.errors import StoreFull
from rockgate.store.inflight.window import IN_FLIGHT_MAX

RETRY = "%RETRY%group_orders"


def world(count: int = 3) -> PopWorld:
    made = PopWorld()
    for number in range(count):
        made.put(b"m%d" % number)
    return made


def bodies(found: list) -> list[bytes]:  # type: ignore[type-arg]
    return [each.body for each in found]


@pytest.mark.row("Q-04")
async def test_a_message_is_handed_to_one_member_only() -> None:
    w = world()
    assert bodies(await w.pop(maxMsgNums=2)) == [b"m0", b"m1"]
    assert bodies(await w.pop()) == [b"m2"]
    assert await w.pop() == []


async def test_groups_do_not_take_from_each_other() -> None:
    w = world()
    assert len(await w.pop()) == 3
    assert len(await w.pop(consumerGroup="other")) == 3


async def test_an_acknowledged_message_is_finished() -> None:
    w = world()
    found = await w.pop()
    for each in found:
        assert await w.ack(each) == ResponseCode.SUCCESS
    assert w.in_flight.count == 0
    await w.expire()
    assert await w.pop() == []


async def test_a_message_that_is_not_acknowledged_in_time_comes_again_with_one_try_more() -> None:
    w = world(2)
    first, second = await w.pop()
    await w.ack(first)
    await w.expire(59_000)
    assert await w.pop() == []
    await w.expire(2_000)
    [again] = await w.pop()
    assert again.body == second.body
    assert again.message.topic == "orders"
    assert again.message.reconsume_times == 1
    assert again.topic == RETRY
    await w.ack(again)
    await w.expire()
    assert await w.pop() == []


async def test_tries_are_counted_every_time() -> None:
    w = world(1)
    for tries in range(4):
        [found] = await w.pop()
        assert found.message.reconsume_times == tries
        await w.expire()
    assert len(w.entries(RETRY)) == 4


async def test_a_handle_of_an_earlier_delivery_has_no_effect() -> None:
    w = world(1)
    [first] = await w.pop()
    await w.expire()
    [again] = await w.pop()
    assert await w.ack(first) == ResponseCode.SUCCESS
    assert w.receipts.stale_count == 1
    assert w.in_flight.count == 1
    await w.ack(again)
    assert w.in_flight.count == 0


async def test_a_longer_invisible_time_keeps_a_message_from_others() -> None:
    w = world(1)
    [found] = await w.pop()
    extended = await w.extend(found, 300_000)
    await w.expire()
    assert await w.pop() == []
    assert await w.ack(found) == ResponseCode.SUCCESS
    assert w.in_flight.count == 1, "the handle was replaced by the extension"
    await w.ack(extended)
    assert w.in_flight.count == 0


async def test_a_shorter_invisible_time_lets_a_message_come_sooner() -> None:
    w = world(1)
    [found] = await w.pop()
    await w.extend(found, 1_000)
    await w.expire(2_000)
    assert bodies(await w.pop()) == [b"m0"]


async def test_a_message_in_flight_is_in_flight_after_a_crash() -> None:
    w = world(3)
    _, second, third = await w.pop()
    await w.ack(second)
    w.kill()
    assert await w.pop() == []
    await w.ack(third)
    await w.expire()
    assert bodies(await w.pop()) == [b"m0"]


async def test_a_message_in_flight_is_in_flight_after_a_snapshot_and_a_restart() -> None:
    w = world(3)
    await w.pop(maxMsgNums=2)
    w.settle()
    w.reopen()
    assert bodies(await w.pop()) == [b"m2"]
    await w.expire()
    assert sorted(bodies(await w.pop())) == [b"m0", b"m1", b"m2"]


async def test_a_pop_whose_acquisition_cannot_be_appended_hands_nothing_out() -> None:
    w = world(1)
    append = w.store.appender.append_states
    failing = pytest.MonkeyPatch()

    def full(*_: object, **__: object) -> int:
        raise StoreFull("the disk is full")

    failing.setattr(w.store.appender, "append_states", full)
    answer = await w.answer(RequestCode.POP_MESSAGE, w.pop_fields())
    assert answer.code != ResponseCode.SUCCESS
    assert w.in_flight.count == 0
    failing.setattr(w.store.appender, "append_states", append)
    assert bodies(await w.pop()) == [b"m0"]


async def test_an_acknowledgement_that_cannot_be_appended_is_an_error_and_can_be_repeated() -> None:
    w = world(1)
    [found] = await w.pop()
    with pytest.MonkeyPatch.context() as failing:

        def full(*_: object, **__: object) -> int:
            raise StoreFull("the disk is full")

        failing.setattr(w.store.appender, "append_state", full)
        assert await w.ack(found) != ResponseCode.SUCCESS
        assert w.in_flight.count == 1
    assert await w.ack(found) == ResponseCode.SUCCESS
    assert w.in_flight.count == 0


async def test_an_expired_message_that_cannot_be_moved_stays_in_flight_and_is_moved_later() -> None:
    w = world(1)
    await w.pop()
    with pytest.MonkeyPatch.context() as failing:

        def full(*_: object, **__: object) -> int:
            raise StoreFull("the disk is full")

        failing.setattr(w.store.appender, "group", full)
        await w.expire()
        assert w.in_flight.count == 1
    await w.expire(11_000)
    assert w.in_flight.count == 0
    assert bodies(await w.pop()) == [b"m0"]


async def test_copy_and_end_are_one_atomic_group() -> None:
    w = world(2)
    await w.pop()
    await w.expire()
    w.kill()
    assert sorted(bodies(await w.pop())) == [b"m0", b"m1"]
    assert len(w.entries(RETRY)) == 2


async def test_all_queues_of_a_topic_are_popped() -> None:
    w = world(1)
    w.message(partition=1, body=b"other", properties={})
    assert sorted(bodies(await w.pop())) == [b"m0", b"other"]


async def test_one_queue_alone_can_be_popped() -> None:
    w = world(1)
    w.message(partition=1, body=b"other", properties={})
    assert bodies(await w.pop(queueId=1)) == [b"other"]
    assert await w.pop(queueId=1) == []


async def test_a_filter_passes_over_what_is_not_wanted_once_and_for_all() -> None:
    w = PopWorld()
    for tag in ("a", "b", "a", "b"):
        w.put(tag.encode(), tag)
    assert bodies(await w.pop(exp="b")) == [b"b", b"b"]
    assert w.window().start == 1
    w.put(b"last", "a")
    assert await w.pop(exp="b") == []
    assert w.window().scanned == 5
    w.commit()
    assert w.window().end == 5


async def test_a_group_begins_where_it_has_committed() -> None:
    w = world(3)
    w.offsets.commit("group", w.queue(), 2, acknowledged=True)
    assert bodies(await w.pop()) == [b"m2"]


async def test_a_new_group_begins_at_the_end_of_an_old_queue_if_it_asks_for_that() -> None:
    w = world(3)
    w.delete_records(1)
    assert await w.pop(initMode=1) == []
    w.put(b"new")
    assert bodies(await w.pop(initMode=1)) == [b"new"]


async def test_a_new_group_reads_a_young_queue_from_its_beginning() -> None:
    w = world(3)
    assert len(await w.pop(initMode=1)) == 3


async def test_progress_is_the_first_message_that_is_not_finished() -> None:
    w = world(3)
    first, second, _ = await w.pop()
    await w.ack(second)
    w.commit()
    assert w.committed() == 0
    await w.ack(first)
    w.commit()
    assert w.committed() == 2


async def test_a_reset_of_the_group_takes_everything_back() -> None:
    w = world(3)
    found = await w.pop()
    w.commit()
    w.offsets.resets.set("group", w.queue(), 1)
    assert bodies(await w.pop()) == [b"m1", b"m2"]
    await w.ack(found[0])
    assert w.window().start == 1


async def test_an_offset_that_someone_else_committed_is_where_the_group_continues() -> None:
    w = world(3)
    for each in await w.pop():
        await w.ack(each)
    w.commit()
    assert await w.pop() == []
    w.offsets.commit("group", w.queue(), 1, acknowledged=True)
    assert bodies(await w.pop()) == [b"m1", b"m2"]


async def test_a_deleted_topic_has_nothing_in_flight() -> None:
    w = world(3)
    await w.pop()
    w.book.delete("orders")
    assert w.in_flight.count == 0
    await w.expire()


async def test_a_message_that_retention_took_is_given_up() -> None:
    w = world(3)
    await w.pop()
    w.delete_records(2)
    await w.expire()
    assert bodies(await w.pop()) == [b"m2"]
    assert w.revival.lost_count == 2
    assert w.in_flight.count == 1


async def test_a_pop_waits_for_a_message() -> None:
    w = PopWorld()
    told = w.ask(RequestCode.POP_MESSAGE, w.pop_fields(pollTime=10_000))
    await turns()
    assert not told.done()
    w.put(b"late")
    await turns()
    assert bodies(w.deliveries(told.result())) == [b"late"]
    assert w.polls.count == 0


async def test_a_pop_that_waits_in_vain_is_told_so_with_everything_that_clients_read() -> None:
    w = PopWorld()
    told = w.ask(RequestCode.POP_MESSAGE, w.pop_fields(pollTime=10_000))
    w.hand.advance(10)
    await turns()
    answer = told.result()
    assert answer.code == ResponseCode.POLLING_TIMEOUT
    assert {"popTime", "invisibleTime", "reviveQid", "restNum"} <= answer.fields.keys()


async def test_a_pop_that_waits_gets_a_message_that_has_expired() -> None:
    w = world(1)
    await w.pop()
    told = w.ask(RequestCode.POP_MESSAGE, w.pop_fields(pollTime=10_000))
    await turns()
    assert not told.done()
    await w.expire()
    assert bodies(w.deliveries(told.result())) == [b"m0"]


async def test_pops_that_wait_are_limited() -> None:
    w = PopWorld()
    waiting = [w.ask(RequestCode.POP_MESSAGE, w.pop_fields(pollTime=9_000)) for _ in range(3)]
    answer = await w.answer(RequestCode.POP_MESSAGE, w.pop_fields(pollTime=9_000))
    assert answer.code == ResponseCode.POLLING_FULL
    info = {"consumerGroup": "group", "topic": "orders", "queueId": -1}
    counted = await w.answer(RequestCode.POLLING_INFO, {**info})
    assert counted.fields["pollingNum"] == "3"
    w.put(b"m")
    await turns()
    assert sum(told.done() for told in waiting) == 1
    w.hand.advance(10)
    await turns()
    assert w.polls.count == 0


async def test_a_window_that_is_full_hands_nothing_out_until_something_ends() -> None:
    w = world(1)
    [first] = await w.pop()
    window = w.window()
    window.acquire(range(10, 10 + IN_FLIGHT_MAX - 1), 1, 10**15, is_in_place=False)
    w.put(b"next")
    assert window.room == 0
    assert await w.pop() == []
    await w.ack(first)
    assert window.room == 1


async def test_many_are_acknowledged_in_one_request() -> None:
    w = world(4)
    found = await w.pop()
    parts = found[0].handle.split(" ")
    ack = {
        "c": "group",
        "t": "orders",
        "r": "0",
        "q": 0,
        "rq": 0,
        "so": int(parts[0]),
        "pt": int(parts[1]),
        "it": int(parts[2]),
        "b": base64.b64encode(bytes((0b1101,))).decode(),
    }
    body = json.dumps({"brokerName": "here", "acks": [ack]}).encode()
    answer = await w.answer(RequestCode.BATCH_ACK_MESSAGE, {}, body)
    assert answer.code == ResponseCode.SUCCESS
    assert [each.offset for each in w.window().all()] == [1]


async def test_a_batch_of_acknowledgements_is_bounded_by_what_it_unfolds_to() -> None:
    w = world(1)
    ack = {
        "c": "group",
        "t": "orders",
        "r": "0",
        "q": 0,
        "so": 0,
        "pt": 1,
        "it": 1,
        "b": base64.b64encode(b"\xff" * 64).decode(),
    }
    body = json.dumps({"acks": [ack] * 100}).encode()
    answer = await w.answer(RequestCode.BATCH_ACK_MESSAGE, {}, body)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    ack["b"] = base64.b64encode(b"\xff" * 65).decode()
    answer = await w.answer(RequestCode.BATCH_ACK_MESSAGE, {}, json.dumps({"acks": [ack]}).encode())
    assert answer.code == ResponseCode.INVALID_PARAMETER


@pytest.mark.parametrize(
    "handle", ["", "x", "1 2 3", "0 1 2 0 0 here zero 1", "0 1 2 0 0 here 0 " + "9" * 30]
)
async def test_a_handle_that_is_none_is_refused(handle: str) -> None:
    w = world(1)
    [found] = await w.pop()
    found.handle = handle
    assert await w.ack(found) == ResponseCode.INVALID_PARAMETER
    assert w.in_flight.count == 1


async def test_more_than_a_pop_may_have_is_refused() -> None:
    w = world(1)
    answer = await w.answer(RequestCode.POP_MESSAGE, w.pop_fields(maxMsgNums=33))
    assert answer.code == ResponseCode.INVALID_PARAMETER


async def test_a_queue_that_is_not_there_is_refused() -> None:
    w = world(1)
    answer = await w.answer(RequestCode.POP_MESSAGE, w.pop_fields(queueId=2))
    assert answer.code == ResponseCode.INVALID_PARAMETER


async def test_a_topic_that_is_not_there_is_refused() -> None:
    w = world(1)
    answer = await w.answer(RequestCode.POP_MESSAGE, w.pop_fields(topic="none"))
    assert answer.code == ResponseCode.TOPIC_NOT_EXIST


async def test_an_invisible_time_has_a_maximum() -> None:
    w = world(1)
    [found] = await w.pop(invisibleTime=10**15)
    item = w.window().find(0)
    assert item is not None
    assert item.deadline_ms == w.clock.now_ms() + 12 * 3_600_000
    await w.ack(found)
    assert w.in_flight.count == 0


async def test_a_peek_leaves_messages_where_they_are() -> None:
    w = world(2)
    fields = {"consumerGroup": "group", "topic": "orders", "queueId": 0, "maxMsgNums": 1}
    for _ in range(2):
        answer = await w.answer(RequestCode.PEEK_MESSAGE, {**fields})
        assert answer.code == ResponseCode.SUCCESS
    assert len(await w.pop()) == 2
    assert (await w.answer(RequestCode.PEEK_MESSAGE, {**fields})).code != ResponseCode.SUCCESS


async def test_a_notification_tells_when_there_is_something_to_pop() -> None:
    w = PopWorld()
    fields = {**w.pop_fields(pollTime=5_000)}
    told = w.ask(RequestCode.NOTIFICATION, fields)
    await turns()
    assert not told.done()
    w.put(b"m")
    await turns()
    assert told.result().fields["hasMsg"] == "true"
    assert len(await w.pop()) == 1
    told = w.ask(RequestCode.NOTIFICATION, fields)
    await turns()
    w.hand.advance(6)
    await turns()
    assert told.result().fields["hasMsg"] == "false"


async def test_a_retry_topic_whose_name_would_be_too_long_is_not_needed() -> None:
    w = world(1)
    group = "g" * 120
    [found] = await w.pop(consumerGroup=group)
    await w.expire()
    [again] = await w.pop(consumerGroup=group)
    assert (again.body, again.topic) == (b"m0", "orders")
    await w.ack(again, group)
    assert w.in_flight.count == 0
    assert found.handle != again.handle


async def test_a_topic_of_many_queues_is_looked_at_turn_by_turn() -> None:
    w = PopWorld()
    w.ensure("wide", 600)
    w.message("wide", 597, body=b"far", properties={})
    assert bodies(await w.pop(topic="wide")) == [b"far"]
    told = w.ask(RequestCode.POP_MESSAGE, w.pop_fields(topic="wide"))
    assert not told.done(), "others have their turn"
    await until(told.done, "it is answered")
    assert told.result().code == ResponseCode.POLLING_TIMEOUT


async def test_a_clock_that_is_set_ahead_loses_nothing() -> None:
    w = world(2)
    first, _ = await w.pop()
    await w.ack(first)
    w.clock.step(86_400_000)
    await w.expire(1_000)
    assert bodies(await w.pop()) == [b"m1"]


async def test_a_group_of_kafka_members_cannot_pop(monkeypatch: pytest.MonkeyPatch) -> None:
    w = world(1)
    monkeypatch.setattr(Everybody, "is_foreign", lambda owners, group: True)
    answer = await w.answer(RequestCode.POP_MESSAGE, w.pop_fields())
    assert answer.code == ResponseCode.NO_PERMISSION
    assert w.in_flight.count == 0


async def test_there_is_nothing_to_move_to_another_store() -> None:
    w = world(1)
    await w.pop()
    assert (await w.answer(RequestCode.POP_ROLLBACK, {})).code == ResponseCode.SUCCESS
    assert w.in_flight.count == 1


async def test_several_cold_queues_are_popped_without_leaving_a_read_behind() -> None:
    w = world(1)
    w.message(partition=1, body=b"other", properties={})
    w.settle()
    w.reopen()
    assert sorted(bodies([*await w.pop(), *await w.pop()])) == [b"m0", b"other"]
    gc.collect()
