"""The rules of a whole Fetch: limits, order, waiting, topics. Sessions have their own module."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from tests.gateway.kafka.fetcher import MIB, ONE, Answer, Asked, Fetcher
from tests.gateway.kafka.world import KafkaWorld
from tests.waiting import until
from tests.world import CONFIG

from rockgate.gateway.kafka.fetch import partitions
from rockgate.protocol.kafka.api import APIS, ApiKey
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.config import StoreConfig
from rockgate.store.store import Store

SERVED = APIS[ApiKey.FETCH].versions
VERSIONS = range(SERVED.min, SERVED.max + 1)
OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def size_of(world: KafkaWorld, name: str = "orders", partition: int = 0) -> int:
    """Bytes of a partition's first batch."""
    queue = world.queue(name, partition)
    return len(
        world.store.reader.batches(queue, 0, 1 << 62, 0, at_least_one=True, cold=None).bodies[0]
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_batches_come_back_as_they_were_appended_in_every_version(version: int) -> None:
    world = KafkaWorld()
    world.topic()
    for _ in range(3):
        world.append(times=[1, 2])
    answer = Fetcher(world, version).fetch({ONE: Asked(2)})
    found = answer.partitions[ONE]
    assert answer.offsets() == [2, 3, 4, 5]
    assert (found.error_code, found.high_watermark, found.last_stable_offset) == (0, 6, 6)
    assert found.log_start_offset == (0 if version >= 5 else -1)
    assert found.aborted_transactions is None
    assert answer.session_id == 0


def test_records_are_slices_of_the_log_and_not_copies() -> None:
    world = KafkaWorld()
    world.topic()
    world.append(value=b"x" * 1000)
    answer = Fetcher(world).fetch({ONE: Asked()})
    segment = world.store.log.segment_at(0)
    assert segment is not None
    views = [each for each in answer.buffers if isinstance(each, memoryview)]
    assert [len(view) for view in views] == [size_of(world)]
    assert views[0].obj is segment.mapping.view.obj


def test_read_committed_names_aborted_transactions_of_which_there_are_none() -> None:
    world = KafkaWorld()
    world.topic()
    world.append()
    answer = Fetcher(world).fetch({ONE: Asked()}, isolation_level=1)
    assert answer.partitions[ONE].aborted_transactions == []
    assert answer.offsets() == [0]


# Limits


@pytest.mark.parametrize(
    ("max_sizes", "partition_sizes", "counts"),
    [
        # In batches, all of one size: the request's limit, each partition's, what is returned.
        (100, (100, 100, 100), (4, 4, 4)),
        (100, (2, 1, 3), (2, 1, 3)),
        (5, (100, 100, 100), (4, 1, 0)),
        (2.5, (100, 100, 100), (2, 0, 0)),
        (0.5, (100, 100, 100), (1, 0, 0)),
        (0, (100, 100, 100), (1, 0, 0)),
        (100, (0.5, 0.5, 0.5), (1, 0, 0)),
        (100, (0, 2, 0), (1, 2, 0)),
        (1, (0.5, 1, 1), (1, 0, 0)),
        (100, (-1, 100, 100), (1, 4, 4)),
        (-1, (100, 100, 100), (1, 0, 0)),
    ],
)
def test_limits_hold_for_all_but_the_first_batch(
    max_sizes: float, partition_sizes: tuple[float, ...], counts: tuple[int, ...]
) -> None:
    world = KafkaWorld()
    world.topic(partitions=3)
    for partition in range(3):
        for _ in range(4):
            world.append(partition=partition)
    size = size_of(world)
    asked = {
        ("orders", index): Asked(0, int(each * size)) for index, each in enumerate(partition_sizes)
    }
    answer = Fetcher(world).fetch(asked, max_bytes=int(max_sizes * size))
    assert answer.sizes == {("orders", index): count * size for index, count in enumerate(counts)}


def test_the_first_partition_that_has_any_may_pass_its_limit() -> None:
    world = KafkaWorld()
    world.topic(partitions=2)
    world.append(partition=1, value=b"x" * 5000)
    asked = {("orders", 0): Asked(0, 10), ("orders", 1): Asked(0, 10)}
    answer = Fetcher(world).fetch(asked, max_bytes=10)
    assert answer.offsets(partition=0) == [] and answer.offsets(partition=1) == [0]


def test_the_server_has_a_limit_of_its_own() -> None:
    world = KafkaWorld()
    world.topic()
    for _ in range(10):
        world.append()
    answer = Fetcher(world, bytes_max=3 * size_of(world)).fetch({ONE: Asked()})
    assert answer.offsets() == [0, 1, 2]


def test_an_answer_has_no_more_batches_than_may_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partitions, "BATCHES_MAX", 4)
    world = KafkaWorld()
    world.topic(partitions=3)
    for partition in range(3):
        for _ in range(3):
            world.append(partition=partition)
    asked = {("orders", index): Asked() for index in range(3)}
    # It does not wait for more either, although it has less than was asked for.
    answer = Fetcher(world).fetch(asked, wait_ms=1000, min_bytes=MIB)
    assert [len(answer.offsets(partition=index)) for index in range(3)] == [3, 3, 0]


