"""What is in flight is bounded by count and bytes: docs/reference/sdk.md, "A connection"."""

from __future__ import annotations

import asyncio

import pytest
from tests.sdk.memorynet import run, settle

from rockgate.sdk.client.in_flight import InFlight
from rockgate.sdk.errors import Overloaded


def turns(count: int = 2, size: int = 100, waiting: int = 10) -> InFlight:
    return InFlight(count_max=count, size_max=size, waiting_max=waiting)


def test_there_is_room_for_so_many_and_so_much() -> None:
    room = turns()
    assert room.try_take(60)
    assert not room.try_take(60), "too many bytes"
    assert room.try_take(40)
    assert not room.try_take(0), "too many requests"
    room.give(60)
    assert room.try_take(60)


def test_what_is_larger_than_the_bound_goes_alone() -> None:
    room = turns()
    assert room.try_take(500)
    assert not room.try_take(1)
    room.give(500)
    assert room.try_take(1)
    assert not room.try_take(500)


def test_who_finds_no_room_waits_in_order() -> None:
    async def scenario() -> None:
        room = turns()
        order: list[str] = []

        async def use(name: str, size: int) -> None:
            await room.take(size)
            order.append(name)

        assert room.try_take(90)
        large = asyncio.create_task(use("large", 90))
        small = asyncio.create_task(use("small", 5))
        await settle()
        assert (order, room.waiting_count) == ([], 2), "the small one does not overtake"
        assert not room.try_take(1)
        room.give(90)
        await asyncio.gather(large, small)
        assert order == ["large", "small"]

    run(scenario())


def test_one_that_gives_up_makes_way_for_those_behind() -> None:
    async def scenario() -> None:
        room = turns()
        assert room.try_take(90)
        large = asyncio.create_task(room.take(90))
        small = asyncio.create_task(room.take(5))
        await settle()
        large.cancel()
        await settle()
        assert small.done() and room.waiting_count == 0
        assert (room.count, room.size) == (2, 95)

    run(scenario())


def test_a_turn_that_came_with_the_cancellation_is_given_on() -> None:
    async def scenario() -> None:
        room = turns(count=1)
        assert room.try_take(1)
        first, second = (asyncio.create_task(room.take(1)) for _ in range(2))
        await settle()
        room.give(1)
        first.cancel()
        await settle()
        assert first.cancelled() and second.done()
        room.give(1)
        assert (room.count, room.size) == (0, 0)

    run(scenario())


@pytest.mark.row("P-03")
@pytest.mark.row("M-07")
def test_more_than_may_wait_are_refused_at_once() -> None:
    async def scenario() -> None:
        room = turns(count=1, waiting=2)
        assert room.try_take(1)
        waiting = [asyncio.create_task(room.take(1)) for _ in range(2)]
        await settle()
        with pytest.raises(Overloaded, match="1 in flight and 2 queued"):
            await room.take(1)
        for task in waiting:
            task.cancel()

    run(scenario())
