"""Rates and means over the last minute, and their metrics for Prometheus."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from rockgate.sdk.observe.prometheus import ConsumerCollector
from rockgate.sdk.observe.statistics import ConsumerStatistics, Statistics, Window


@pytest.mark.parametrize(
    ("events", "now_s", "rate", "mean"),
    [
        pytest.param([], 100.0, 0.0, 0.0, id="nothing happened"),
        pytest.param([(100.0, 5, 1.0)], 110.0, 0.5, 0.2, id="a young window counts its own age"),
        pytest.param([(100.0, 5, 1.0)], 100.0, 5.0, 0.2, id="and a second at least"),
        pytest.param([(100.0, 60, 6.0), (130.0, 60, 6.0)], 160.0, 2.0, 0.1, id="a minute"),
        pytest.param([(100.0, 9, 6.0), (171.0, 5, 1.0)], 175.0, 5 / 65, 0.2, id="old is forgotten"),
        pytest.param([(100.0, 60, 6.0)], 100_000.0, 0.0, 0.0, id="a long silence"),
        pytest.param([(100.0, 6, 0.0), (95.0, 6, 0.0)], 112.0, 1.0, 0.0, id="a clock that errs"),
    ],
)
def test_a_window_covers_a_minute(
    events: list[tuple[float, int, float]], now_s: float, rate: float, mean: float
) -> None:
    window = Window(100.0)
    for at_s, count, value in events:
        window.add(at_s, count, value)
    assert window.rate(now_s) == pytest.approx(rate)
    assert window.mean(now_s) == pytest.approx(mean)
    assert window.count == sum(count for _, count, _ in events)


@pytest.mark.row("OBS-5")
def test_pulls_and_listeners_are_counted_by_topic() -> None:
    statistics = Statistics()
    statistics.pulled("a", 0.0, took_s=0.5, count=30)
    statistics.pulled("a", 5.0, took_s=0.1, count=10)
    statistics.consumed("a", 9.0, took_s=2.0, ok=3, failed=1)
    statistics.consumed("b", 9.0, took_s=1.0, ok=0, failed=1)
    found = statistics.topics(10.0)
    assert list(found) == ["a", "b"]
    a = found["a"]
    assert (a.pull_rate, a.pulled_count) == (4.0, 40)
    assert a.pull_s == pytest.approx(0.3)
    assert (a.ok_rate, a.failed_rate, a.consume_s) == (0.3, 0.1, 0.5)
    assert (a.ok_count, a.failed_count) == (3, 1)
    assert (found["b"].pull_rate, found["b"].failed_count, found["b"].consume_s) == (0.0, 1, 1.0)
    later = statistics.topics(500.0)["a"]
    assert (later.pull_rate, later.ok_rate, later.ok_count) == (0.0, 0.0, 3)


@dataclass
class Consumed:
    statistics: ConsumerStatistics


@pytest.mark.row("C-43")
def test_prometheus_is_shown_what_is_counted() -> None:
    counts = Statistics()
    counts.pulled("orders", 0.0, took_s=0.5, count=30)
    counts.consumed("orders", 1.0, took_s=1.0, ok=3, failed=1)
    shown = ConsumerStatistics(
        group="g", topics=counts.topics(2.0), queue_count=4, cached_count=26, cached_size=99
    )
    registry = CollectorRegistry()
    registry.register(ConsumerCollector(Consumed(shown)))
    lines = generate_latest(registry).decode().splitlines()
    assert 'rockgate_consumer_consumed_messages_total{group="g",topic="orders"} 3.0' in lines
    assert 'rockgate_consumer_failed_messages_total{group="g",topic="orders"} 1.0' in lines
    assert 'rockgate_consumer_pulled_messages_total{group="g",topic="orders"} 30.0' in lines
    assert 'rockgate_consumer_pull_seconds{group="g",topic="orders"} 0.5' in lines
    assert 'rockgate_consumer_cached_messages{group="g"} 26.0' in lines
