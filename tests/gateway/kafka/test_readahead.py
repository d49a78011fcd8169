"""Runs of messages that are made before they are asked for."""

from __future__ import annotations

import pytest
from tests.gateway.kafka.fetcher import MIB, ONE, Asked, Fetcher
from tests.gateway.kafka.world import World

from rockgate.gateway.kafka.readahead import KEPT_MS, PLANNED_MAX, ReadAhead, Run
from rockgate.store.bodies import MESSAGES_MAX
from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.consumequeue import Queue
from rockgate.store.errors import StoreCorrupt
from rockgate.store.queueruns import Indexes

WIDE = StoreConfig(segment_bytes=1 << 24, populate_ahead_bytes=1 << 16, key_index=False)
QUEUE = Queue(b"orders", bytes(16), 0, Indexes())
NONE = Run([], 0, 0)


def filled(count: int) -> World:
    world = World(WIDE)
    world.topic()
    contents = [(0, b"body-%d" % number, b"KEYS\x01k\x02") for number in range(count)]
    for at in range(0, count, 100):
        world.store.appender.messages(world.queue(), contents[at : at + 100], born_ms=at)
    return world


def do_planned(world: World) -> None:
    planned, world.planned = list(world.planned), []
    world.ahead._later = world.planned.append
    for work in planned:
        work()


def test_what_was_made_ahead_is_what_would_have_been_made() -> None:
    world, other = filled(3 * MESSAGES_MAX), filled(3 * MESSAGES_MAX)
    reader, plain = Fetcher(world), Fetcher(other)
    seen: list[int] = []
    for number in range(3):
        asked = {ONE: Asked(number * MESSAGES_MAX)}
        was_ready = world.ahead.size > 0
        answer = reader.fetch(asked)
        assert answer.partitions[ONE].records == plain.fetch(asked).partitions[ONE].records
        assert was_ready == (number > 0)
        seen += answer.offsets()
        do_planned(world)
    assert seen == list(range(3 * MESSAGES_MAX))
    assert (world.ahead.size, world.planned) == (0, [])


def test_nothing_is_made_for_a_reader_at_the_end_nor_for_one_that_wants_little() -> None:
    world = filled(MESSAGES_MAX)
    Fetcher(world).fetch({ONE: Asked()})
    Fetcher(world).fetch({ONE: Asked(size_max=MIB // 2)})
    assert world.planned == []


def test_a_run_is_made_once_however_many_read_before_it() -> None:
    world = filled(3 * MESSAGES_MAX)
    for _ in range(5):
        Fetcher(world).fetch({ONE: Asked()})
    assert len(world.planned) == 1


def test_what_was_appended_meanwhile_comes_behind_it() -> None:
    world = filled(MESSAGES_MAX + 10)
    reader = Fetcher(world)
    reader.fetch({ONE: Asked()})
    do_planned(world)
    world.message()
    assert reader.fetch({ONE: Asked(MESSAGES_MAX)}).offsets() == list(
        range(MESSAGES_MAX, MESSAGES_MAX + 10)
    )
    assert reader.fetch({ONE: Asked(MESSAGES_MAX + 10)}).offsets() == [MESSAGES_MAX + 10]


def test_a_batch_of_kafka_s_behind_the_run_is_not_made_ahead() -> None:
    world = filled(MESSAGES_MAX)
    world.append()
    reader = Fetcher(world)
    reader.fetch({ONE: Asked()})
    do_planned(world)
    assert world.ahead.size == 0
    assert reader.fetch({ONE: Asked(MESSAGES_MAX)}).offsets() == [MESSAGES_MAX]


# The keeping alone


class Ahead:
    """What is made ahead, when a test says so."""

    def __init__(self, bytes_max: int = 100) -> None:
        self.clock = ManualClock()
        self.kept = ReadAhead(self.clock, lambda work: work(), bytes_max=bytes_max)

    def make(self, offset: int, size: int = 60) -> None:
        self.kept.plan(QUEUE, offset, lambda: Run([bytes(size)], size, offset + 10))


@pytest.mark.parametrize(("end", "size_max"), [(9, 1000), (1000, 59)])
def test_a_run_that_passes_the_end_or_the_size_that_are_asked_for_is_not_given(
    end: int, size_max: int
) -> None:
    ahead = Ahead()
    ahead.make(0)
    assert ahead.kept.take(QUEUE, 0, end, size_max) is None
    ahead.make(0)
    assert ahead.kept.take(QUEUE, 0, 10, 60) == Run([bytes(60)], 60, 10)
    assert ahead.kept.size == 0


def test_runs_that_nobody_comes_for_make_room_after_a_while() -> None:
    ahead = Ahead()
    for offset in (0, 10, 20):
        ahead.make(offset)
    assert ahead.kept.size == 120
    assert ahead.kept.take(QUEUE, 20, 1000, 1000) is None
    ahead.clock.advance(KEPT_MS)
    ahead.make(20)
    assert ahead.kept.take(QUEUE, 0, 1000, 1000) is None
    assert ahead.kept.take(QUEUE, 20, 1000, 1000) is not None


def test_so_many_runs_wait_to_be_made_and_no_more() -> None:
    planned: list[object] = []
    kept = ReadAhead(ManualClock(), planned.append)
    for offset in range(2 * PLANNED_MAX):
        kept.plan(QUEUE, offset, lambda: NONE)
    assert len(planned) == PLANNED_MAX


def test_what_cannot_be_read_is_left_for_whoever_asks() -> None:
    ahead = Ahead()

    def make() -> Run:
        raise StoreCorrupt("the index", 0, "damaged")

    ahead.kept.plan(QUEUE, 0, make)
    assert ahead.kept.take(QUEUE, 0, 1000, 1000) is None
