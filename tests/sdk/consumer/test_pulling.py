"""How a member pulls, on a virtual clock: when, what each pull carries, and what holds one up."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.sdk.consumer.memory_cluster import (
    BEGINNING,
    Asked,
    Heard,
    MemoryCluster,
    forever,
    numbered,
)
from tests.sdk.memorynet import pass_time, run, settle

from rockgate.protocol.remoting.command import Command
from rockgate.sdk import ConsumerSettings, FlowLimits, Received
from rockgate.sdk.consumer.queues.puller import FLOW_S

BUSY = Command(1, remark="not now")


def offsets(pulls: list[Asked]) -> list[int]:
    return [int(each.fields["queueOffset"]) for each in pulls]


@pytest.mark.row("C-05")
def test_a_broker_sends_only_what_was_pulled_and_a_slow_client_does_not_pull() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        settings = replace(BEGINNING, flow=FlowLimits(count_max=40), workers=1)
        async with cluster.client() as client:
            heard = Heard(cluster, client, settings=settings)
            heard.before = forever
            async with heard:
                (first,) = cluster.pulls()
                # The suspend flag, and for how long the broker may hold the pull.
                assert int(first.fields["sysFlag"]) & 2
                assert first.fields["suspendTimeoutMillis"] == "15000"
                cluster["a"].put("t", 0, *numbered(0, 500))
                await pass_time(30)
                # What it holds, and not one message more, however much there is.
                assert heard.consumer.statistics.cached_count == 64
                assert offsets(cluster.pulls()) == [0, 32]
                assert not [each for each in cluster["a"].waiting if each[0].fields["topic"] == "t"]

    run(scenario())


@pytest.mark.row("C-06")
def test_an_idle_consumer_gets_a_message_at_once_on_the_pull_that_is_held() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        async with cluster.client() as client, Heard(cluster, client) as heard:
            await pass_time(67)
            # One pull for every fifteen seconds that it was held, and no other in between.
            assert [round(each.at_s) for each in cluster.pulls()] == [0, 15, 30, 45, 60]
            cluster["a"].put("t", 0, b"new")
            await settle()
            assert (heard.bodies, heard.times) == ([b"new"], [67.0])
            assert offsets(cluster.pulls()) == [0, 0, 0, 0, 0, 1]

    run(scenario())


@pytest.mark.row("C-22")
def test_a_queue_that_was_just_assigned_is_pulled_at_once() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2, "b": 2})
        async with cluster.client() as client, Heard(cluster, client):
            await settle()
            pulled = {(each.broker, each.fields["queueId"]) for each in cluster.pulls()}
            assert pulled == {("a", "0"), ("a", "1"), ("b", "0"), ("b", "1")}
            assert cluster.now_s == 0.0

    run(scenario())


@pytest.mark.row("C-24")
def test_a_broker_that_does_not_answer_holds_up_its_own_queues_alone() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1, "b": 1})
        cluster["a"].silent = {11}
        async with cluster.client() as client, Heard(cluster, client) as heard:
            for number in range(3):
                cluster["a"].put("t", 0, b"a%d" % number)
                cluster["b"].put("t", 0, b"b%d" % number)
                await pass_time(1)
            assert heard.bodies == [b"b0", b"b1", b"b2"]
            assert heard.times == [0.0, 1.0, 2.0]

    run(scenario())


LIMITS = [
    (FlowLimits(count_max=10), "messages"),
    (FlowLimits(size_max=30), "bytes"),
    (FlowLimits(span_max=10), "span"),
]


@pytest.mark.row("C-25", "PROP-11", "PROP-12", "PROP-13", "TRAP-4", "TRAP-6")
@pytest.mark.parametrize(("flow", "limit"), LIMITS, ids=[name for _, name in LIMITS])
def test_pulling_pauses_fifty_milliseconds_at_a_time_while_a_limit_is_passed(
    flow: FlowLimits, limit: str
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 40))
        settings = replace(BEGINNING, flow=flow, workers=1)
        async with cluster.client() as client:
            heard = Heard(cluster, client, settings=settings)
            heard.before = lambda message: pass_time(9.99) if message.offset == 0 else None
            async with heard:
                await pass_time(9.98)
                assert offsets(cluster.pulls()) == [0]
                counts = heard.consumer.statistics.held_back_counts
                # Looked at every fifty milliseconds, and at nothing but this limit.
                assert counts == dict.fromkeys(counts, 0) | {limit: round(9.98 / FLOW_S)}
                # It resumes by itself when the listener does.
                await pass_time(0.1)
                assert offsets(cluster.pulls())[:2] == [0, 32]
                assert len(heard.bodies) == 40

    run(scenario())


@pytest.mark.row("PROP-11")
def test_a_span_does_not_hold_up_a_queue_that_is_consumed_in_order() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 40))
        settings = replace(BEGINNING, flow=FlowLimits(span_max=10), is_orderly=True)
        async with cluster.client() as client:
            heard = Heard(cluster, client, settings=settings)
            heard.before = forever
            async with heard:
                await settle()
                assert offsets(cluster.pulls()) == [0, 32, 40]

    run(scenario())


@pytest.mark.row("C-25", "PROP-11", "PROP-12", "PROP-13")
def test_without_settings_a_queue_holds_a_thousand_messages_or_100_mib_or_a_span_of_2000() -> None:
    assert ConsumerSettings().flow == FlowLimits(
        count_max=1000, size_max=100 * 1024 * 1024, span_max=2000
    )


@pytest.mark.row("PROP-11", "PROP-12", "PROP-13")
@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("span_max", 1, 65_535), ("count_max", 1, 65_535), ("size_max", 1, 1024 * 1024 * 1024)],
)
def test_a_limit_may_be_set_within_its_range(name: str, least: int, most: int) -> None:
    for fine in (least, most):
        ConsumerSettings(flow=FlowLimits(**{name: fine}))
    for wrong in (least - 1, most + 1):
        with pytest.raises(ValueError, match=f"flow.{name} must be {least} to {most:,}"):
            ConsumerSettings(flow=FlowLimits(**{name: wrong}))


@pytest.mark.row("PROP-12", "TRAP-7")
def test_that_a_queue_is_not_pulled_is_said_now_and_then_and_not_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 40))
        async with cluster.client() as client:
            settings = replace(BEGINNING, flow=FlowLimits(count_max=10), workers=1)
            heard = Heard(cluster, client, settings=settings)
            heard.before = forever
            async with heard:
                await pass_time(2500 * FLOW_S)
                assert heard.consumer.statistics.held_back_counts["messages"] > 2400

    run(scenario())
    said = [each for each in caplog.messages if "holds 32 messages" in each]
    assert len(said) == 3


@pytest.mark.row("C-27")
def test_a_pull_carries_progress_batch_size_version_and_hold_time_and_so_saves_progress() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        settings = replace(BEGINNING, pull_count_max=7, persist_s=3600.0)
        async with cluster.client() as client, Heard(cluster, client, settings=settings) as heard:
            cluster["a"].put("t", 0, *numbered(0, 5))
            await settle()
            assert len(heard.bodies) == 5
            await pass_time(15.1)
            last = cluster.pulls()[-1].fields
            (data,) = cluster.members["g"].values()
            (told,) = [each for each in data.subscription_data_set if each.topic == "t"]
            assert (last["commitOffset"], int(last["sysFlag"]) & 1) == ("5", 1)
            assert last["maxMsgNums"] == "7"
            assert last["subVersion"] == str(told.sub_version)
            assert last["suspendTimeoutMillis"] == "15000"
            # Nothing else has told the broker.
            assert cluster["a"].progress("g") == 5
            assert cluster.of(15) == []

    run(scenario())


@pytest.mark.row("C-29")
def test_a_pull_without_matches_moves_the_offset_on() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 70), tag="other")
        async with cluster.client() as client:
            heard = Heard(cluster, client)
            heard.consumer.on("t", "wanted")(heard.listen)
            async with heard:
                await settle()
                # Three pulls that match nothing, then one that waits at the end.
                assert offsets(cluster.pulls()) == [0, 32, 64, 70]
                await pass_time(6)
                assert cluster["a"].progress("g") == 70
                assert heard.bodies == []

    run(scenario())


@pytest.mark.row("C-30")
@pytest.mark.parametrize(("saved", "begins_at"), [(5, 100), (900, 103)])
def test_an_offset_outside_the_queue_is_replaced_by_the_brokers_within_half_a_minute(
    saved: int, begins_at: int
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 3), begin=100)
        cluster["a"].set_progress("g", saved)
        async with cluster.client() as client, Heard(cluster, client) as heard:
            await pass_time(20)
            cluster["a"].put("t", 0, b"new")
            await pass_time(9)
            assert offsets(cluster.pulls())[:2] == [saved, begins_at]
            assert [message.offset for message in heard.messages] == list(range(begins_at, 104))
            assert cluster.now_s < 30
            await pass_time(6)
            assert cluster["a"].progress("g") == 104

    run(scenario())


@pytest.mark.row("C-31", "D-03")
def test_a_pull_that_failed_is_tried_again_after_a_second() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].refusing = {11: BUSY}
        async with cluster.client() as client, Heard(cluster, client) as heard:
            await pass_time(3.5)
            assert [round(each.at_s, 1) for each in cluster.pulls()] == [0.0, 1.0, 2.0, 3.0]
            cluster["a"].refusing.clear()
            cluster["a"].put("t", 0, b"late")
            await pass_time(1)
            assert (heard.bodies, heard.times) == ([b"late"], [4.0])

    run(scenario())


@pytest.mark.row("PROP-15")
@pytest.mark.parametrize(("interval_s", "times"), [(0.0, [0, 0, 0, 0]), (2.0, [0, 2, 4, 6])])
def test_the_next_pull_follows_at_once_or_after_the_interval(
    interval_s: float, times: list[int]
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 96))
        settings = replace(BEGINNING, pull_interval_s=interval_s)
        async with cluster.client() as client, Heard(cluster, client, settings=settings) as heard:
            await pass_time(7)
            assert offsets(cluster.pulls()) == [0, 32, 64, 96]
            assert [round(each.at_s) for each in cluster.pulls()] == times
            assert len(heard.bodies) == 96

    run(scenario())


@pytest.mark.row("PROP-16")
@pytest.mark.parametrize("count_max", [None, 1, 1024])
def test_a_pull_asks_for_32_messages_or_what_is_set_and_takes_fewer(count_max: int | None) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, b"only")
        settings = BEGINNING if count_max is None else replace(BEGINNING, pull_count_max=count_max)
        async with cluster.client() as client, Heard(cluster, client, settings=settings) as heard:
            await settle()
            asked = {each.fields["maxMsgNums"] for each in cluster.pulls()}
            assert asked == {str(count_max or 32)}
            assert heard.bodies == [b"only"]

    run(scenario())
    for wrong in (0, 1025):
        with pytest.raises(ValueError, match="pull_count_max must be 1 to 1,024"):
            ConsumerSettings(pull_count_max=wrong)


@pytest.mark.row("PROP-17")
@pytest.mark.parametrize(("batch", "sizes"), [(None, {1: 40}), (1024, {32: 1, 8: 1})])
def test_a_listener_gets_one_message_or_up_to_as_many_as_set(
    batch: int | None, sizes: dict[int, int]
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 40))
        found: Counter[int] = Counter()
        async with cluster.client() as client:
            heard = Heard(cluster, client)
            if batch is not None:

                @heard.consumer.on("t", batch=batch)
                async def listen(messages: Sequence[Received]) -> None:
                    found[len(messages)] += 1

            async with heard:
                await settle()
            found.update([1] * len(heard.messages))
            assert found == sizes

    run(scenario())
    with pytest.raises(ValueError, match="batch_max must be 1 to 1,024"):
        ConsumerSettings(batch_max=1025)


@pytest.mark.row("PROP-18")
@pytest.mark.parametrize("is_asked_for", [False, True])
def test_the_expression_travels_with_a_pull_only_when_that_is_asked_for(is_asked_for: bool) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        settings = replace(BEGINNING, pulls_carry_expression=is_asked_for)
        async with cluster.client() as client:
            heard = Heard(cluster, client, settings=settings)
            heard.consumer.on("t", "red || blue")(heard.listen)
            async with heard:
                await settle()
                (pull,) = cluster.pulls()
                assert pull.fields.get("subscription") == ("red || blue" if is_asked_for else None)
                assert bool(int(pull.fields["sysFlag"]) & 4) is is_asked_for

    run(scenario())
