"""What consumers were sent, by topic: counted as answers to Fetch are written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rockgate.gateway.kafka.request import names
from rockgate.store.api.topics import Topic


class Traffic:
    """Bytes of records by topic; a version of Fetch has its name or its id."""

    def __init__(self) -> None:
        self._by_name: dict[str, int] = {}
        self._by_id: dict[bytes, int] = {}

    def count(self, topics: Iterable[Any]) -> None:
        """Count the records of an answer."""
        for name, topic_id, partitions in topics:
            size = 0
            for partition in partitions:
                for records in partition.records or ():
                    size += len(records)
            if not size:
                continue
            if name:
                self._by_name[name] = self._by_name.get(name, 0) + size
            else:
                self._by_id[topic_id] = self._by_id.get(topic_id, 0) + size

    def fetched(self, topic: Topic) -> int:
        """What was sent of a topic since the start."""
        name = names.to_kafka(topic.name)
        return self._by_name.get(name, 0) + self._by_id.get(topic.id, 0)

    def forget(self, topic: Topic) -> None:
        """Forget a topic that is gone."""
        self._by_name.pop(names.to_kafka(topic.name), None)
        self._by_id.pop(topic.id, None)
