"""Statistics of consumers for Prometheus, where `prometheus-client` is installed.

    collector = ConsumerCollector(consumer)
    REGISTRY.register(collector)

Nothing is counted twice: the values are read from the consumers at each scrape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from rockgate.sdk.observe.statistics import ConsumerStatistics, TopicStatistics

if TYPE_CHECKING:
    from prometheus_client import Metric

PREFIX: Final = "rockgate_consumer_"

_COUNTERS: Final[dict[str, tuple[str, Callable[[TopicStatistics], float]]]] = {
    "pulled_messages": ("Messages that were pulled.", lambda topic: topic.pulled_count),
    "consumed_messages": ("Messages that listeners finished.", lambda topic: topic.ok_count),
    "failed_messages": ("Messages to be delivered again.", lambda topic: topic.failed_count),
}
_TIMES: Final[dict[str, tuple[str, Callable[[TopicStatistics], float]]]] = {
    "pull_seconds": (
        "Mean time of a pull that brought messages, over the last minute.",
        lambda topic: topic.pull_s,
    ),
    "consume_seconds": (
        "Mean time of a listener for a message, over the last minute.",
        lambda topic: topic.consume_s,
    ),
}
_GAUGES: Final[dict[str, tuple[str, Callable[[ConsumerStatistics], float]]]] = {
    "queues": ("Queues that are consumed here.", lambda all_: all_.queue_count),
    "cached_messages": ("Messages pulled and not finished.", lambda all_: all_.cached_count),
    "cached_bytes": ("Bytes of their bodies.", lambda all_: all_.cached_size),
    "lag_messages": (
        "Messages that brokers have beyond those that were pulled.",
        lambda all_: all_.lag_count,
    ),
}


class Counted(Protocol):
    """What is read of a consumer here."""

    @property
    def statistics(self) -> ConsumerStatistics:
        """Its current state: rates over the last minute, cached messages, and lag."""


class ConsumerCollector:
    """What a registry of `prometheus-client` collects of consumers."""

    def __init__(self, *consumers: Counted) -> None:
        self._consumers = consumers

    def describe(self) -> list[Metric]:
        """Nothing is collected when it is registered: the consumers may not be open yet."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The current values of all consumers."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        found = [consumer.statistics for consumer in self._consumers]
        for name, (text, count_of) in _COUNTERS.items():
            counter = CounterMetricFamily(PREFIX + name, text, labels=["group", "topic"])
            for each in found:
                for topic, counts in each.topics.items():
                    counter.add_metric([each.group, topic], count_of(counts))
            yield counter
        for name, (text, time_of) in _TIMES.items():
            gauge = GaugeMetricFamily(PREFIX + name, text, labels=["group", "topic"])
            for each in found:
                for topic, counts in each.topics.items():
                    gauge.add_metric([each.group, topic], time_of(counts))
            yield gauge
        for name, (text, value_of) in _GAUGES.items():
            gauge = GaugeMetricFamily(PREFIX + name, text, labels=["group"])
            for each in found:
                gauge.add_metric([each.group], value_of(each))
            yield gauge
