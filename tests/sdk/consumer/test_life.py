"""The lifecycle of a consumer on a virtual clock: its states, and its callbacks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import timedelta

import pytest
from tests.sdk.consumer.memory_cluster import (
    BEGINNING,
    Heard,
    MemoryCluster,
    numbered,
)
from tests.sdk.memorynet import pass_time, run

from rockgate.sdk import (
    Closed,
    Consumer,
    ConsumerSettings,
    Model,
    NoRoute,
    Queue,
    Received,
)

# States


@pytest.mark.row("START-1")
def test_a_consumer_is_opened_from_its_first_state_only_and_says_which_it_is_in() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        async with cluster.client() as client:
            consumer = Consumer(client=client, group="g", topics=["t"])
            opening = asyncio.create_task(consumer.open())
            await asyncio.sleep(0)
            with pytest.raises(Closed, match=r"The consumer is being opened; .* only once"):
                await consumer.open()
            await opening
            with pytest.raises(Closed, match=r"The consumer is already open; .* only once"):
                await consumer.open()
            await consumer.close()
            with pytest.raises(Closed, match=r"The consumer is closed; .* only once"):
                await consumer.open()
            failing = Consumer(client=client, group="h", topics=["nowhere"])
            with pytest.raises(NoRoute):
                await failing.open()
            with pytest.raises(Closed, match=r"opening it failed; .* only once"):
                await failing.open()
            await failing.close()

    run(scenario())


@pytest.mark.row("START-9")
@pytest.mark.parametrize("is_orderly", [False, True])
def test_the_setting_picks_the_service_and_a_doubled_group_stops_it_and_can_be_retried(
    is_orderly: bool,
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 20))
        settings = replace(BEGINNING, is_orderly=is_orderly)
        async with cluster.client() as client:
            most = running = 0

            async def listen(_: Received) -> None:
                nonlocal most, running
                running += 1
                most = max(most, running)
                await pass_time(0.1)
                running -= 1

            heard = Heard(cluster, client, settings=settings)
            heard.before = listen
            other = Consumer(client=client, group="g", topics=["t"])
            await other.open()
            before = asyncio.all_tasks()
            with pytest.raises(ValueError, match="already has a consumer of group g"):
                await heard.consumer.open()
            assert asyncio.all_tasks() <= before
            await other.close()
            async with heard:
                await pass_time(3)
            assert heard.bodies == numbered(0, 20)
            assert most == (1 if is_orderly else 20)

    run(scenario())


@pytest.mark.row("PROP-7")
def test_order_is_a_setting_and_a_consumer_without_listeners_is_iterated_over() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, b"only")
        async with cluster.client() as client:
            for is_orderly in (False, True):
                settings = replace(BEGINNING, is_orderly=is_orderly)
                group = f"g{is_orderly:d}"
                async with Consumer(
                    client=client, group=group, topics=["t"], settings=settings
                ) as consumer:
                    assert (await anext(consumer)).body == b"only"
                assert bool(cluster.of(41)) is is_orderly
            with pytest.raises(ValueError, match="needs listeners"):
                await Consumer(client=client, group="g", topics=["t"]).run()

    run(scenario())


@pytest.mark.row("API-1")
@pytest.mark.parametrize("is_orderly", [False, True])
def test_everything_it_can_be_told_it_can_be_told_before_and_after_it_is_opened(
    is_orderly: bool,
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster.topics |= {"u", "v"}
        for topic in "tuv":
            cluster["a"].put(topic, 0, topic.encode())
        settings = replace(BEGINNING, is_orderly=is_orderly)
        async with cluster.client() as client:
            heard = Heard(cluster, client, settings=settings)
            consumer = heard.consumer
            await consumer.subscribe("u", listener=heard.listen)
            await consumer.subscribe("v", listener=heard.listen)
            await consumer.unsubscribe("v")
            consumer.resize(3)
            consumer.pause()
            async with heard:
                await pass_time(30)
                assert (heard.bodies, list(consumer.queues)) == ([], [])
                consumer.resume()
                await pass_time(2)
                assert sorted(heard.bodies) == [b"t", b"u"]
                await consumer.subscribe("v", listener=heard.listen)
                await pass_time(2)
                assert heard.bodies[2:] == [b"v"]
                await consumer.unsubscribe("u")
                consumer.resize(2)
                consumer.pause("t")
                await pass_time(20)
                for topic in "tuv":
                    cluster["a"].put(topic, 0, topic.encode() + b"1")
                await pass_time(20)
                # The pull of t that was held when it was paused has brought its message.
                assert sorted(heard.bodies[3:]) == [b"v1"]
                consumer.resume("t")
                await pass_time(2)
                assert heard.bodies[4:] == [b"t1"]
            with pytest.raises(Closed, match="The consumer is closed"):
                consumer.pause()
            with pytest.raises(Closed, match="The consumer is closed"):
                consumer.resume()
            with pytest.raises(Closed, match="The consumer is closed"):
                consumer.resize(1)
            with pytest.raises(Closed, match="The consumer is closed"):
                await consumer.subscribe("u", listener=heard.listen)

    run(scenario())


@pytest.mark.row("API-2", "TRAP-11")
def test_a_message_is_sent_back_with_a_level_and_all_queues_of_a_topic_are_listed() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2, "b": 1})
        cluster["b"].put("t", 0, b"x")
        async with cluster.client() as client:
            heard = Heard(cluster, client)
            heard.before = lambda message: message.retry(after=timedelta(seconds=30))
            # Another member, so that not all of them are this one's.
            async with heard, cluster.client("two") as other, Heard(cluster, other):
                await pass_time(40)
                everything = [Queue("t", "a", 0), Queue("t", "a", 1), Queue("t", "b", 0)]
                assert await heard.consumer.queues_of("t") == everything
                assert not set(everything) <= set(heard.consumer.queues)
            (sent,) = cluster["b"].sent_back
            assert (sent["delayLevel"], sent["originTopic"], sent["group"]) == ("4", "t", "g")

    run(scenario())


@pytest.mark.row("API-6", "PROP-10")
@pytest.mark.parametrize("is_orderly", [False, True])
def test_as_many_listeners_run_as_the_one_setting_says_and_it_can_be_changed(
    is_orderly: bool,
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 30})
        for queue in range(30):
            cluster["a"].put("t", queue, *numbered(0, 20))
        settings = replace(BEGINNING, is_orderly=is_orderly, workers=3)
        running: set[object] = set()

        async def listen(message: Received) -> None:
            running.add(message)
            await pass_time(1)
            running.discard(message)

        async with cluster.client() as client:
            heard = Heard(cluster, client, settings=settings)
            heard.before = listen
            async with heard:
                for workers in (3, 7, 2, 5):
                    heard.consumer.resize(workers)
                    await pass_time(2.5)
                    assert len(running) == workers
                for wrong in (0, -1, 1001):
                    with pytest.raises(ValueError, match="workers must be 1 to 1,000"):
                        heard.consumer.resize(wrong)
                await pass_time(2)
                assert len(running) == 5

    run(scenario())
    # There is no maximum beside it that could be raised.
    sizes = {
        each.name
        for each in fields(ConsumerSettings)
        if "work" in each.name or "thread" in each.name
    }
    assert sizes == {"workers"}


# Progress of the application's own


class Table:
    """Progress as an application may keep it."""

    def __init__(self, **offsets: int) -> None:
        self.offsets: dict[Queue, int] = {
            Queue("t", name, 0): offset for name, offset in offsets.items()
        }
        self.was_loaded = False
        self.is_broken = False

    async def load(self) -> None:
        self.was_loaded = True

    async def read(self, queue: Queue) -> int | None:
        assert self.was_loaded
        if self.is_broken:
            raise ZeroDivisionError
        return self.offsets.get(queue)

    async def save(self, offsets: Mapping[Queue, int]) -> None:
        if self.is_broken:
            raise ZeroDivisionError
        self.offsets.update(offsets)


@pytest.mark.row("API-7", "PROP-8")
@pytest.mark.parametrize("model", list(Model))
def test_progress_is_kept_in_a_store_that_the_application_brings(model: Model) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 5))
        cluster["a"].set_progress("g", 4)
        table = Table(a=2)
        settings = replace(BEGINNING, model=model, offset_store=table)
        async with cluster.client() as client:
            async with Heard(cluster, client, settings=settings) as heard:
                await pass_time(6)
                assert heard.bodies == numbered(2, 5)
                assert table.offsets[Queue("t", "a", 0)] == 5
            # Neither read from a broker, nor committed to one.
            assert (cluster.of(14), cluster.of(15)) == ([], [])

    run(scenario())


@pytest.mark.row("API-7")
def test_a_store_that_fails_is_asked_again_and_nothing_is_consumed_before_it_answers() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 5))
        table = Table(a=2)
        table.is_broken = True
        async with cluster.client() as client:
            settings = replace(BEGINNING, offset_store=table)
            async with Heard(cluster, client, settings=settings) as heard:
                await pass_time(10)
                assert heard.bodies == []
                table.is_broken = False
                await pass_time(2)
                assert heard.bodies == numbered(2, 5)
                table.is_broken = True
                await pass_time(10)
                assert table.offsets[Queue("t", "a", 0)] == 2
                table.is_broken = False
                await pass_time(5)
                assert table.offsets[Queue("t", "a", 0)] == 5

    run(scenario())
