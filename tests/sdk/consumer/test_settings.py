"""What a consumer is set to: defaults, ranges, and what is refused."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.sdk.consumer.memory_cluster import (
    Heard,
    MemoryCluster,
    numbered,
    subscriptions,
)
from tests.sdk.memorynet import run, settle

from rockgate.sdk import (
    Averagely,
    Consumer,
    ConsumerSettings,
    FlowLimits,
    InCircles,
    InvalidMessage,
    Model,
    Start,
)


@pytest.mark.row("PROP-1")
def test_a_consumer_belongs_to_one_group_of_its_namespace_and_once_in_a_client() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster.topics = {"t", "shop%t"}
        async with (
            cluster.client() as client,
            Consumer(client=client, group="g", topics=["t"], namespace="shop"),
        ):
            assert set(cluster.members) == {"shop%g"}
            with pytest.raises(ValueError, match="already has a consumer of group shop%g"):
                await Consumer(client=client, group="g", topics=["t"], namespace="shop").open()
            # Another one has the name without a namespace.
            async with Consumer(client=client, group="g", topics=["t"]):
                assert set(cluster.members) == {"shop%g", "g"}

    run(scenario())


@pytest.mark.row("PROP-2")
def test_a_group_shares_unless_it_broadcasts_and_no_model_is_none() -> None:
    assert ConsumerSettings().model is Model.CLUSTERING
    assert ConsumerSettings(model=Model.BROADCASTING).data("g").message_model == "BROADCASTING"
    for wrong in (None, "CLUSTERING"):
        with pytest.raises(ValueError, match="model must be a Model"):
            ConsumerSettings(model=wrong)  # type: ignore[arg-type] # what is refused


@pytest.mark.row("PROP-3")
@pytest.mark.parametrize("start", [None, *Start])
@pytest.mark.parametrize("saved", [None, 0, 2])
def test_where_to_start_is_asked_only_without_progress_and_is_the_end_by_default(
    start: Start | None, saved: int | None
) -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster["a"].put("t", 0, *numbered(0, 5))
        if saved is not None:
            cluster["a"].set_progress("g", saved)
        settings = ConsumerSettings() if start is None else ConsumerSettings(start=start)
        async with cluster.client() as client, Heard(cluster, client, settings=settings):
            await settle()
            (first, *_) = cluster.pulls()
        # The brokers' search by time finds the beginning here.
        expected = 5 if start in (None, Start.END) else 0
        assert int(first.fields["queueOffset"]) == (expected if saved is None else saved)

    run(scenario())


@pytest.mark.row("PROP-4", "TRAP-3")
def test_a_start_time_is_half_an_hour_ago_or_as_given_and_a_malformed_one_is_refused() -> None:
    given = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    began = datetime.now(UTC)
    settings = ConsumerSettings(start=Start.TIME)
    assert isinstance(settings.start, datetime)
    assert timedelta() <= settings.start - (began - timedelta(minutes=30)) < timedelta(minutes=1)

    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        async with cluster.client() as client:
            settings = ConsumerSettings(start=given)
            async with Heard(cluster, client, settings=settings):
                (asked,) = cluster.of(29)
                assert int(asked.fields["timestamp"]) == given.timestamp() * 1000

    run(scenario())
    with pytest.raises(ValueError, match=r"start .* has no time zone"):
        ConsumerSettings(start=given.replace(tzinfo=None))
    with pytest.raises(ValueError, match="start must be a Start or a datetime, not '20260102'"):
        ConsumerSettings(start="20260102")  # type: ignore[arg-type] # what is refused


@pytest.mark.row("TRAP-10", "D-04")
def test_twenty_listeners_run_and_orderly_ones_commit_by_themselves_unless_set_otherwise() -> None:
    assert ConsumerSettings().workers == 20
    assert ConsumerSettings(is_orderly=True).auto_commit


@pytest.mark.row("PROP-5")
def test_queues_are_split_averagely_unless_another_strategy_is_given_and_none_is_refused() -> None:
    assert isinstance(ConsumerSettings().allocation, Averagely)
    assert ConsumerSettings(allocation=InCircles()).allocation.name == "AVG_BY_CIRCLE"
    with pytest.raises(ValueError, match="allocation must be a strategy, not None"):
        ConsumerSettings(allocation=None)  # type: ignore[arg-type] # what is refused


@pytest.mark.row("PROP-6")
def test_what_was_subscribed_before_the_start_is_in_force_at_the_start() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster({"a": 1})
        cluster.topics = {"t", "u", "v"}
        async with cluster.client() as client:
            consumer = Consumer(client=client, group="g", topics={"t": "red"})
            await consumer.subscribe("u", "blue || green")
            await consumer.subscribe("v", sql="price > 10")
            assert cluster.asked == []
            async with consumer:
                wanted = subscriptions(cluster.heartbeats()[0], "g")
                assert {each.topic: each.sub_string for each in wanted.values()} == {
                    "t": "red",
                    "u": "blue || green",
                    "v": "price > 10",
                    "%RETRY%g": "*",
                }
                assert {each.topic for each in consumer.queues} == set(wanted)

    run(scenario())


BAD: list[tuple[str, dict[str, Any]]] = [
    ("model", {"model": None}),
    ("start", {"start": None}),
    ("start", {"start": datetime(2026, 1, 1)}),  # what is refused
    ("allocation", {"allocation": None}),
    ("flow.count_max", {"flow": FlowLimits(count_max=0)}),
    ("flow.size_max", {"flow": FlowLimits(size_max=0)}),
    ("flow.span_max", {"flow": FlowLimits(span_max=70_000)}),
    ("flow.topic_count_max", {"flow": FlowLimits(topic_count_max=0)}),
    ("flow.topic_size_max", {"flow": FlowLimits(topic_size_max=0)}),
    ("pull_count_max", {"pull_count_max": 1025}),
    ("pull_interval_s", {"pull_interval_s": -1}),
    ("batch_max", {"batch_max": 0}),
    ("workers", {"workers": 0}),
    ("tries_max", {"tries_max": -2}),
    ("consume_timeout_s", {"consume_timeout_s": 0}),
    ("suspend_s", {"suspend_s": 31}),
    ("lock_renew_s", {"lock_renew_s": 0}),
    ("lock_renew_s", {"lock_renew_s": 40}),
    ("lock_s_max", {"lock_s_max": -1}),
    ("rebalance_s", {"rebalance_s": 0}),
    ("persist_s", {"persist_s": -5}),
    ("pull_idle_s_max", {"pull_idle_s_max": 0}),
    ("retry_s", {"retry_s": 0}),
    ("local_retry_s", {"local_retry_s": 0}),
]
ANYTHING_GOES = {
    *("is_orderly", "pulls_carry_expression", "unit_mode", "auto_commit"),
    *("offset_store", "offsets_folder"),
}


@pytest.mark.row("START-3")
def test_every_bad_setting_is_refused_before_anything_starts_by_an_error_that_names_it() -> None:
    for name, bad in BAD:
        with pytest.raises(ValueError, match=rf"^{name}\b"):
            ConsumerSettings(**bad)
    tried = {name for _, bad in BAD for name in bad}
    assert tried | ANYTHING_GOES == {each.name for each in fields(ConsumerSettings)}
    for group in ("", "a b", "x" * 256):
        with pytest.raises(InvalidMessage, match=r"[Gg]roup"):
            Consumer("n:1", group=group, topics=["t"])
