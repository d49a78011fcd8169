"""Metrics of the broker's statistics and of consumption by pop."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rockgate.gateway.remoting.pop.acquirer import Acquirer
from rockgate.gateway.remoting.pop.receipts import Receipts
from rockgate.gateway.remoting.pop.revival import Revival
from rockgate.gateway.remoting.statistics.broker import BrokerStatistics
from rockgate.gateway.telemetry import broker_metrics as metrics
from rockgate.gateway.telemetry.exposition import Exposition
from rockgate.gateway.transcode import names
from rockgate.store.api.topics import TopicLookup
from rockgate.store.inflight.fold import MessagesInFlight


class StatisticsSource:
    """Metrics of what was put and got."""

    def __init__(
        self, *, statistics: BrokerStatistics, topics: TopicLookup, groups_max: int
    ) -> None:
        self._statistics = statistics
        self._topics = topics
        self._groups_max = groups_max

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        statistics = self._statistics
        page.add(metrics.PUT_MESSAGES, statistics.put_count())
        page.add(metrics.PUT_BYTES, statistics.put_bytes())
        page.add(metrics.PUT_LONGEST, statistics.longest_put_seconds)
        page.add(metrics.GET_MESSAGES, statistics.get_count)
        for name, (count, refused_count) in statistics.label_counts().items():
            page.add(metrics.STATISTICS_LABELS, count, name)
            page.add(metrics.STATISTICS_REFUSED, refused_count, name)
        yield
        # Those that changed last are at the end.
        newest = list(islice(reversed(statistics.gets.rows.items()), self._groups_max))
        for (topic_id, group), series in newest:
            topic = self._topics.find_id(topic_id)
            if topic is not None:
                labels = names.to_rocketmq(group), names.to_rocketmq(topic.name)
                page.add(metrics.GROUP_MESSAGES, series.count, *labels)
                page.add(metrics.GROUP_BYTES, series.size, *labels)
            yield


class PopSource:
    """Metrics of consumption by pop."""

    def __init__(
        self,
        *,
        in_flight: MessagesInFlight,
        acquirer: Acquirer,
        receipts: Receipts,
        revival: Revival,
    ) -> None:
        self._in_flight = in_flight
        self._acquirer = acquirer
        self._receipts = receipts
        self._revival = revival

    def __call__(self, page: Exposition) -> Iterator[None]:
        """Collect the metrics."""
        page.add(metrics.POP_IN_FLIGHT, self._in_flight.count)
        page.add(metrics.POP_WINDOWS, len(self._in_flight))
        page.add(metrics.POP_MESSAGES, self._acquirer.popped_count)
        page.add(metrics.POP_ACKS, self._receipts.acknowledged_count)
        page.add(metrics.POP_STALE_ACKS, self._receipts.stale_count)
        page.add(metrics.POP_RETRIES, self._revival.moved_count)
        yield
