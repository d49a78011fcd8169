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
"""With the number of queues that the topic had before."""
OnLogStarts = Callable[[Topic, Mapping[int, int]], None]
"""With the offsets that moved, by queue id."""


class TopicLookup(Protocol):
    """Which topics there are."""

    @property
    def version(self) -> int:
        """Grows with every change that a listing of topics could show."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Topic]:
        """Walk all topics; the walk may pause while topics come and go."""

    def find(self, name: str, /) -> Topic | None:
        """Return a topic by name, or None."""

    def find_id(self, topic_id: bytes, /) -> Topic | None:
        """Return a topic by id, or None."""

    def get(self, name: str) -> Topic:
        """Return a topic by name; UnknownTopic if there is none."""

    def owner(self, encoded_name: bytes, position: int) -> Topic | None:
        """Return the topic that a log entry belongs to; None for one of an earlier life."""


class TopicEvents(Protocol):
    """Who is called after topics have changed."""

    @property
    def on_created(self) -> list[OnTopic]:
        """There is a new topic."""

    @property
    def on_deleted(self) -> list[OnTopic]:
        """A topic is gone."""

    @property
    def on_grown(self) -> list[OnGrown]:
        """A topic has more queues."""

    @property
    def on_altered(self) -> list[OnTopic]:
        """Config, permission or the numbers of queues read and written are others now."""

    @property
    def on_log_starts(self) -> list[OnLogStarts]:
        """Queues begin at later offsets."""


class WatchedTopics(TopicLookup, TopicEvents, Protocol):
    """Topics for those who keep something of their own for each."""


class Topics(WatchedTopics, Protocol):
    """All topics, and the only way to change them."""

    def create(self, new: NewTopic) -> Topic:
        """Create one topic; TopicExists, InvalidTopic."""

    def create_many(self, news: Sequence[NewTopic]) -> list[Topic]:
        """Create all of these topics or, if one of them cannot be, none."""

    def delete(self, topics: Iterable[Topic]) -> None:
        """Delete topics with all they hold; a name may be created again at once."""

    def grow(self, counts: Mapping[Topic, int]) -> None:
        """Give topics more queues; fewer than a topic has is InvalidTopic."""

    def set_queues(self, queues: Mapping[Topic, tuple[int, int]]) -> None:
        """Set how many queues are read and how many written; either number may shrink."""

    def set_config(self, configs: Mapping[Topic, Mapping[str, str]]) -> None:
        """Replace topics' configs, each as a whole."""

    def set_permission(self, permissions: Mapping[Topic, int]) -> None:
        """Set what producers and consumers may do: WRITE, READ, both or neither."""

    def advance_log_starts(self, starts: Mapping[Topic, Mapping[int, int]]) -> None:
        """Move the first offsets of queues forward; what would not move forward is left out."""
