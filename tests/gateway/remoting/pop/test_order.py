"""Pop in order: one batch of a queue at a time, and the same again until it is acknowledged."""

from __future__ import annotations

from tests.gateway.fakes import turns
from tests.gateway.remoting.popworld import Delivery, PopWorld

from rockgate.protocol.remoting.codes import RequestCode


def world(count: int = 3) -> PopWorld:
    made = PopWorld()
    for number in range(count):
        made.put(b"m%d" % number)
    return made


def bodies(found: list[Delivery]) -> list[bytes]:
    return [each.body for each in found]


async def test_a_queue_is_blocked_until_everything_of_it_is_acknowledged() -> None:
    w = world()
    first, second = await w.pop(order="true", maxMsgNums=2)
    assert await w.pop(order="true") == []
    await w.ack(first)
    assert await w.pop(order="true") == []
    await w.ack(second)
    assert bodies(await w.pop(order="true")) == [b"m2"]


async def test_a_queue_that_is_blocked_does_not_block_another() -> None:
    w = world(1)
    w.message(partition=1, body=b"other", properties={})
    assert bodies(await w.pop(order="true", queueId=0)) == [b"m0"]
    assert bodies(await w.pop(order="true")) == [b"other"]


async def test_what_was_not_acknowledged_comes_again_in_place_and_before_anything_else() -> None:
    w = world()
    first, second = await w.pop(order="true", maxMsgNums=2)
    await w.ack(first)
    await w.expire()
    again = await w.pop(order="true")
    assert bodies(again) == [b"m1", b"m2"]
    assert again[0].message.queue_offset == second.message.queue_offset
    assert w.store.topics.find("%RETRY%group_orders") is None


async def test_the_answer_tells_how_often_each_was_delivered_before() -> None:
    w = world(2)
    await w.pop(order="true", maxMsgNums=1)
    await w.expire()
    answer = await w.answer(RequestCode.POP_MESSAGE, w.pop_fields(order="true"))
    assert answer.fields["orderCountInfo"] == "0 qo0%0 1;0 0 0"
    await w.expire()
    answer = await w.answer(RequestCode.POP_MESSAGE, w.pop_fields(order="true"))
    assert answer.fields["orderCountInfo"] == "0 qo0%0 2;0 qo0%1 1;0 0 1"


async def test_the_same_attempt_gets_the_same_messages_again() -> None:
    w = world()
    first = await w.pop(order="true", maxMsgNums=2, attemptId="one")
    w.pass_time(1_000)
    assert await w.pop(order="true", attemptId="two") == []
    again = await w.pop(order="true", attemptId="one")
    assert bodies(again) == bodies(first) == [b"m0", b"m1"]
    item = w.window().find(0)
    assert item is not None and item.deliveries == 1
    await w.ack(first[0])
    assert len(w.window()) == 2, "the handle is the one of the last answer"
    for each in again:
        await w.ack(each)
    assert bodies(await w.pop(order="true", attemptId="three")) == [b"m2"]


async def test_an_acknowledgement_wakes_a_pop_that_waits_for_the_queue() -> None:
    w = world(2)
    [first] = await w.pop(order="true", maxMsgNums=1)
    told = w.ask(RequestCode.POP_MESSAGE, w.pop_fields(order="true", pollTime=9_000))
    await turns()
    assert not told.done()
    await w.ack(first)
    await turns()
    assert bodies(w.deliveries(told.result())) == [b"m1"]


async def test_a_deadline_wakes_a_pop_that_waits_for_the_queue() -> None:
    w = world(1)
    await w.pop(order="true")
    told = w.ask(RequestCode.POP_MESSAGE, w.pop_fields(order="true", pollTime=9_000))
    await turns()
    await w.expire()
    assert bodies(w.deliveries(told.result())) == [b"m0"]


async def test_one_message_of_a_batch_can_be_put_off() -> None:
    w = world(2)
    first, second = await w.pop(order="true")
    await w.ack(second)
    put_off = await w.extend(first, 5_000)
    assert put_off.handle.split(" ")[1] == first.handle.split(" ")[1], "its pop time stays"
    assert await w.pop(order="true") == []
    await w.expire(6_000)
    assert bodies(await w.pop(order="true")) == [b"m0"]


async def test_order_survives_a_crash() -> None:
    w = world(3)
    first, _ = await w.pop(order="true", maxMsgNums=2)
    await w.ack(first)
    w.kill()
    assert await w.pop(order="true") == []
    await w.expire()
    assert bodies(await w.pop(order="true")) == [b"m1", b"m2"]


async def test_pops_without_order_get_what_was_left_in_place() -> None:
    w = world(2)
    await w.pop(order="true", maxMsgNums=1)
    assert bodies(await w.pop()) == [b"m1"]
    await w.expire()
    assert sorted(bodies(await w.pop())) == [b"m0", b"m1"]


async def test_a_message_that_retention_took_does_not_block_its_queue() -> None:
    w = world(3)
    await w.pop(order="true", maxMsgNums=2)
    w.delete_records(2)
    await w.expire()
    assert bodies(await w.pop(order="true")) == [b"m2"]
    assert w.window().start == 2
