"""The topics of a catalog, as consumer groups see them."""

from __future__ import annotations

from collections.abc import Iterator

from rockgate.gateway.kafka.groups.consumer.member import TopicId
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.topics.catalog import TopicCatalog, TopicView


class CatalogTopics:
    """Topics that can be subscribed to."""

    def __init__(self, catalog: TopicCatalog) -> None:
        self._catalog = catalog

    @property
    def version(self) -> int:
        """A number that differs after every change of the list of topics."""
        return self._catalog.version

    def find(self, name: str) -> TopicView | None:
        """A topic by name."""
        return self._catalog.find(name)

    def name_of(self, topic_id: TopicId) -> str | None:
        """The name of a topic, by id."""
        topic = self._catalog.find_id(topic_id)
        return None if topic is None else names.to_kafka(topic.name)

    def names(self) -> Iterator[str]:
        """The names that patterns are compared with, Kafka's internal topics among them."""
        return (
            names.to_kafka(topic.name)
            for topic in self._catalog
            if not topic.is_internal or topic.name in names.INTERNAL
        )
