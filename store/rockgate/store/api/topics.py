"""Topics: what they are, and how they are created, changed and deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from rockgate.store.policy import QueuePolicy
from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import QUEUE_COUNT_MAX, READ, WRITE, NewTopic

__all__ = [
    "QUEUE_COUNT_MAX",
    "READ",
    "WRITE",
    "NewTopic",
    "OnGrown",
    "OnLogStarts",
    "OnTopic",
    "QueuePolicy",
    "Topic",
    "TopicEvents",
    "TopicLookup",
    "Topics",
    "WatchedTopics",
]

OnTopic = Callable[[Topic], None]
OnGrown = Callable[[Topic, int], None]
"""Called with the topic and its previous number of queues."""
OnLogStarts = Callable[[Topic, Mapping[int, int]], None]
"""Called with the topic and the offsets that advanced, by queue id."""


class TopicLookup(Protocol):
    """Read access to topics."""

    @property
    def version(self) -> int:
        """Increases with every change that is visible in a listing of topics."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Topic]:
        """Iterate over all topics; the iteration may pause while topics are created and deleted."""

    def find(self, name: str, /) -> Topic | None:
        """Return a topic by name, or None."""

    def find_id(self, topic_id: bytes, /) -> Topic | None:
        """Return a topic by id, or None."""

    def get(self, name: str) -> Topic:
        """Return a topic by name; UnknownTopic if there is none."""

    def owner(self, encoded_name: bytes, position: int) -> Topic | None:
        """Return the topic that a log entry belongs to; None if that incarnation was deleted."""


class TopicEvents(Protocol):
    """Callbacks after topics have changed."""

    @property
    def on_created(self) -> list[OnTopic]:
        """After a topic was created."""

    @property
    def on_deleted(self) -> list[OnTopic]:
        """After a topic was deleted."""

    @property
    def on_grown(self) -> list[OnGrown]:
        """After a topic got more queues."""

    @property
    def on_altered(self) -> list[OnTopic]:
        """After config, permission or the numbers of read and write queues changed."""

    @property
    def on_log_starts(self) -> list[OnLogStarts]:
        """After log starts of queues advanced."""


class WatchedTopics(TopicLookup, TopicEvents, Protocol):
    """Topics, for those who maintain something per topic."""


class Topics(WatchedTopics, Protocol):
    """All topics, and the only way to change them."""

    def create(self, new: NewTopic) -> Topic:
        """Create one topic; TopicExists, InvalidTopic."""

    def create_many(self, news: Sequence[NewTopic]) -> list[Topic]:
        """Create all of these topics or, if one of them is invalid, none."""

    def delete(self, topics: Iterable[Topic]) -> None:
        """Delete topics with everything in them; a name may be created again at once."""

    def grow(self, counts: Mapping[Topic, int]) -> None:
        """Give topics more queues; InvalidTopic for fewer than a topic has."""

    def set_queues(self, queues: Mapping[Topic, tuple[int, int]]) -> None:
        """Set the numbers of read and write queues; either may shrink."""

    def set_config(self, configs: Mapping[Topic, Mapping[str, str]]) -> None:
        """Replace the configs of topics, each as a whole."""

    def set_permission(self, permissions: Mapping[Topic, int]) -> None:
        """Set what producers and consumers may do: WRITE, READ, both or neither."""

    def advance_log_starts(self, starts: Mapping[Topic, Mapping[int, int]]) -> None:
        """Advance the log starts of queues; those that would not advance are skipped."""
