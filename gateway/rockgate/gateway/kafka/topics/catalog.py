"""The topics of a deployment, as Kafka's handlers see and change them.

One deployment has its topics in the store of this process (`kafka.embedded`); another would request
them from servers. Known topics are read without a request: a handler first lets the catalog `learn`
the topics that a request names, and then finds them one by one at no cost.

Changes are made in bulk; the result has the reason for each rejected topic.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeGuard, TypeVar

from rockgate.gateway.kafka.request.now import Now
from rockgate.protocol.kafka.errors import ErrorCode


class TopicView(Protocol):
    """A live view of a topic: holders of it see changes."""

    @property
    def name(self) -> str:
        """The deployment's name for it, which `request.names` makes Kafka's."""
        ...

    @property
    def id(self) -> bytes:
        """The 16 bytes of its id."""
        ...

    @property
    def queue_count(self) -> int:
        """The number of its partitions."""
        ...

    @property
    def is_internal(self) -> bool:
        """Whether it is internal, so that clients cannot change it."""
        ...

    @property
    def config(self) -> Mapping[str, str]:
        """The configs set for it."""
        ...

    @property
    def position(self) -> int:
        """A number that differs after each change of it."""
        ...


View = TypeVar("View", bound=TopicView)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to be created, by its name for Kafka clients."""

    name: str
    partition_count: int
    config: Mapping[str, str] = field(default_factory=dict)


class Refusal(NamedTuple):
    """Why one of several changes was rejected."""

    code: ErrorCode
    reason: str


Refusals: TypeAlias = Mapping[str, Refusal]
"""Rejections by name; everything else was done."""
NO_REFUSALS: Final[Refusals] = MappingProxyType({})


class TopicCatalog(Protocol):
    """All topics of a deployment that Kafka clients may see, by the names they know them by."""

    @property
    def version(self) -> int:
        """A number that differs after every change of the list of topics."""
        ...

    @property
    def topic_partitions_max(self) -> int:
        """Maximum number of partitions of a topic."""
        ...

    # Reading

    def learn(self, names: Iterable[str | None] | None) -> Awaitable[None] | None:
        """Learn the topics of these names, if some of them must be requested.

        A topic that a request names by its id has no name here: then, as without names, all topics
        are learned.
        """
        ...

    def find(self, name: str) -> TopicView | None:
        """A topic by name, if known."""
        ...

    def find_id(self, topic_id: bytes) -> TopicView | None:
        """A topic by id, if known."""
        ...

    def __iter__(self) -> Iterator[TopicView]:
        """All known topics; the walk may pause while topics come and go."""
        ...

    def names_from(self, name: str) -> Iterator[str]:
        """The names from one on, in order; a few may be of deleted topics."""
        ...

    def check_room(self, count: int) -> None:
        """POLICY_VIOLATION if that many more partitions would exceed the limit."""
        ...

    # Changing

    def create(self, news: Sequence[NewTopic]) -> Now[Refusals]:
        """Create topics; they can be found by name afterwards."""
        ...

    def grow(self, counts: Mapping[str, int]) -> Now[Refusals]:
        """Extend topics to the given numbers of partitions."""
        ...

    def delete(self, names: Sequence[str]) -> Now[Refusals]:
        """Delete topics with all their records."""
        ...

    def alter(self, configs: Mapping[str, Mapping[str, str]]) -> Now[Refusals]:
        """Replace all configs that are set for topics."""
        ...


def has_partition(topic: View | None, index: int) -> TypeGuard[View]:
    """Whether there is such a partition; else it is UNKNOWN_TOPIC_OR_PARTITION."""
    return topic is not None and 0 <= index < topic.queue_count