# Topics


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_what_is_not_there_is_reported_without_records_or_bounds(version: int) -> None:
    world = KafkaWorld()
    world.topic()
    asked = {
        ("orders", 1): Asked(),
        ("orders", -1): Asked(),
        ("nothing", 0): Asked(topic_id=b"?" * 16),
    }
    answer = Fetcher(world, version).fetch(asked, wait_ms=1000)
    by_id = version >= 13
    missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else UNKNOWN
    assert answer.errors == {
        ("orders", 1): UNKNOWN,
        ("orders", -1): UNKNOWN,
        ("" if by_id else "nothing", 0): missing,
    }
    for found in answer.partitions.values():
        assert (found.high_watermark, found.last_stable_offset) == (-1, -1)
        assert found.log_start_offset == -1 and found.records == b""


def test_a_topic_that_readers_may_not_read_is_refused() -> None:
    world = KafkaWorld()
    topic = world.topic()
    world.append()
    world.store.topics.set_permission({topic: 2})
    answer = Fetcher(world).fetch({ONE: Asked()})
    assert answer.errors == {ONE: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert answer.partitions[ONE].records == b""


def test_a_retry_topic_answers_to_its_name_on_kafkas_side() -> None:
    world = KafkaWorld()
    world.topic("%RETRY%billing")
    world.append("%RETRY%billing")
    answer = Fetcher(world).fetch({("rmq.retry.billing", 0): Asked()})
    assert answer.offsets("rmq.retry.billing") == [0]


@pytest.mark.parametrize("version", [11, 16])
def test_a_follower_is_refused(version: int) -> None:
    world = KafkaWorld()
    world.topic()
    answer = Fetcher(world, version).fetch({ONE: Asked()}, replica_id=3)
    assert answer.errors == {ONE: ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_a_refusal_is_reported_for_each_partition_and_for_the_whole() -> None:
    world = KafkaWorld()
    world.topic(partitions=2)
    fetcher = Fetcher(world)
    request = fetcher.request({("orders", 0): Asked(), ("orders", 1): Asked()})
    refused = fetcher.handler.refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    answer = Answer(fetcher, refused)
    assert answer.error_code == -1 and set(answer.errors.values()) == {-1}


# Waiting


async def turns() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


async def test_a_fetch_that_finds_nothing_waits_for_an_append() -> None:
    world = KafkaWorld()
    world.topic(partitions=2)
    fetcher = Fetcher(world)
    asked = {("orders", 0): Asked(), ("orders", 1): Asked()}
    future = fetcher.waiting(asked, wait_ms=500)
    await turns()
    assert not future.done()
    world.append(partition=1)
    await turns()
    answer = Answer(fetcher, future.result())
    assert answer.offsets(partition=1) == [0]
    assert answer.partitions["orders", 0].records == b""
    assert (
        world.poll_registry.queue_count == 0
        and len(world.poll_registry) == 0
        and world.hand.timers == []
    )


async def test_a_fetch_takes_what_there_is_when_its_time_is_over() -> None:
    world = KafkaWorld()
    world.topic()
    world.append()
    fetcher = Fetcher(world)
    future = fetcher.waiting({ONE: Asked()}, wait_ms=500, min_bytes=10_000)
    await turns()
    world.hand.advance(0.499)
    assert not future.done()
    world.hand.advance(0.001)
    assert Answer(fetcher, future.result()).offsets() == [0]


async def test_bytes_of_all_partitions_count_together() -> None:
    world = KafkaWorld()
    world.topic(partitions=2)
    world.append(partition=0)
    size = size_of(world)
    fetcher = Fetcher(world)
    asked = {("orders", 0): Asked(), ("orders", 1): Asked()}
    future = fetcher.waiting(asked, wait_ms=500, min_bytes=3 * size)
    world.append(partition=1)
    await turns()
    assert not future.done()
    world.append(partition=0)
    await turns()
    answer = Answer(fetcher, future.result())
    assert answer.offsets(partition=0) == [0, 1] and answer.offsets(partition=1) == [0]


@pytest.mark.parametrize("more", [0, 1])
def test_min_bytes_never_asks_for_more_than_fits_max_bytes(more: int) -> None:
    world = KafkaWorld()
    world.topic()
    for _ in range(3):
        world.append()
    answer = Fetcher(world).fetch(
        {ONE: Asked()}, wait_ms=500, min_bytes=MIB, max_bytes=2 * size_of(world) + more
    )
    assert answer.offsets() == [0, 1]


@pytest.mark.parametrize("more", [0, 1])
def test_a_partition_whose_own_limit_is_reached_counts_with_all_of_it(more: int) -> None:
    world = KafkaWorld()
    world.topic()
    for _ in range(3):
        world.append()
    limit = 2 * size_of(world) + more
    answer = Fetcher(world).fetch({ONE: Asked(0, limit)}, wait_ms=500, min_bytes=limit)
    assert answer.offsets() == [0, 1]


@pytest.mark.parametrize(
    "options", [{"min_bytes": 0, "wait_ms": 500}, {"wait_ms": 0}, {"wait_ms": -1}]
)
def test_one_who_does_not_want_to_wait_is_answered_at_once(options: dict[str, int]) -> None:
    world = KafkaWorld()
    world.topic()
    assert Fetcher(world).fetch({ONE: Asked()}, **options).sizes == {ONE: 0}


def test_an_error_of_the_log_is_reported_at_once() -> None:
    world = KafkaWorld()
    world.topic(partitions=2)
    asked = {("orders", 0): Asked(5), ("orders", 1): Asked()}
    answer = Fetcher(world).fetch(asked, wait_ms=500)
    assert answer.errors == {("orders", 0): OUT_OF_RANGE, ("orders", 1): 0}


async def test_a_topic_that_is_not_there_does_not_end_the_wait_for_others() -> None:
    world = KafkaWorld()
    world.topic()
    fetcher = Fetcher(world)
    future = fetcher.waiting({ONE: Asked(), ("nothing", 0): Asked()}, wait_ms=500)
    await turns()
    assert not future.done()
    world.hand.advance(0.5)
    assert Answer(fetcher, future.result()).errors == {ONE: 0, ("nothing", 0): UNKNOWN}


async def test_a_topic_that_goes_while_someone_waits_is_reported() -> None:
    world = KafkaWorld()
    topic = world.topic()
    fetcher = Fetcher(world)
    future = fetcher.waiting({ONE: Asked()}, wait_ms=500)
    world.store.topics.delete([topic])
    await turns()
    assert Answer(fetcher, future.result()).errors == {ONE: UNKNOWN}


async def test_a_topic_that_goes_ends_the_wait_for_others_too() -> None:
    world = KafkaWorld()
    topic = world.topic("going")
    world.topic()
    fetcher = Fetcher(world)
    future = fetcher.waiting({ONE: Asked(), ("going", 0): Asked()}, wait_ms=500)
    world.store.topics.delete([topic])
    await turns()
    assert Answer(fetcher, future.result()).errors == {ONE: 0, ("going", 0): UNKNOWN}


async def test_a_log_start_that_passes_one_who_waits_is_reported() -> None:
    world = KafkaWorld()
    world.topic()
    world.append()
    fetcher = Fetcher(world)
    future = fetcher.waiting({ONE: Asked(0)}, wait_ms=500, min_bytes=MIB)
    world.delete_records(1)
    await turns()
    assert Answer(fetcher, future.result()).errors == {ONE: OUT_OF_RANGE}


async def test_a_lost_connection_ends_its_wait() -> None:
    world = KafkaWorld()
    world.topic()
    future = Fetcher(world).waiting({ONE: Asked()}, wait_ms=500)
    future.cancel()
    await turns()
    assert (
        world.poll_registry.queue_count == 0
        and len(world.poll_registry) == 0
        and world.hand.timers == []
    )


async def test_under_sync_nothing_is_shown_before_it_is_on_disk() -> None:
    world = KafkaWorld(StoreConfig(segment_bytes=1 << 20, flush="sync", key_index=False))
    world.topic()
    fetcher = Fetcher(world)
    world.append()
    before = fetcher.fetch({ONE: Asked()})
    assert before.offsets() == [] and before.partitions[ONE].high_watermark == 0
    # What is behind the high watermark will become visible: to request it is no error.
    assert fetcher.fetch({ONE: Asked(1)}).errors == {ONE: 0}
    future = fetcher.waiting({ONE: Asked()}, wait_ms=500)
    await turns()
    assert not future.done()
    world.append()
    world.store.flush()
    await turns()
    answer = Answer(fetcher, future.result())
    assert answer.offsets() == [0, 1] and answer.partitions[ONE].high_watermark == 2


# Cold reads


class Faulting:
    """Counts what is loaded."""

    def __init__(self, store: Store) -> None:
        self.chunks: list[int] = []
        self._fault_in = store.residency.fault_in
        store.residency.fault_in = self.fault_in  # type: ignore[method-assign]  # counted on the way

    def fault_in(self, chunks: Iterable[int]) -> None:
        self.chunks += chunks
        self._fault_in(chunks)


async def test_what_was_written_before_the_start_is_loaded_before_it_is_sent() -> None:
    world = KafkaWorld()
    world.topic()
    for _ in range(3):
        world.append(value=b"x" * 1000)
    world.reopen()
    faulting = Faulting(world.store)
    fetcher = Fetcher(world)
    future = fetcher.waiting({ONE: Asked()}, wait_ms=500)
    await until(future.done, "the cold read is answered")
    assert Answer(fetcher, future.result()).offsets() == [0, 1, 2]
    assert faulting.chunks == [0]
    # Now it is resident, and so is what is appended from now on.
    world.append()
    assert fetcher.fetch({ONE: Asked()}).offsets() == [0, 1, 2, 3]
    assert faulting.chunks == [0]


async def test_a_hot_read_never_waits_for_a_thread() -> None:
    world = KafkaWorld(CONFIG)
    world.topic()
    faulting = Faulting(world.store)
    for _ in range(100):
        world.append(value=b"x" * 1000)
    assert len(Fetcher(world).fetch({ONE: Asked()}).offsets()) == 100
    assert faulting.chunks == []


async def test_one_who_waits_behind_cold_data_for_more_of_it_gets_both() -> None:
    world = KafkaWorld()
    world.topic()
    world.append()
    world.reopen()
    fetcher = Fetcher(world)
    future = fetcher.waiting({ONE: Asked()}, wait_ms=500, min_bytes=size_of(world) + 1)
    await until(lambda: len(world.poll_registry) == 1, "the fetch waits")
    world.append()
    await until(future.done, "the fetch is answered")
    assert Answer(fetcher, future.result()).offsets() == [0, 1]
