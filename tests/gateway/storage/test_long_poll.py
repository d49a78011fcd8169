import asyncio

import pytest
from tests.gateway.fakes import HandClock

from rockgate.gateway.storage import long_poll as waiting_module
from rockgate.gateway.storage.long_poll import LOOKS_PER_TURN, PollRegistry
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.testing.memory_files import MemoryDisk


class Counter:
    """A poll that is satisfied once it was asked a number of times."""

    def __init__(self, enough: int = 1_000_000) -> None:
        self.enough = enough
        self.looks: list[bool] = []

    def look(self, is_last: bool) -> str | None:
        self.looks.append(is_last)
        return "told" if is_last or len(self.looks) >= self.enough else None


class Noted:
    def __init__(self) -> None:
        self.count = 0

    def noted(self) -> None:
        self.count += 1


@pytest.fixture
def queues() -> list[Queue]:
    table = QueueTable(MemoryDisk().root(), 1 << 20)
    return list(table.create(b"orders", b"o" * 16, 3)) + list(table.create(b"bills", b"b" * 16, 1))


def add(queue: Queue, position: int) -> None:
    queue.add(position, 100, 1, 0, 0)


async def turn() -> None:
    await asyncio.sleep(0)


@pytest.mark.row("H-04", "I-03")
async def test_an_append_wakes_those_who_wait_on_its_queue_and_no_others(
    queues: list[Queue],
) -> None:
    registry, orders, bills = PollRegistry(HandClock()), Counter(1), Counter(1)
    told = registry.poll(queues[:2], 1000, orders.look)
    other = registry.poll(queues[3:], 1000, bills.look)
    registry.wake(queues[1])
    assert not told.done()
    await turn()
    assert told.result() == "told" and not other.done()
    assert bills.looks == []
    other.cancel()


async def test_a_burst_of_appends_in_one_turn_costs_one_look(queues: list[Queue]) -> None:
    registry, counter = PollRegistry(HandClock()), Counter()
    told = registry.poll(queues, 1000, counter.look)
    for queue in queues * 5:
        registry.wake(queue)
    await turn()
    assert counter.looks == [False]
    registry.wake(queues[0])
    await turn()
    assert counter.looks == [False, False]
    told.cancel()


async def test_when_time_is_up_a_poll_takes_what_there_is(queues: list[Queue]) -> None:
    clock, counter = HandClock(), Counter()
    told = PollRegistry(clock).poll(queues, 500, counter.look)
    clock.advance(0.499)
    assert not told.done()
    clock.advance(0.001)
    assert told.result() == "told" and counter.looks == [True]


@pytest.mark.parametrize("ending", ["cancelled", "told", "failed", "late"])
async def test_however_a_poll_ends_nothing_of_it_is_left(ending: str, queues: list[Queue]) -> None:
    clock = HandClock()
    registry = PollRegistry(clock)

    def look(is_last: bool) -> str:
        if ending == "failed":
            raise ValueError("no")
        return "told"

    told = registry.poll(queues, 500, look)
    assert registry.queue_count == 4 and len(clock.timers) == 1 and len(registry) == 1
    if ending == "cancelled":
        told.cancel()
    elif ending == "late":
        clock.advance(1)
    else:
        registry.wake(queues[0])
    await turn()
    await turn()
    assert registry.queue_count == 0 and clock.timers == [] and told.done()
    assert len(registry) == 0
    if ending == "failed":
        with pytest.raises(ValueError, match="no"):
            told.result()
    registry.wake(queues[0])
    await turn()


async def test_a_stop_answers_every_poll_with_what_there_is_and_lets_no_one_wait(
    queues: list[Queue],
) -> None:
    clock = HandClock()
    registry, counters = PollRegistry(clock), [Counter() for _ in range(3)]
    futures = [registry.poll(queues, 1000, counter.look) for counter in counters]
    registry.finish()
    assert [future.result() for future in futures] == ["told"] * 3
    late = registry.poll(queues, 1000, Counter().look)
    clock.advance(0)
    assert late.result() == "told"
    await turn()
    assert len(registry) == 0


async def test_many_polls_on_one_queue_are_asked_over_several_turns(queues: list[Queue]) -> None:
    registry = PollRegistry(HandClock())
    told = [registry.poll(queues[:1], 1000, Counter(1).look) for _ in range(LOOKS_PER_TURN + 1)]
    registry.wake(queues[0])
    await turn()
    assert sum(each.done() for each in told) == LOOKS_PER_TURN
    await turn()
    assert all(each.done() for each in told)


def test_a_watcher_is_told_of_every_change_until_it_stops_watching(queues: list[Queue]) -> None:
    registry, noted = PollRegistry(HandClock()), Noted()
    registry.watch(queues[0], noted)
    registry.wake(queues[0])
    registry.wake(queues[1])
    registry.wake_changed(queues[0])
    assert noted.count == 2
    registry.unwatch(queues[0], noted)
    registry.unwatch(queues[0], noted)
    registry.wake(queues[0])
    assert noted.count == 2 and registry.queue_count == 0


def test_a_sync_queue_has_news_after_the_flush_that_covers_its_last_append(
    queues: list[Queue],
) -> None:
    registry, noted = PollRegistry(HandClock()), Noted()
    queue = queues[0]
    queue.is_sync = True
    add(queue, 0)
    registry.wake(queue)
    # A waiter that registers between the append and its flush is notified as well.
    registry.watch(queue, noted)
    assert noted.count == 0
    add(queue, 100)
    registry.wake(queue)
    registry.wake_flushed(100)
    assert noted.count == 1
    registry.wake_flushed(200)
    assert noted.count == 2
    registry.wake_flushed(300)
    assert noted.count == 2


def test_a_topic_that_goes_is_told_to_all_who_watch_one_of_its_queues(queues: list[Queue]) -> None:
    registry, orders, bills = PollRegistry(HandClock()), Noted(), Noted()
    registry.watch(queues[0], orders)
    registry.watch(queues[2], orders)
    registry.watch(queues[3], bills)
    registry.wake_topic(b"o" * 16)
    registry.wake_topic(b"x" * 16)
    assert (orders.count, bills.count) == (2, 0)


async def test_polls_that_have_much_to_look_at_are_asked_over_several_turns(
    queues: list[Queue], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_module, "SECONDS_PER_TURN", 0.0)
    registry, counters = PollRegistry(HandClock()), [Counter() for _ in range(3)]
    polls = [registry.poll(queues[:1], 1000, counter.look) for counter in counters]
    registry.wake(queues[0])
    for asked in range(1, 4):
        await turn()
        assert [len(counter.looks) for counter in counters] == [1] * asked + [0] * (3 - asked)
    for poll in polls:
        poll.cancel()


async def test_an_append_costs_the_same_however_many_wait(queues: list[Queue]) -> None:
    registry, counters = PollRegistry(HandClock()), [Counter(1) for _ in range(3 * LOOKS_PER_TURN)]
    polls = [registry.poll(queues[:1], 1000, counter.look) for counter in counters]
    for _ in range(5):
        registry.wake(queues[0])
    assert not any(counter.looks for counter in counters), "nobody is asked by the append itself"
    assert len(registry._woken) == 0, "nor noted one by one"
    for _ in range(4):
        await turn()
    assert all(poll.done() for poll in polls)
    assert all(len(counter.looks) == 1 for counter in counters)
    assert registry.queue_count == 0
