"""Fetch sessions: the table of docs/internals/fetch.md row by row, news, and eviction."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from tests.gateway.kafka.fetcher import MIB, ONE, Answer, Asked, Fetcher, Key
from tests.gateway.kafka.world import KafkaWorld

from rockgate.gateway.kafka.fetch import sessions
from rockgate.gateway.kafka.fetch.partitions import Read
from rockgate.gateway.kafka.fetch.session import FetchSession, Wanted
from rockgate.gateway.kafka.fetch.sessions import EPOCH_MAX, EVICTION_MS
from rockgate.gateway.kafka.handlers import fetch
from rockgate.gateway.kafka.request import chunked
from rockgate.protocol.kafka.errors import ErrorCode

NOT_FOUND = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
BAD_EPOCH = ErrorCode.INVALID_FETCH_SESSION_EPOCH
NEW = (0, 0)


def keys(count: int, name: str = "orders") -> list[Key]:
    return [(name, index) for index in range(count)]


def world_of(partitions: int = 3) -> KafkaWorld:
    world = KafkaWorld()
    world.topic(partitions=partitions)
    return world


def opened(fetcher: Fetcher, partitions: int = 3) -> int:
    """Open a session over all partitions, which are empty, and return its id."""
    answer = fetcher.fetch({key: Asked() for key in keys(partitions)}, session=NEW)
    assert answer.error_code == 0 and len(answer.partitions) == partitions
    return answer.session_id


async def turns() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


# Opening, continuing, closing


def test_a_first_fetch_opens_a_session_and_the_next_tells_only_news() -> None:
    world = world_of()
    fetcher = Fetcher(world)
    session = opened(fetcher)
    assert session > 0
    assert fetcher.fetch(session=(session, 1)).partitions == {}
    world.append(partition=1)
    answer = fetcher.fetch(session=(session, 2))
    assert answer.offsets(partition=1) == [0] and list(answer.partitions) == [("orders", 1)]
    assert answer.session_id == session


def test_versions_before_sessions_never_get_one() -> None:
    fetcher = Fetcher(world_of(), version=6)
    fetcher.fetch({ONE: Asked()})
    assert len(fetcher.sessions) == 0


@pytest.mark.parametrize(
    ("session", "code"),
    [
        ((100, 0), 0),
        ((100, 1), 0),
        ((100, 2), BAD_EPOCH),
        ((100, -2), BAD_EPOCH),
        ((100, EPOCH_MAX), BAD_EPOCH),
        ((99, 1), NOT_FOUND),
        ((0, 1), NOT_FOUND),
        ((99, 0), 0),
        ((99, -1), 0),
    ],
)
def test_a_request_must_name_a_session_and_its_next_epoch(
    session: tuple[int, int], code: int
) -> None:
    fetcher = Fetcher(world_of())
    assert opened(fetcher) == 100
    answer = fetcher.fetch({ONE: Asked()}, session=session)
    assert answer.error_code == code
    if code:
        assert answer.session_id == 0 and answer.partitions == {}


def test_an_error_leaves_the_session_as_it_was() -> None:
    fetcher = Fetcher(world_of())
    session = opened(fetcher)
    assert fetcher.fetch(session=(session, 7)).error_code == BAD_EPOCH
    assert fetcher.fetch(session=(session, 1)).error_code == 0


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_fetch_closes_the_session_it_names(epoch: int) -> None:
    fetcher = Fetcher(world_of())
    session = opened(fetcher)
    answer = fetcher.fetch({ONE: Asked()}, session=(session, epoch))
    assert list(answer.partitions) == [ONE]
    assert (answer.session_id == 0) == (epoch == -1)
    assert len(fetcher.sessions) == (1 if epoch == 0 else 0)
    assert fetcher.fetch(session=(session, 1)).error_code == NOT_FOUND
    assert fetcher.world.poll_registry.queue_count == (1 if epoch == 0 else 0)


@pytest.mark.parametrize(("first", "then"), [(12, 13), (13, 12)])
def test_a_session_does_not_mix_names_and_ids(first: int, then: int) -> None:
    fetcher = Fetcher(world_of(), version=first)
    session = opened(fetcher)
    fetcher.version = then
    answer = fetcher.fetch(session=(session, 1))
    assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_epochs_begin_again_at_one_after_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert EPOCH_MAX == 2**31 - 1
    monkeypatch.setattr(sessions, "EPOCH_MAX", 3)
    fetcher = Fetcher(world_of())
    session = opened(fetcher)
    for epoch in (1, 2, 3, 1):
        assert fetcher.fetch(session=(session, epoch)).error_code == 0
    assert fetcher.fetch(session=(session, 3)).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_partitions_are_added_changed_and_forgotten() -> None:
    world = world_of()
    for partition in range(3):
        for _ in range(2):
            world.append(partition=partition)
    fetcher = Fetcher(world)
    session = fetcher.fetch({ONE: Asked(2)}, session=NEW).session_id
    added = fetcher.fetch({("orders", 1): Asked(2), ("orders", 2): Asked(2)}, session=(session, 1))
    assert added.sizes == {("orders", 1): 0, ("orders", 2): 0}
    changed = fetcher.fetch({ONE: Asked(1)}, session=(session, 2))
    assert changed.offsets() == [1] and list(changed.partitions) == [ONE]
    gone = fetcher.fetch({ONE: Asked(2)}, session=(session, 3), forget=[("orders", 1), ("x", 9)])
    assert gone.partitions == {}
    world.append(partition=1)
    world.append(partition=2)
    assert list(fetcher.fetch(session=(session, 4)).partitions) == [("orders", 2)]
    assert world.poll_registry.queue_count == 2 and fetcher.sessions.partition_count == 2


def test_a_session_that_forgets_its_last_partition_is_closed() -> None:
    fetcher = Fetcher(world_of())
    session = opened(fetcher)
    answer = fetcher.fetch(session=(session, 1), forget=keys(3), wait_ms=500)
    assert (answer.session_id, answer.error_code, answer.partitions) == (0, 0, {})
    assert fetcher.fetch(session=(session, 2)).error_code == NOT_FOUND
    assert fetcher.world.poll_registry.queue_count == 0


# News


def test_records_that_were_not_asked_past_are_sent_again() -> None:
    world = world_of()
    fetcher = Fetcher(world)
    session = opened(fetcher)
    world.append()
    for epoch in (1, 2):
        assert fetcher.fetch(session=(session, epoch)).offsets() == [0]
    assert fetcher.fetch({ONE: Asked(1)}, session=(session, 3)).partitions == {}
    assert fetcher.fetch(session=(session, 4)).partitions == {}


def test_a_log_start_that_moved_is_news() -> None:
    world = world_of()
    for _ in range(3):
        world.append()
    fetcher = Fetcher(world)
    session = fetcher.fetch({ONE: Asked(3)}, session=NEW).session_id
    world.delete_records(2)
    answer = fetcher.fetch(session=(session, 1))
    assert answer.partitions[ONE].log_start_offset == 2 and answer.sizes == {ONE: 0}
    assert fetcher.fetch(session=(session, 2)).partitions == {}


def test_a_high_watermark_that_moved_is_news_without_records_too() -> None:
    world = world_of()
    fetcher = Fetcher(world)
    session = opened(fetcher)
    world.append()
    # The client is at the end already: it has seen the record elsewhere.
    answer = fetcher.fetch({ONE: Asked(1)}, session=(session, 1))
    assert answer.partitions[ONE].high_watermark == 1 and answer.sizes == {ONE: 0}
    assert fetcher.fetch(session=(session, 2)).partitions == {}


def test_an_error_is_reported_in_every_answer_and_its_end_once() -> None:
    world = world_of()
    fetcher = Fetcher(world)
    session = fetcher.fetch({ONE: Asked(5)}, session=NEW).session_id
    for epoch in (1, 2):
        answer = fetcher.fetch(session=(session, epoch))
        assert answer.errors == {ONE: ErrorCode.OFFSET_OUT_OF_RANGE}
    answer = fetcher.fetch({ONE: Asked(0)}, session=(session, 3))
    assert answer.errors == {ONE: 0} and answer.sizes == {ONE: 0}
    assert fetcher.fetch(session=(session, 4)).partitions == {}


def test_by_name_a_topic_that_is_created_again_is_read_on() -> None:
    world = world_of(1)
    fetcher = Fetcher(world)
    session = opened(fetcher, 1)
    world.store.topics.delete([world.store.topics.get("orders")])
    gone = fetcher.fetch(session=(session, 1))
    assert gone.errors == {ONE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    world.topic()
    assert fetcher.fetch(session=(session, 2)).errors == {ONE: 0}
    world.append()
    assert fetcher.fetch(session=(session, 3)).offsets() == [0]
    assert world.poll_registry.queue_count == 1


def test_by_id_a_topic_that_went_and_one_that_was_created_again_are_distinguished() -> None:
    world = world_of(1)
    fetcher = Fetcher(world, version=13)
    session = opened(fetcher, 1)
    world.store.topics.delete([world.store.topics.get("orders")])
    gone = fetcher.fetch(session=(session, 1))
    assert list(gone.errors.values()) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    world.topic()
    again = fetcher.fetch(session=(session, 2))
    assert list(again.errors.values()) == [ErrorCode.INCONSISTENT_TOPIC_ID]
    assert world.poll_registry.queue_count == 0


def test_a_busy_partition_does_not_starve_the_others() -> None:
    world = world_of(4)
    for key in keys(4):
        for _ in range(10):
            world.append(partition=key[1])
    fetcher = Fetcher(world)
    first = fetcher.fetch({key: Asked() for key in keys(4)}, session=NEW, max_bytes=1)
    session = first.session_id
    assert [key for key, size in first.sizes.items() if size] == [ONE]
    turn = []
    for epoch in range(1, 9):
        # The client asks on for what it got, as clients do.
        answer = fetcher.fetch(session=(session, epoch), max_bytes=1)
        turn += [key[1] for key, size in answer.sizes.items() if size]
    assert turn == [1, 2, 3, 0, 1, 2, 3, 0]


# Waiting


async def test_a_poll_of_a_session_waits_and_its_answer_has_the_news_alone() -> None:
    world = world_of()
    fetcher = Fetcher(world)
    session = opened(fetcher)
    future = fetcher.waiting({}, session=(session, 1), wait_ms=500)
    await turns()
    assert not future.done()
    world.append(partition=2)
    await turns()
    answer = Answer(fetcher, future.result())
    assert list(answer.partitions) == [("orders", 2)] and answer.session_id == session
    # The session continues to watch.
    assert world.poll_registry.queue_count == 3 and len(world.poll_registry) == 0


async def test_a_full_fetch_that_waits_opens_its_session_when_it_is_answered() -> None:
    world = world_of()
    fetcher = Fetcher(world)
    future = fetcher.waiting({key: Asked() for key in keys(3)}, session=NEW, wait_ms=500)
    assert len(fetcher.sessions) == 0
    world.hand.advance(0.5)
    answer = Answer(fetcher, future.result())
    assert len(answer.partitions) == 3 and len(fetcher.sessions) == 1
    world.append()
    assert fetcher.fetch(session=(answer.session_id, 1)).offsets() == [0]


async def test_a_full_fetch_whose_client_goes_leaves_no_session() -> None:
    fetcher = Fetcher(world_of())
    future = fetcher.waiting({ONE: Asked()}, session=NEW, wait_ms=500)
    future.cancel()
    await turns()
    assert len(fetcher.sessions) == 0 and fetcher.world.poll_registry.queue_count == 0


async def test_a_second_request_ends_the_one_that_waits() -> None:
    world = world_of()
    fetcher = Fetcher(world)
    session = opened(fetcher)
    first = fetcher.waiting({}, session=(session, 1), wait_ms=500)
    second = fetcher.waiting({}, session=(session, 2), wait_ms=500)
    await turns()
    answer = Answer(fetcher, first.result())
    assert (answer.error_code, answer.session_id) == (BAD_EPOCH, session)
    world.append()
    await turns()
    assert Answer(fetcher, second.result()).offsets() == [0]


@pytest.mark.parametrize("epoch", [0, -1])
async def test_a_session_that_is_closed_ends_the_request_that_waits_without_news(
    epoch: int,
) -> None:
    world = world_of()
    fetcher = Fetcher(world)
    session = opened(fetcher)
    future = fetcher.waiting({ONE: Asked()}, session=(session, 1), wait_ms=500)
    fetcher.fetch(session=(session, epoch))
    await turns()
    answer = Answer(fetcher, future.result())
    assert (answer.error_code, answer.session_id, answer.partitions) == (0, 0, {})


async def test_what_happened_between_two_polls_is_found_by_the_second() -> None:
    world = world_of()
    fetcher = Fetcher(world)
    session = opened(fetcher)
    future = fetcher.waiting({}, session=(session, 1), wait_ms=500)
    future.cancel()
    await turns()
    world.append(partition=1)
    assert fetcher.fetch(session=(session, 2), wait_ms=500).offsets(partition=1) == [0]


# Cost


class Reads:
    """Counts the partitions that are read."""

    def __init__(self, world: KafkaWorld) -> None:
        self.count = 0
        self._read = world.partitions.read
        world.partitions.read = self.read  # type: ignore[method-assign, assignment]  # counted

    def read(self, *arguments: Any) -> Read:
        self.count += 1
        return self._read(*arguments)

    def take(self) -> int:
        taken, self.count = self.count, 0
        return taken


async def test_a_poll_of_ten_thousand_partitions_costs_what_changed() -> None:
    world = world_of(10_000)
    reads = Reads(world)
    fetcher = Fetcher(world)
    opening = fetcher.waiting({key: Asked() for key in keys(10_000)}, session=NEW)
    session = Answer(fetcher, await opening).session_id
    assert session and reads.take() == 10_000
    for epoch in range(1, 4):
        assert fetcher.fetch(session=(session, epoch)).partitions == {}
    assert reads.take() == 0

    future = fetcher.waiting({}, session=(session, 4), wait_ms=500)
    await turns()
    assert reads.take() == 0
    for partition in (17, 4711, 17):
        world.append(partition=partition)
    await turns()
    answer = Answer(fetcher, future.result())
    assert sorted(answer.partitions) == [("orders", 17), ("orders", 4711)]
    assert reads.take() == 2

    asked = {("orders", 17): Asked(2), ("orders", 4711): Asked(1)}
    assert fetcher.fetch(asked, session=(session, 5)).partitions == {}
    assert reads.take() == 2
    assert fetcher.fetch(session=(session, 6)).partitions == {}
    assert reads.take() == 0


async def test_one_who_waits_for_many_bytes_looks_only_at_what_is_new() -> None:
    world = world_of(100)
    for partition in range(100):
        world.append(partition=partition)
    reads = Reads(world)
    fetcher = Fetcher(world)
    future = fetcher.waiting({key: Asked() for key in keys(100)}, wait_ms=500, min_bytes=MIB)
    assert reads.take() == 100
    for partition in range(10):
        world.append(partition=partition)
        await turns()
    assert reads.take() == 10
    world.hand.advance(0.5)
    answer = Answer(fetcher, future.result())
    assert [len(answer.offsets(partition=index)) for index in (0, 9, 10, 99)] == [2, 2, 1, 1]
    assert reads.take() == 0


# Room


def full(fetcher: Fetcher, count: int, partitions: int = 2) -> list[int]:
    asked = {key: Asked() for key in keys(partitions)}
    return [fetcher.fetch(asked, session=NEW).session_id for _ in range(count)]


def test_without_room_a_client_gets_no_session_and_its_records_anyway() -> None:
    world = world_of()
    world.append()
    fetcher = Fetcher(world, sessions_max=2)
    assert all(full(fetcher, 2))
    answer = fetcher.fetch({ONE: Asked()}, session=NEW)
    assert answer.session_id == 0 and answer.offsets() == [0]
    assert world.poll_registry.queue_count == 2


def test_a_session_that_no_one_uses_makes_room() -> None:
    world = world_of()
    fetcher = Fetcher(world, sessions_max=2)
    first, second = full(fetcher, 2)
    world.clock.advance(EVICTION_MS)
    assert fetcher.fetch(session=(first, 1)).error_code == 0
    assert full(fetcher, 1) == [0]
    world.clock.advance(1)
    assert all(full(fetcher, 1, partitions=1))
    assert fetcher.fetch(session=(second, 1)).error_code == NOT_FOUND
    assert fetcher.fetch(session=(first, 2)).error_code == 0


def test_an_older_session_makes_room_for_one_of_more_partitions() -> None:
    world = world_of()
    fetcher = Fetcher(world, sessions_max=2)
    [small] = full(fetcher, 1, partitions=1)
    [large] = full(fetcher, 1, partitions=2)
    assert full(fetcher, 1, partitions=3) == [0]
    world.clock.advance(EVICTION_MS + 1)
    for session in (small, large):
        assert fetcher.fetch(session=(session, 1)).error_code == 0
    assert full(fetcher, 1, partitions=1) == [0]
    assert all(full(fetcher, 1, partitions=3))
    assert fetcher.fetch(session=(small, 2)).error_code == NOT_FOUND
    assert fetcher.fetch(session=(large, 2)).error_code == 0


def test_the_partitions_of_all_sessions_are_bounded() -> None:
    world = world_of(5)
    fetcher = Fetcher(world, partitions_max=4)
    assert full(fetcher, 1, partitions=5) == [0]
    [session] = full(fetcher, 1, partitions=3)
    assert session and full(fetcher, 1, partitions=2) == [0]
    grown = fetcher.fetch({key: Asked() for key in keys(5)}, session=(session, 1))
    assert grown.error_code == NOT_FOUND and grown.session_id == 0
    assert fetcher.sessions.partition_count == 0 and world.poll_registry.queue_count == 0


async def test_those_who_wait_without_a_session_take_room_too_and_give_it_back() -> None:
    world = world_of(5)
    fetcher = Fetcher(world, partitions_max=4)
    asked = {key: Asked() for key in keys(3)}
    future = fetcher.waiting(asked, wait_ms=500)
    assert fetcher.sessions.partition_count == 3
    # There is no room for two more: one is answered at once, and gets no session.
    assert (
        fetcher.fetch({key: Asked() for key in keys(2)}, wait_ms=500, session=NEW).session_id == 0
    )
    assert fetcher.fetch({ONE: Asked()}, session=NEW).session_id
    future.cancel()
    await turns()
    assert fetcher.sessions.partition_count == 1 and world.poll_registry.queue_count == 1


async def test_one_who_waited_and_is_kept_is_counted_once() -> None:
    world = world_of(5)
    fetcher = Fetcher(world, partitions_max=3)
    future = fetcher.waiting({key: Asked() for key in keys(3)}, session=NEW, wait_ms=500)
    world.append()
    await turns()
    assert Answer(fetcher, future.result()).session_id
    assert fetcher.sessions.partition_count == 3 and world.poll_registry.queue_count == 3


# Many partitions, in slices


@pytest.fixture
def slices_of_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "SLICE_COUNT", 10)


async def test_many_partitions_are_looked_at_in_slices(slices_of_ten: None) -> None:
    world = world_of(35)
    reads = Reads(world)
    fetcher = Fetcher(world)
    future = fetcher.waiting({key: Asked() for key in keys(35)}, session=NEW)
    taken = []
    while not future.done():
        await asyncio.sleep(0)
        taken.append(reads.take())
    assert [count for count in taken if count] == [10, 10, 10, 5]
    answer = Answer(fetcher, future.result())
    assert len(answer.partitions) == 35 and answer.session_id
    assert fetcher.fetch(session=(answer.session_id, 1)).partitions == {}


async def test_what_changes_between_two_slices_is_not_missed(slices_of_ten: None) -> None:
    world = world_of(35)
    fetcher = Fetcher(world)
    future = fetcher.waiting({key: Asked() for key in keys(35)}, session=NEW, wait_ms=500)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    world.append(partition=3)
    world.append(partition=33)
    await turns()
    await turns()
    answer = Answer(fetcher, future.result())
    told = [key[1] for key, size in answer.sizes.items() if size]
    assert sorted(told) == [3, 33]
    asked = {("orders", 3): Asked(1), ("orders", 33): Asked(1)}
    assert fetcher.fetch(asked, session=(answer.session_id, 1)).partitions == {}


async def test_many_partitions_are_taken_up_and_told_in_slices_too(
    slices_of_ten: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "PIECE_COUNT", 10)
    monkeypatch.setattr(chunked, "SLICE_SECONDS", 0.0)
    world = world_of(35)
    fetcher = Fetcher(world)
    taken: list[int] = []
    told: list[int] = []
    want_of, report = FetchSession.want_of, FetchSession.report

    def counting_want(self: FetchSession, topic: Any, asked: Any) -> None:
        taken.append(len(asked))
        want_of(self, topic, asked)

    def counting_tell(self: FetchSession, *given: Any) -> bool:
        told[-1] += 1
        return report(self, *given)

    monkeypatch.setattr(FetchSession, "want_of", counting_want)
    monkeypatch.setattr(FetchSession, "report", counting_tell)
    future = fetcher.waiting({key: Asked() for key in keys(35)}, session=NEW)
    at_a_time = []
    while not future.done():
        told.append(0)
        before = len(taken)
        await asyncio.sleep(0)
        at_a_time.append(sum(taken[before:]))
    assert sum(told) == 35 and max(told) == 10
    assert sum(taken) == 35 and max(at_a_time) <= 20
    session = Answer(fetcher, future.result()).session_id
    assert fetcher.sessions.partition_count == 35
    assert fetcher.fetch(session=(session, 1)).partitions == {}


async def test_what_changes_while_the_answer_is_put_together_is_news_with_the_next(
    slices_of_ten: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(35)
    fetcher = Fetcher(world)
    future = fetcher.waiting({key: Asked() for key in keys(35)}, session=NEW)
    keep = fetcher.sessions.keep

    def keep_and_write(session: FetchSession) -> None:
        keep(session)
        world.append(partition=3)
        world.append(partition=33)

    monkeypatch.setattr(fetcher.sessions, "keep", keep_and_write)
    await asyncio.wait([future])
    answer = Answer(fetcher, future.result())
    assert len(answer.partitions) == 35 and not any(answer.sizes.values())
    news = fetcher.fetch(session=(answer.session_id, 1))
    assert sorted(key[1] for key, size in news.sizes.items() if size) == [3, 33]


async def test_a_session_of_many_partitions_that_is_closed_while_it_grows_is_not_found(
    slices_of_ten: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "PIECE_COUNT", 10)
    monkeypatch.setattr(chunked, "SLICE_SECONDS", 0.0)
    world = world_of(35)
    fetcher = Fetcher(world)
    session = opened(fetcher, 1)
    growing = fetcher.waiting({key: Asked() for key in keys(35)}, session=(session, 1))
    await asyncio.sleep(0)
    fetcher.sessions.close(session)
    await asyncio.wait([growing])
    assert Answer(fetcher, growing.result()).error_code == NOT_FOUND
    assert fetcher.sessions.partition_count == 0 and world.poll_registry.queue_count == 0


async def test_a_session_that_continues_elsewhere_while_it_grows_has_another_epoch(
    slices_of_ten: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "PIECE_COUNT", 10)
    monkeypatch.setattr(chunked, "SLICE_SECONDS", 0.0)
    world = world_of(35)
    fetcher = Fetcher(world)
    session = opened(fetcher, 1)
    growing = fetcher.waiting({key: Asked() for key in keys(35)}, session=(session, 1))
    await asyncio.sleep(0)
    assert fetcher.fetch({ONE: Asked()}, session=(session, 2)).error_code == 0
    await asyncio.wait([growing])
    assert Answer(fetcher, growing.result()).error_code == BAD_EPOCH


def test_what_no_one_has_any_more_is_gone_without_the_garbage_collector() -> None:
    world = world_of(3)
    fetcher = Fetcher(world)
    session = opened(fetcher, 3)
    found = {
        found
        for each in gc.get_objects()
        if isinstance(each, Wanted) and (found := each.session()) is not None
    }
    [gone] = [weakref.ref(each) for each in found if each.id == session]
    gc.disable()
    try:
        found.clear()
        fetcher.sessions.close(session)
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("wait_ms", [0, 500])
async def test_many_partitions_without_a_session_leave_nothing_behind(
    slices_of_ten: None, wait_ms: int
) -> None:
    world = world_of(35)
    fetcher = Fetcher(world)
    asked = {key: Asked() for key in keys(35)}
    future = fetcher.waiting(asked, wait_ms=wait_ms)
    for _ in range(4):
        await turns()
    world.hand.advance(1)
    # What was found is put together in slices as well.
    await turns()
    await turns()
    assert len(Answer(fetcher, future.result()).partitions) == 35
    gone = fetcher.waiting(asked, wait_ms=wait_ms)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gone.cancel()
    await turns()
    assert world.poll_registry.queue_count == 0 and len(world.poll_registry) == 0
    assert fetcher.sessions.partition_count == 0 and world.hand.timers == []


@pytest.mark.parametrize("ending", ["next", "closed"])
async def test_a_session_that_continues_or_ends_while_it_is_looked_at(
    slices_of_ten: None, ending: str
) -> None:
    world = world_of(35)
    fetcher = Fetcher(world)
    opening = fetcher.waiting({key: Asked() for key in keys(35)}, session=NEW)
    for _ in range(4):
        await turns()
    session = opening.result().session_id
    for partition in range(35):
        world.append(partition=partition)
    first = fetcher.waiting({}, session=(session, 1), wait_ms=500)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if ending == "next":
        second = fetcher.fetch(session=(session, 2), forget=keys(34))
        assert second.offsets(partition=34) == [0]
        await turns()
        await turns()
        answer = Answer(fetcher, first.result())
        assert (answer.error_code, answer.session_id) == (BAD_EPOCH, session)
        assert world.poll_registry.queue_count == 1
    else:
        fetcher.sessions.close(session)
        await turns()
        await turns()
        answer = Answer(fetcher, first.result())
        assert (answer.error_code, answer.session_id) == (0, 0) and len(answer.partitions) == 35
        assert world.poll_registry.queue_count == 0
    assert fetcher.sessions.partition_count == (1 if ending == "next" else 0)


def test_by_id_a_partition_that_is_asked_for_after_its_topic_went_has_an_unknown_id() -> None:
    """Whatever the session knows of the id by other partitions; as Apache Kafka answers."""
    world = world_of(2)
    fetcher = Fetcher(world, version=13)
    session = opened(fetcher, 1)
    topic = world.store.topics.get("orders")
    world.store.topics.delete([topic])

    def told(epoch: int, *asked: Key) -> list[int]:
        found = {key: Asked(topic_id=topic.id) for key in asked}
        answer = fetcher.fetch(found, session=(session, epoch)).response
        return [each.error_code for each in answer.responses[0].partitions]

    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    assert told(1, ("orders", 1)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, unknown]
    world.topic()
    assert told(2) == [ErrorCode.INCONSISTENT_TOPIC_ID, unknown]
