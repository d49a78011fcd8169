import asyncio
from typing import cast

import pytest
from tests.waiting import until

from rockgate.gateway.waiting import Waiting
from rockgate.store.consumequeue import Queue

HOUR_MS = 3_600_000


def queue() -> Queue:
    """Waiting only asks for identity and for how durable a queue is."""

    class Named:
        is_sync = False

    return cast(Queue, Named())


class Poller:
    """A poll that has enough at `enough` looks, and remembers how it was asked."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.asked: list[bool] = []

    def look(self, is_last: bool) -> int | None:
        self.asked.append(is_last)
        return len(self.asked) if is_last or len(self.asked) >= self.enough else None


async def test_a_poll_is_asked_again_when_its_queue_has_more_until_it_has_enough() -> None:
    waiting, first, second = Waiting(), queue(), queue()
    poller = Poller(enough=2)
    future = waiting.poll([first, second], HOUR_MS, poller.look)
    waiting.wake(first)
    await asyncio.sleep(0)
    assert poller.asked == [False] and not future.done()
    waiting.wake(second)
    assert await future == 2
    assert len(waiting) == 0


async def test_many_appends_of_one_turn_are_one_look() -> None:
    waiting, first, second = Waiting(), queue(), queue()
    poller = Poller(enough=1)
    future = waiting.poll([first, second], HOUR_MS, poller.look)
    for _ in range(100):
        waiting.wake(first)
        waiting.wake(second)
    assert await future == 1


async def test_a_poll_takes_what_there_is_when_time_is_up() -> None:
    waiting = Waiting()
    poller = Poller(enough=100)
    assert await waiting.poll([queue()], 1, poller.look) == 1
    assert poller.asked == [True]
    assert len(waiting) == 0


async def test_a_poll_whose_connection_is_lost_is_forgotten() -> None:
    waiting, one = Waiting(), queue()
    poller = Poller(enough=1)
    future = waiting.poll([one], HOUR_MS, poller.look)
    waiting.wake(one)
    future.cancel()
    await until(lambda: len(waiting) == 0, "the poll is forgotten")
    assert poller.asked == []


async def test_an_error_of_a_look_goes_to_the_one_who_waits() -> None:
    waiting, one = Waiting(), queue()

    def failing(is_last: bool) -> None:
        raise ValueError("no such offset")

    future: asyncio.Future[None] = waiting.poll([one], HOUR_MS, failing)
    waiting.wake(one)
    with pytest.raises(ValueError, match="no such offset"):
        await future


async def test_a_stop_answers_every_poll_with_what_there_is_and_lets_nobody_wait() -> None:
    waiting, one = Waiting(), queue()
    pollers = [Poller(enough=100) for _ in range(3)]
    futures = [waiting.poll([one, queue()], HOUR_MS, poller.look) for poller in pollers]
    waiting.finish()
    assert [await future for future in futures] == [1, 1, 1]
    assert await waiting.poll([one], HOUR_MS, Poller(enough=100).look) == 1
    assert len(waiting) == 0
