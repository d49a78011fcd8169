"""Which queues a member consumes, when that is worked out, and where each begins: on a virtual
clock over brokers in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.house.checkout import ROOT
from tests.sdk.consumer.memory_cluster import BEGINNING, Asked, Heard, MemoryCluster, numbered
from tests.sdk.memorynet import pass_time, run, settle

from rockgate.protocol.remoting.command import Command
from rockgate.sdk import ConsumerSettings, FlowLimits, PullConsumer, Received
from rockgate.sdk.client.routes import UnknownTopic
from rockgate.sdk.consumer.broker_calls import BrokerCalls
from rockgate.sdk.consumer.queues.rounds import Rounds, over_topics
from rockgate.sdk.errors import NotSupported, TimedOut
from rockgate.sdk.results import Queue

BUSY = Command(1, remark="not now")


class Chosen:
    """A strategy of the application: it returns a fixed allocation, and records its arguments."""

    name = "CHOSEN"

    def __init__(self, broker: str = "") -> None:
        self.broker = broker
        self.error: Exception | None = None
        self.failing_topic = ""
        self.seen: list[tuple[str, str, list[Queue], list[str]]] = []

    def allocate(
        self, group: str, member: str, queues: Sequence[Queue], members: Sequence[str]
    ) -> list[Queue]:
        self.seen.append((group, member, list(queues), list(members)))
        if self.error is not None or queues[0].topic == self.failing_topic:
            raise self.error or ZeroDivisionError
        return [queue for queue in queues if queue.broker == self.broker]


def mine(heard: Heard, topic: str = "t") -> list[tuple[str, int]]:
    return [(queue.broker, queue.id) for queue in heard.consumer.queues if queue.topic == topic]


def of_topic(asked: list[Asked], topic: str = "t") -> list[Asked]:
    return [each for each in asked if each.fields.get("topic") == topic]


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


# When


@pytest.mark.row("REB-1")
def test_each_consumer_has_its_rounds_every_twenty_seconds_and_one_that_fails_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        times: dict[str, list[float]] = {"good": [], "bad": []}

        def rounds(group: str) -> asyncio.Task[None]:
            async def one() -> bool:
                times[group].append(round(loop.time() - began_s, 1))
                if group == "bad":
                    raise ZeroDivisionError
                return True

            period_s = ConsumerSettings().rebalance_s
            return loop.create_task(Rounds(group, period_s).run(one, is_complete=True))

        tasks = [rounds("bad"), rounds("good")]
        await pass_time(65)
        # Half a second between rounds is for notices to come together.
        assert times["good"] == times["bad"] == [20.0, 40.5, 61.0]
        for task in tasks:
            await ended(task)

    run(scenario())
    assert [each.getMessage() for each in caplog.records] == ["rebalance of group bad failed"] * 3


@pytest.mark.row("REB-1", "D-02")
def test_consumers_of_one_client_are_balanced_apart_though_one_of_them_cannot_be() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        bad = Chosen("a")
        async with cluster.client() as client:
            broken = Heard(cluster, client, group="x", settings=replace(BEGINNING, allocation=bad))
            async with broken, Heard(cluster, client, group="y") as heard:
                bad.error = ZeroDivisionError()
                cluster.members["y"]["other"] = next(iter(cluster.members["y"].values()))
                await pass_time(41)
                assert len(mine(heard)) == 1
                assert mine(broken) == [("a", 0), ("a", 1)]

    run(scenario())


@pytest.mark.row("BRB-2", "Q-02")
def test_a_change_of_a_topics_queues_sets_off_a_round_as_soon_as_it_is_known() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        settings = replace(BEGINNING, rebalance_s=3600.0)
        async with cluster.client() as client, Heard(cluster, client, settings=settings) as heard:
            await pass_time(5)
            cluster.queue_counts["a"] = 3
            # Routes are asked for again every thirty seconds.
            await pass_time(26)
            assert mine(heard) == [("a", 0), ("a", 1), ("a", 2)]
            cluster.queue_counts["a"] = 1
            await pass_time(30)
            assert mine(heard) == [("a", 0)]

    run(scenario())


@pytest.mark.row("Q-03", "Q-04")
def test_a_backlog_is_shared_by_as_many_members_as_there_are_queues_and_more_queues_help() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        backlog = [numbered(0, 300), numbered(300, 600), numbered(600, 900)]
        async with (
            cluster.client("one") as one,
            cluster.client("two") as two,
            cluster.client("three") as three,
            Heard(cluster, one) as first,
            Heard(cluster, two) as second,
            Heard(cluster, three) as third,
        ):
            members = first, second, third
            await pass_time(25)
            assert sorted(len(mine(each)) for each in members) == [0, 1, 1], "one is idle"
            cluster["a"].put("t", 0, *backlog[0])
            cluster["a"].put("t", 1, *backlog[1])
            await pass_time(25)
            heard = [sorted(each.bodies) for each in members if each.bodies]
            assert sorted(heard) == backlog[:2], "each queue is one member's"
            cluster.queue_counts["a"] = 3
            cluster["a"].put("t", 2, *backlog[2])
            await pass_time(60)
            assert sorted(len(mine(each)) for each in members) == [1, 1, 1]
            every = [body for each in members for body in each.bodies]
            assert set(every) == {body for each in backlog for body in each}
            assert all(each.bodies for each in members)

    run(scenario())


@pytest.mark.row("BRB-2", "REB-2")
def test_a_change_of_a_groups_members_sets_off_a_round_at_once() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 4})
        settings = replace(BEGINNING, rebalance_s=3600.0)
        async with (
            cluster.client("one") as one,
            cluster.client("two") as two,
            Heard(cluster, one, settings=settings) as first,
        ):
            assert (len(mine(first)), cluster.now_s) == (4, 0.0), "the start is a round as well"
            await pass_time(5)
            async with Heard(cluster, two, settings=settings) as second:
                cluster.notify("g")
                await settle()
                assert cluster.now_s == 5.0
                assert len(mine(first)) == len(mine(second)) == 2
                assert not set(mine(first)) & set(mine(second))
            await pass_time(5)
            cluster.notify("g")
            await settle()
            assert len(mine(first)) == 4

    run(scenario())


@pytest.mark.row("REB-14")
def test_after_a_change_limits_are_divided_versions_move_on_and_brokers_hear_of_it() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 4})
        flow = FlowLimits(topic_count_max=100)
        settings = replace(BEGINNING, flow=flow)

        def version() -> int:
            data = cluster.members["g"][one.id]
            (found,) = {each.sub_version for each in data.subscription_data_set}
            return found

        async with (
            cluster.client("one") as one,
            cluster.client("two") as two,
            Heard(cluster, one, settings=settings) as first,
        ):
            holding = first.consumer._running.holding
            await pass_time(5)
            before = version()
            assert holding.limits("t").count_max == 25
            cluster.notify("g")
            await settle()
            assert version() == before, "a round without a change changes nothing"
            async with Heard(cluster, two, settings=settings):
                cluster.notify("g")
                await pass_time(1)
                assert len(mine(first)) == 2
                assert holding.limits("t").count_max == 50
                assert version() > before

    run(scenario())


@pytest.mark.row("REB-14")
def test_a_pull_consumers_listener_is_told_of_a_change() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 4})
        told: list[int] = []
        async with cluster.client("one") as client:
            pulling = PullConsumer(
                client=client,
                group="p",
                topics=["t"],
                on_queues=lambda _topic, _every, own: told.append(len(own)),
            )
            async with pulling:
                cluster.members["p"]["~other"] = cluster.members["p"][client.id]
                cluster.notify("p")
                await settle()
                assert told == [4, 2]

    run(scenario())


# What each topic has


@pytest.mark.row("REB-6")
async def test_an_unknown_topic_is_a_warning_unless_it_is_one_for_retries(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []

    async def one(topic: str) -> bool:
        if topic != "known":
            raise UnknownTopic(f"Topic {topic} does not exist.")
        done.append(topic)
        return True

    assert not await over_topics("g", ["unknown", "%RETRY%g", "known"], one)
    assert done == ["known"]
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == (
        "WARNING",
        "group g: Topic unknown does not exist.",
    )


@pytest.mark.row("REB-4")
async def test_topics_are_balanced_one_by_one_and_one_that_fails_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    running: list[str] = []
    done: list[str] = []

    async def one(topic: str) -> bool:
        assert running == []
        running.append(topic)
        await asyncio.sleep(0)
        running.remove(topic)
        if topic == "second":
            raise TimedOut("no answer")
        done.append(topic)
        return True

    assert not await over_topics("g", ["first", "second", "third"], one)
    assert done == ["first", "third"]
    assert [each.getMessage() for each in caplog.records] == ["group g, topic second: no answer"]


@pytest.mark.row("REB-4", "REB-7")
def test_a_strategy_that_fails_leaves_its_topic_as_it_is_and_the_next_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1, "b": 1})
        cluster.topics = {"t", "u"}
        chosen = Chosen("a")
        settings = replace(BEGINNING, allocation=chosen)
        async with (
            cluster.client() as client,
            Heard(cluster, client, "t", "u", settings=settings) as heard,
        ):
            chosen.failing_topic, chosen.broker = "t", "b"
            await pass_time(21)
            assert mine(heard, "t") == [("a", 0)]
            assert mine(heard, "u") == [("b", 0)]

    run(scenario())
    assert "allocation CHOSEN of group g, topic t" in caplog.messages


@pytest.mark.row("REB-7", "REB-8", "ALLOC-8")
def test_a_strategy_is_given_both_lists_sorted_and_its_answer_is_what_is_consumed() -> None:
    async def scenario() -> None:
        # Neither the name server nor the broker sorts its list.
        cluster = MemoryCluster({"b": 2, "a": 11})
        chosen = Chosen("b")
        settings = replace(BEGINNING, allocation=chosen)
        async with (
            cluster.client("one") as client,
            Heard(cluster, client, settings=settings) as heard,
        ):
            data = cluster.members["g"][client.id]
            cluster.members["g"] |= {"10.0.0.10@y": data, "~last": data, "10.0.0.9@z": data}
            await pass_time(21)
            assert mine(heard) == [("b", 0), ("b", 1)]
            seen = [each for each in chosen.seen if each[2][0].topic == "t"][-1]
            assert seen[:2] == ("g", client.id)
            assert [(queue.broker, queue.id) for queue in seen[2]] == [
                *(("a", number) for number in range(11)),
                *(("b", number) for number in range(2)),
            ]
            assert seen[3] == sorted(["10.0.0.10@y", "10.0.0.9@z", client.id, "~last"])

    run(scenario())
    topics = [Queue("t2", "a", 0), Queue("t", "b", 0), Queue("t", "a", 10), Queue("t", "a", 9)]
    assert sorted(topics) == [topics[3], topics[2], topics[1], topics[0]]


@pytest.mark.row("REB-7")
@pytest.mark.parametrize("missing", ["members", "queues"])
def test_without_both_lists_nothing_changes(missing: str) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        async with cluster.client() as client, Heard(cluster, client) as heard:
            before = mine(heard)
            assert len(before) == 2
            if missing == "members":
                cluster["a"].refusing[38] = BUSY
            else:
                cluster.queue_counts["a"] = 0
            await pass_time(90)
            assert mine(heard) == before
            cluster["a"].put("t", 0, b"still read")
            await settle()
            assert heard.bodies == [b"still read"]

    run(scenario())


@pytest.mark.row("REB-9")
def test_members_are_asked_of_a_broker_of_the_topic_and_of_the_next_where_one_is_away() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1, "b": 1, "c": 1})
        async with cluster.client() as client, Heard(cluster, client):
            asked = cluster.of(38)
            assert 1 <= len(asked) <= 2, "one broker for each topic, the retry topic's included"
            assert {each.fields["consumerGroup"] for each in cluster.of(38)} == {"g"}
            cluster["a"].refusing[38] = BUSY
            cluster["b"].silent.add(38)
            calls = BrokerCalls(client, "g")
            # In whatever order they are asked, one of them knows.
            for _ in range(10):
                assert await calls.members("t") == [client.id]
            assert cluster.times(38, "c")

    run(scenario())


@pytest.mark.row("REB-9")
def test_brokers_that_do_not_answer_are_not_asked_for_members_without_end() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({name: 1 for name in "abcdefgh"})
        async with cluster.client() as client, Heard(cluster, client) as heard:
            before = mine(heard)
            assert len(before) == 8
            for broker in cluster.brokers.values():
                broker.silent.add(38)
            began_s = cluster.now_s
            assert not await heard.consumer._running.rebalance()
            # Three brokers for each of two topics, and not all eight.
            assert cluster.now_s - began_s <= 2 * 9.1
            assert mine(heard) == before

    run(scenario())


@pytest.mark.row("REB-13")
def test_new_queues_are_pulled_at_once_and_those_of_a_pull_consumer_only_announced() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        async with cluster.client("one") as one, Heard(cluster, one):
            await settle()
            assert [each.fields["queueId"] for each in cluster.pulls()] == ["0", "1"]
            assert cluster.now_s == 0.0
        cluster.asked.clear()
        told: list[tuple[str, int, int]] = []

        def on_queues(topic: str, every: Sequence[Queue], own: Sequence[Queue]) -> None:
            told.append((topic, len(every), len(own)))

        async with cluster.client("two") as two:
            pulling = PullConsumer(client=two, group="p", topics=["t"], on_queues=on_queues)
            async with pulling:
                await pass_time(60)
                assert told == [("t", 2, 2)]
                assert cluster.pulls() == []

    run(scenario())


@pytest.mark.row("PQ-2")
def test_how_long_a_queue_may_be_idle_can_be_set() -> None:
    settings = ConsumerSettings()
    times = (settings.lock_s_max, settings.lock_renew_s, settings.pull_idle_s_max)
    assert times == (30.0, 20.0, 120.0)

    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        settings = replace(BEGINNING, pull_idle_s_max=16.0)
        async with cluster.client() as client, Heard(cluster, client, settings=settings) as heard:
            holding = heard.consumer._running.holding
            (held,) = [held for queue, held in holding.held.items() if queue.topic == "t"]
            await ended(held.task)
            cluster["a"].put("t", 0, b"second")
            await pass_time(22)
            assert heard.bodies == [b"second"]

    run(scenario())


@pytest.mark.row("REB-11", "C-18")
def test_a_queue_that_has_not_been_pulled_for_two_minutes_is_started_again() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        async with cluster.client() as client, Heard(cluster, client) as heard:
            cluster["a"].put("t", 0, b"first")
            await settle()
            (held,) = [
                held
                for queue, held in heard.consumer._running.holding.held.items()
                if queue.topic == "t"
            ]
            await ended(held.task)
            cluster["a"].put("t", 0, b"second")
            await pass_time(115)
            assert heard.bodies == [b"first"]
            await pass_time(30)
            assert heard.bodies == [b"first", b"second"]

    run(scenario())


@pytest.mark.row("REB-11")
def test_queues_that_a_pull_consumer_does_not_pull_stay_as_they_are() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        told: list[Sequence[Queue]] = []
        async with cluster.client() as client:
            pulling = PullConsumer(
                client=client,
                group="p",
                topics=["t"],
                on_queues=lambda _topic, _every, own: told.append(own),
            )
            async with pulling:
                await pass_time(300)
                assert len(told) == 1
                assert [queue.id for queue in pulling.balanced("t")] == [0, 1]
                assert cluster.pulls() == []

    run(scenario())


# Where


@pytest.mark.row("CFW-3", "U-05")
def test_a_group_that_starts_first_begins_at_the_lowest_offset_the_queue_still_has() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 3), begin=100)
        async with cluster.client() as client, Heard(cluster, client) as heard:
            await pass_time(2)
            # 0 is asked for, and the broker says what is there.
            offsets = [int(each.fields["queueOffset"]) for each in cluster.pulls()]
            assert offsets == [0, 100, 103]
            assert [message.offset for message in heard.messages] == [100, 101, 102]

    run(scenario())


# Moving


@pytest.mark.row("REB-19", "PQ-17")
def test_a_queue_that_moves_repeats_what_was_not_saved_and_loses_nothing() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 10))
        go = asyncio.Event()

        async def wait(message: Received) -> None:
            if message.offset >= 3:
                await go.wait()

        settings = replace(BEGINNING, workers=4)
        async with cluster.client("two") as two, cluster.client("one") as one:
            first = Heard(cluster, two, settings=settings)
            first.before = wait
            async with first:
                await settle()
                # Three are finished, four under way, and three wait for a worker.
                assert [message.offset for message in first.messages] == [*range(7)]
                async with Heard(cluster, one) as second:
                    cluster.notify("g")
                    await settle()
                    assert mine(first) == []
                    # It is saved when the queue is given up, and the other did not wait for that.
                    assert cluster.of(15)[0].fields["commitOffset"] == "3"
                    pull_count = len(cluster.pulls())
                    go.set()
                    await pass_time(10)
                    assert [message.offset for message in first.messages] == [*range(7)]
                    assert [message.offset for message in second.messages] == [*range(10)]
                    # The one that lost it neither pulls nor saves: both would show here.
                    assert cluster["a"].progress("g") == 10
                    assert len(cluster.pulls()) == pull_count
                    stale = [each for each in cluster.of(15) if each.fields["commitOffset"] == "7"]
                    assert stale == []

    run(scenario())


@pytest.mark.row("REB-19")
def test_what_the_documentation_says_of_a_rebalance() -> None:
    page = (ROOT / "docs" / "internals" / "consumer.md").read_text(encoding="utf-8")
    assert "Nothing is lost by this and something may come twice" in page
    reference = (ROOT / "docs" / "reference" / "sdk.md").read_text(encoding="utf-8")
    assert "Delivery is at least once" in reference


# Pulls of a member


@pytest.mark.row("SUB-11")
def test_the_lag_of_a_group_is_zero_in_the_end_though_nothing_matches() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        for queue in range(2):
            cluster["a"].put("t", queue, *numbered(0, 100), tag="other")
        async with cluster.client() as client:
            heard = Heard(cluster, client)
            heard.consumer.on("t", "wanted")(heard.listen)
            async with heard:
                await pass_time(6)
                assert heard.bodies == []
                assert [cluster["a"].progress("g", "t", queue) for queue in range(2)] == [100, 100]
                assert heard.consumer.statistics.lag_count == 0

    run(scenario())


@pytest.mark.row("PULL-13")
def test_a_pull_asks_to_be_held_15_s_waits_30_s_and_is_made_again_after_any_failure() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].silent = {11}
        async with cluster.client() as client, Heard(cluster, client):
            await pass_time(100)
            pulls = cluster.pulls()
            assert {each.fields["suspendTimeoutMillis"] for each in pulls} == {"15000"}
            assert [round(each.at_s, 1) for each in pulls] == [0.0, 31.0, 62.0, 93.0]
            cluster["a"].silent = set()
            cluster["a"].refusing[11] = BUSY
            await pass_time(26)
            assert [round(each.at_s, 1) for each in cluster.pulls()][4:] == [124.0, 125.0]

    run(scenario())


@pytest.mark.row("PULL-3")
def test_a_consumer_that_is_closed_pulls_no_more_whatever_its_pulls_were_waiting_for() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})
        cluster["a"].refusing[11] = BUSY
        async with cluster.client() as client:
            async with Heard(cluster, client):
                await pass_time(2.5)
                before = len(cluster.of(11))
                assert before
            await pass_time(60)
            assert len(cluster.of(11)) == before
            assert client.consumers.groups == set()

    run(scenario())


@pytest.mark.row("SUB-1", "SUB-3")
def test_an_sql_filter_that_a_broker_has_switched_off_is_refused_with_its_reason() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        reason = "The broker does not support consumer to filter message by SQL92"
        cluster["a"].refusing[46] = Command(1, remark=reason)
        async with cluster.client() as client:
            heard = Heard(cluster, client)
            heard.consumer.on("t", sql="price > 10")(heard.listen)
            with pytest.raises(Exception, match=f"SYSTEM_ERROR.*{reason}"):
                await heard.consumer.open()
            assert cluster.pulls() == []

    run(scenario())


@pytest.mark.row("SUB-1")
@pytest.mark.parametrize("version", [0, 231, 232])
def test_an_old_broker_is_not_asked_for_sql_and_the_error_says_so(version: int) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        for code in (34, 46):
            cluster["a"].refusing[code] = Command(0, version=version)
        async with cluster.client() as client:
            heard = Heard(cluster, client)
            heard.consumer.on("t", sql="price > 10")(heard.listen)
            if version == 232:
                await heard.consumer.open()
                assert cluster.of(46)
                await heard.consumer.close()
                return
            with pytest.raises(NotSupported, match=r"Broker a is older than 4\.1 and does not"):
                await heard.consumer.open()
            assert cluster.of(46) == []
            async with PullConsumer(client=client, group="p") as pulling:
                (queue,) = await pulling.queues("t")
                with pytest.raises(NotSupported, match="does not support SQL92 filters"):
                    await pulling.pull(queue, 0, sql="price > 10")
                assert cluster.pulls() == []
                assert not (await pulling.pull(queue, 0, "paid")).messages

    run(scenario())
