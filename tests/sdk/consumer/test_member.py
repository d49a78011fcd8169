"""One member of a group on a virtual clock: its routes, heartbeats and rounds, and what hangs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.sdk.consumer.memory_cluster import (
    BEGINNING,
    Heard,
    MemoryCluster,
    forever,
    numbered,
    subscriptions,
)
from tests.sdk.memorynet import pass_time, run, settle

from rockgate.protocol.remoting.bodies.clients import HeartbeatBody
from rockgate.protocol.remoting.command import Command
from rockgate.sdk import (
    Averagely,
    Consumer,
    ConsumerSettings,
    FlowLimits,
    Producer,
    Queue,
    Start,
)
from rockgate.sdk.consumer.settings import Model

BUSY = Command(1, remark="not now")
A0, A1, B0, B1 = Queue("t", "a", 0), Queue("t", "a", 1), Queue("t", "b", 0), Queue("t", "b", 1)


def of_topic(consumer: Consumer, topic: str = "t") -> list[Queue]:
    return [queue for queue in consumer.queues if queue.topic == topic]


@pytest.mark.row("C-10")
def test_routes_of_every_topic_are_asked_for_at_the_start_and_every_thirty_seconds() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster.topics |= {"u"}
        async with cluster.client() as client, Heard(cluster, client, "t", "u") as heard:
            await pass_time(61)
            for topic in ("t", "u", "%RETRY%g"):
                asked = [each.at_s for each in cluster.of(105) if each.fields["topic"] == topic]
                assert [round(at_s) for at_s in asked] == [0, 30, 60], topic
            # What is new in a route is consumed.
            cluster.queue_counts["a"] = 2
            cluster["a"].put("u", 1, b"in the new queue")
            await pass_time(30)
            assert heard.bodies == [b"in the new queue"]

    run(scenario())


@pytest.mark.row("C-11")
def test_every_broker_is_told_of_every_group_whichever_of_them_fails() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1, "b": 1, "c": 1})
        cluster["a"].silent = {34}
        cluster["b"].peer.is_down = True
        async with (
            cluster.client() as client,
            Producer(client=client, group="shop"),
            Heard(cluster, client),
            Consumer(
                client=client,
                group="h",
                topics={"t": "red"},
                settings=ConsumerSettings(model=Model.BROADCASTING, offset_store=Nowhere()),
            ),
        ):
            await pass_time(34)
            last = cluster.of(34, "c")[-1]
            body = last.body(HeartbeatBody)
            told = {each.group_name: each for each in body.consumer_data_set}
            assert [each.group_name for each in body.producer_data_set] == ["shop"]
            assert {name: each.message_model for name, each in told.items()} == {
                "g": "CLUSTERING",
                "h": "BROADCASTING",
            }
            assert told["g"].consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
            assert told["h"].consume_from_where == "CONSUME_FROM_LAST_OFFSET"
            assert subscriptions(last, "h")["t"].sub_string == "red"
            assert set(subscriptions(last, "g")) == {"t", "%RETRY%g"}
            assert 30.0 in cluster.times(34, "c")
            # The others are tried each time.
            assert 30.0 in cluster.times(34, "a")
            cluster["b"].peer.is_down = False
            await pass_time(30)
            assert {
                each.group_name
                for each in cluster.of(34, "b")[-1].body(HeartbeatBody).consumer_data_set
            } == {"g", "h"}

    run(scenario())


class Nowhere:
    """Progress that is not stored."""

    async def load(self) -> None:
        """Nothing has to be made ready."""

    async def read(self, queue: Queue) -> int | None:
        return None

    async def save(self, offsets: object) -> None:
        """It is forgotten."""


@pytest.mark.row("C-12", "D-02")
def test_rounds_come_every_twenty_seconds_or_when_asked_and_apart_while_queues_are_consumed() -> (
    None
):
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})

        def rounds(group: str) -> list[float]:
            asked = [each for each in cluster.of(38) if each.fields["consumerGroup"] == group]
            return sorted({round(each.at_s, 1) for each in asked})

        async with (
            cluster.client() as client,
            Heard(cluster, client) as heard,
            Heard(cluster, client, group="h") as other,
        ):
            await pass_time(45)
            # Half a second between two rounds lets several requests become one.
            assert rounds("g") == rounds("h") == [0.0, 20.0, 40.5]
            cluster.notify("g")
            await pass_time(1)
            assert rounds("g")[3:] == [45.0]
            assert rounds("h")[3:] == []
            # A round that hangs keeps no queue that stays from being consumed.
            cluster["a"].silent = {38}
            cluster.notify("g")
            await settle()
            cluster["a"].put("t", 0, b"meanwhile")
            await settle()
            assert (heard.bodies, other.bodies) == ([b"meanwhile"], [b"meanwhile"])
            assert heard.times == [46.0]

    run(scenario())


@pytest.mark.row("C-13")
def test_a_round_goes_topic_by_topic_and_drops_queues_of_topics_not_subscribed_any_more() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        cluster.topics |= {"u"}
        revoked: list[Queue] = []
        asked: list[str] = []

        class Noting(Averagely):
            def allocate(
                self, group: str, member: str, queues: Sequence[Queue], members: Sequence[str]
            ) -> list[Queue]:
                (topic,) = {queue.topic for queue in queues}
                asked.append(topic)
                return super().allocate(group, member, queues, members)

        settings = replace(BEGINNING, allocation=Noting())
        async with cluster.client() as client:
            heard = Heard(cluster, client, "t", "u", settings=settings, on_revoked=revoked.extend)
            async with heard:
                assert asked == ["t", "u", "%RETRY%g"]
                await heard.consumer.unsubscribe("t")
                await pass_time(1)
                assert asked[3:] == ["u", "%RETRY%g"]
                assert revoked == [A0, A1]
                assert {queue.topic for queue in heard.consumer.queues} == {"u", "%RETRY%g"}
                cluster["a"].put("t", 0, b"not wanted")
                await pass_time(30)
                assert heard.bodies == []

    run(scenario())


@pytest.mark.row("C-17")
def test_a_queue_that_moves_away_is_stopped_and_its_progress_saved_before_it_is_let_go() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        saved: list[tuple[Queue, int | None]] = []

        async def revoked(queues: Sequence[Queue]) -> None:
            await settle()
            saved.extend((queue, cluster["a"].progress("g", queue=queue.id)) for queue in queues)

        settings = replace(BEGINNING, persist_s=3600.0)
        async with cluster.client() as client:
            heard = Heard(cluster, client, settings=settings, on_revoked=revoked)
            async with heard:
                cluster["a"].put("t", 1, *numbered(0, 5))
                await pass_time(1)
                assert len(heard.bodies) == 5
                assert cluster["a"].progress("g", queue=1) is None
                # Another member joins, whose the second queue is from now on.
                cluster.members["g"]["zz"] = next(iter(cluster.members["g"].values()))
                cluster.notify("g")
                await pass_time(1)
                assert saved == [(A1, 5)]
                assert of_topic(heard.consumer) == [A0]
                cluster["a"].put("t", 1, b"for the other")
                await pass_time(40)
                assert len(heard.bodies) == 5
                pulls = [each for each in cluster.pulls() if each.fields["queueId"] == "1"]
                assert max(each.at_s for each in pulls) <= 1

    run(scenario())


@pytest.mark.row("C-19")
@pytest.mark.parametrize("is_orderly", [False, True])
def test_a_queue_is_started_once_its_offset_is_known_and_its_lock_held_and_others_meanwhile(
    is_orderly: bool,
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1, "b": 1})
        for broker in "ab":
            cluster[broker].put("t", 0, broker.encode())
        cluster["a"].refusing[14] = BUSY
        settings = replace(BEGINNING, is_orderly=is_orderly)
        async with cluster.client() as client, Heard(cluster, client, settings=settings) as heard:
            await pass_time(10)
            assert heard.bodies == [b"b"]
            assert not [each for each in cluster.pulls() if each.broker == "a"]
            cluster["a"].refusing.clear()
            if is_orderly:
                cluster["a"].locks["t", 0] = "another"
                await pass_time(10)
                assert heard.bodies == [b"b"]
                cluster["a"].locks.clear()
            await pass_time(21)
            assert heard.bodies == [b"b", b"a"]

    run(scenario())


@pytest.mark.row("C-23")
def test_a_change_of_queues_divides_the_limits_of_a_topic_and_is_told_to_brokers() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        for queue in range(4):
            cluster["a"].put("t", queue, *numbered(0, 60))
        flow = FlowLimits(topic_count_max=40)
        settings = replace(BEGINNING, flow=flow, pull_count_max=1, workers=1)
        async with cluster.client() as client:
            heard = Heard(cluster, client, settings=settings)
            heard.before = forever
            async with heard:
                await pass_time(5)
                # A limit holds when it is passed: twenty for each of two queues, and one more.
                assert heard.consumer.statistics.cached_count == 2 * 21
                versions = [
                    subscriptions(each, "g")["t"].sub_version for each in cluster.heartbeats()
                ]
                cluster.queue_counts["a"] = 4
                mark = len(cluster.heartbeats())
                await pass_time(30)
                assert heard.consumer.statistics.cached_count == 2 * 21 + 2 * 11
                told = cluster.heartbeats()[mark:]
                assert {round(each.at_s) for each in told} == {30}
                assert subscriptions(told[-1], "g")["t"].sub_version > max(versions)

    run(scenario())


@pytest.mark.row("C-33", "U-07")
def test_a_message_whose_listener_hangs_is_sent_back_after_fifteen_minutes() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        settings = replace(BEGINNING, workers=2, batch_max=1)
        async with cluster.client() as client:
            heard = Heard(cluster, client, settings=settings)
            heard.before = lambda message: forever(message) if message.offset == 0 else None
            async with heard:
                await pass_time(100)
                cluster["a"].put("t", 0, *numbered(0, 5))
                await pass_time(899)
                assert len(heard.bodies) == 5
                assert cluster["a"].progress("g") in (None, 0)
                assert cluster["a"].sent_back == []
                # Fifteen minutes after it was begun, at the next look, which is every minute.
                await pass_time(62)
                (sent,) = cluster["a"].sent_back
                assert (sent["offset"], sent["delayLevel"]) == ("0", "3")
                await pass_time(6)
                assert cluster["a"].progress("g") == 5

    run(scenario())


@pytest.mark.row("U-07")
def test_a_message_that_is_consumed_in_order_is_not_sent_back_however_long_it_takes() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 5))
        async with cluster.client() as client:
            settings = ConsumerSettings(start=Start.BEGINNING, is_orderly=True)
            heard = Heard(cluster, client, settings=settings)
            heard.before = forever
            async with heard:
                await pass_time(3600)
                assert (heard.bodies, cluster["a"].sent_back) == ([b"000"], [])

    run(scenario())
