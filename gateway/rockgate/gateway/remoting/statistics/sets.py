"""The sets of statistics and their labels, by the names that RocketMQ's brokers give them.

docs/internals/statistics.md has them as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from rockgate.gateway.remoting.statistics.broker import BrokerStatistics, GroupKey
from rockgate.gateway.remoting.statistics.fall_behind import FallBehind
from rockgate.gateway.remoting.statistics.series import Field, Series
from rockgate.gateway.transcode import names
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic, TopicLookup

TOPIC_SETS: Final = {"TOPIC_PUT_NUMS": Field.COUNT, "TOPIC_PUT_SIZE": Field.SIZE}
"""Sets whose label is a topic, and the counter of each."""
QUEUE_SETS: Final = {"QUEUE_PUT_NUMS": Field.COUNT, "QUEUE_PUT_SIZE": Field.SIZE}
"""Those whose label is `topic@queue`."""
PUT_LATENCY: Final = "TOPIC_PUT_LATENCY"
"""The one whose label is `queue@topic`."""
GROUP_SETS: Final = {
    "GROUP_GET_NUMS": ("gets", Field.COUNT),
    "GROUP_GET_SIZE": ("gets", Field.SIZE),
    "GROUP_GET_LATENCY": ("gets", Field.MS),
    "GROUP_ACK_NUMS": ("acks", Field.COUNT),
    "GROUP_CK_NUMS": ("checkpoints", Field.COUNT),
    "SNDBCK_PUT_NUMS": ("send_backs", Field.COUNT),
    "SNDBCK2DLQ_TIMES": ("dead_letters", Field.COUNT),
    "DLQ_PUT_NUMS": ("dead_letters", Field.COUNT),
}
"""Those whose label is `topic@group`: their table, and the counter."""
FALL_SIZE: Final = "GROUP_GET_FALL_SIZE"
FALL_TIME: Final = "GROUP_GET_FALL_TIME"
BEHIND_SETS: Final = (FALL_SIZE, FALL_TIME)
"""Those whose label is `queue@topic@group`: how far the group is behind just now."""
_QUEUE_DIGITS_MAX: Final = 9


class FoundSeries(NamedTuple):
    """A series, and which of its counters a set is about."""

    series: Series
    field: Field


class StatisticSets:
    """Finds series by set and label."""

    def __init__(
        self,
        *,
        statistics: BrokerStatistics,
        behind: FallBehind,
        topics: TopicLookup,
        queues: Queues,
    ) -> None:
        self._statistics = statistics
        self._behind = behind
        self._topics = topics
        self._queues = queues

    def find(self, name: str, label: str) -> FoundSeries | None:
        """Return the series of a label of a set, as of now; None if there is none."""
        derived = self._statistics.derived(name, label)
        if derived is not None:
            return FoundSeries(derived, Field.COUNT)
        if name in TOPIC_SETS:
            topic = self._topic(label)
            series = None if topic is None else self._statistics.topic_series(topic)
            return None if series is None else FoundSeries(series, TOPIC_SETS[name])
        if name in QUEUE_SETS:
            topic_name, _, queue_id = label.rpartition("@")
            return self._of_queue(topic_name, queue_id, QUEUE_SETS[name])
        if name == PUT_LATENCY:
            queue_id, _, topic_name = label.partition("@")
            return self._of_queue(topic_name, queue_id, Field.MS)
        if name in GROUP_SETS:
            return self._of_group(name, label)
        return None

    def find_behind(self, name: str, label: str) -> int | None:
        """Return how far a group is behind in a queue, by set and label; None if not known."""
        if name not in BEHIND_SETS:
            return None
        queue_id, _, rest = label.partition("@")
        topic_name, _, group = rest.partition("@")
        queue = self._queue(topic_name, queue_id)
        if queue is None:
            return None
        measure = self._behind.size if name == FALL_SIZE else self._behind.ms
        return measure(names.to_store(group), queue)

    def _topic(self, name: str) -> Topic | None:
        return self._topics.find(names.to_store(name))

    def _queue(self, name: str, queue_id: str) -> Queue | None:
        topic = self._topic(name)
        if topic is None or not queue_id.isdecimal() or len(queue_id) > _QUEUE_DIGITS_MAX:
            return None
        return self._queues.find(topic.id, int(queue_id))

    def _of_queue(self, name: str, queue_id: str, field: Field) -> FoundSeries | None:
        queue = self._queue(name, queue_id)
        series = None if queue is None else self._statistics.queue_series(queue)
        return None if series is None else FoundSeries(series, field)

    def _of_group(self, name: str, label: str) -> FoundSeries | None:
        if name == "SNDBCK2DLQ_TIMES":
            # RocketMQ puts an owner before it, which is null, and a kind after it.
            label = label.removeprefix("null@").removesuffix("@SEND_BACK_TO_DLQ")
        topic_name, _, group = label.partition("@")
        topic = self._topic(topic_name)
        if topic is None:
            return None
        table, field = GROUP_SETS[name]
        rows: Mapping[GroupKey, Series] = getattr(self._statistics, table).rows
        series = rows.get((topic.id, names.to_store(group)))
        return None if series is None else FoundSeries(series, field)
