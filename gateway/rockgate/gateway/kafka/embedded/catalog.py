"""The topics as Kafka clients may see them: by name, by id, all of them, and in order of name.

A topic whose name cannot be expressed on Kafka's wire does not exist for Kafka clients, under any
name or id. The total number of partitions is counted here too.

RocketMQ's system topics exist by name and id, and are not listed unless a setting says so: to a
Kafka client they are a dozen topics that it did not create and cannot use.

All of it is known at once. A change is one entry of the log: it is made as a whole, or refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.errors import RequestError, explain
from rockgate.gateway.kafka.request.names import NAME_SIZE_MAX, in_store
from rockgate.gateway.kafka.topics.catalog import NO_REFUSALS, NewTopic, Refusal, Refusals
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api import topics as store
from rockgate.store.api.topics import QUEUE_COUNT_MAX, Topic, Topics
from rockgate.store.errors import StoreError

_DEAD_MIN = 1_000


class StoreCatalog:
    """A view of the store's topics, with their names sorted."""

    def __init__(
        self, topics: Topics, partitions_max: int, *, lists_system_topics: bool = False
    ) -> None:
        self._topics = topics
        self._lists_system_topics = lists_system_topics
        self._partitions_max = partitions_max
        self.topic_partitions_max = QUEUE_COUNT_MAX
        # None once most names were of deleted topics: rebuilt on the next use.
        self._sorted: list[str] | None = None
        self._unsorted_count = 0
        self._dead_count = 0
        self.partition_count = sum(topic.queue_count for topic in topics)
        """Partitions of all topics, hidden ones included."""
        topics.on_created.append(self._created)
        topics.on_deleted.append(self._deleted)
        topics.on_grown.append(self._grown)

    @property
    def version(self) -> int:
        """Grows with every change of the list of topics."""
        return self._topics.version

    def check_room(self, count: int) -> None:
        """POLICY_VIOLATION if that many more partitions would exceed the limit."""
        if self.partition_count + count > self._partitions_max:
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"Creating {count:,} partitions would exceed topics.partitions_max "
                f"({self._partitions_max:,}); there are {self.partition_count:,}.",
            )

    def learn(self, names: Iterable[str | None] | None) -> None:
        """Nothing has to be requested."""

    def find(self, name: str) -> Topic | None:
        """A topic by the name that Kafka clients know it by."""
        if len(name) > NAME_SIZE_MAX:
            return None
        known = in_store(name)
        return None if known is None else self._topics.find(known)

    def find_id(self, topic_id: bytes) -> Topic | None:
        """A topic by id."""
        topic = self._topics.find_id(topic_id)
        return topic if topic is not None and names.is_visible(topic.name) else None

    def __iter__(self) -> Iterator[Topic]:
        """All that are listed; the walk may pause while topics come and go."""
        return (topic for topic in self._topics if self._is_listed(topic))

    def names_from(self, name: str) -> Iterator[str]:
        """The names from one on, in order; a few may be of deleted topics."""
        found = self._sorted
        if found is None or self._unsorted_count:
            found = self._sorted = self._sort()
        return (found[at] for at in range(bisect_left(found, name), len(found)))

    def create(self, news: Sequence[NewTopic]) -> Refusals:
        """Create topics."""
        try:
            self._topics.create_many(
                [
                    store.NewTopic(
                        name=new.name, queue_count=new.partition_count, config=new.config
                    )
                    for new in news
                ]
            )
        except StoreError as error:
            return _refused([new.name for new in news], error)
        return NO_REFUSALS

    def grow(self, counts: Mapping[str, int]) -> Refusals:
        """Add partitions to topics."""
        try:
            self._topics.grow({self._get(name): count for name, count in counts.items()})
        except StoreError as error:
            return _refused(counts, error)
        return NO_REFUSALS

    def delete(self, names: Sequence[str]) -> Refusals:
        """Delete topics with all their records."""
        try:
            self._topics.delete([self._get(name) for name in names])
        except StoreError as error:
            return _refused(names, error)
        return NO_REFUSALS

    def alter(self, configs: Mapping[str, Mapping[str, str]]) -> Refusals:
        """Replace all configs that are set for topics."""
        try:
            self._topics.set_config({self._get(name): config for name, config in configs.items()})
        except StoreError as error:
            return _refused(configs, error)
        return NO_REFUSALS

    def _get(self, name: str) -> Topic:
        return self._topics.get(names.to_store(name))

    def _sort(self) -> list[str]:
        # What was sorted stays a sorted run, which makes this little more than a merge. The list
        # is another one from now on, so that a walk that pauses continues over the one it began.
        known = self._sorted
        if known is None:
            known = [names.to_kafka(topic.name) for topic in self]
        elif self._dead_count:
            known = [name for name in known if self.find(name) is not None]
        self._unsorted_count = self._dead_count = 0
        return sorted(dict.fromkeys(known))

    def _created(self, topic: Topic) -> None:
        self.partition_count += topic.queue_count
        name = names.to_kafka(topic.name)
        if self._sorted is not None and self._is_listed(topic):
            self._sorted.append(name)
            self._unsorted_count += 1

    def _is_listed(self, topic: Topic) -> bool:
        is_hidden = topic.is_internal and topic.name not in names.INTERNAL
        return names.is_visible(topic.name) and (self._lists_system_topics or not is_hidden)

    def _deleted(self, topic: Topic) -> None:
        self.partition_count -= topic.queue_count
        if self._sorted is not None:
            self._dead_count += 1
            if self._dead_count > max(_DEAD_MIN, len(self._sorted) // 2):
                self._sorted = None
                self._unsorted_count = self._dead_count = 0

    def _grown(self, topic: Topic, had: int) -> None:
        self.partition_count += topic.queue_count - had


def _refused(names: Iterable[str], error: StoreError) -> Refusals:
    refusal = Refusal(*explain(error))
    return dict.fromkeys(names, refusal)
