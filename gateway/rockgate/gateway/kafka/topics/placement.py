"""Placement: the nodes of a deployment, the leaders of partitions, the coordinators.

On a single node it is always that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.kafka.request.now import Now
from rockgate.gateway.kafka.topics.catalog import TopicView

NO_NODE = -1
"""The leader of a partition that has none."""


class CoordinatorType(IntEnum):
    """The types of coordinators, as Kafka numbers them."""

    GROUP = 0
    TRANSACTION = 1


class Node(NamedTuple):
    """A node, and its address for a client."""

    id: int
    host: str
    port: int


class LeaderRun(NamedTuple):
    """Consecutive partitions of a topic with one leader."""

    first: int
    end: int
    node_id: int
    epoch: int


class Placement(Protocol):
    """The nodes of a deployment, and what each of them serves."""

    @property
    def version(self) -> int:
        """A number that differs after every change of leaders."""
        ...

    @property
    def controller_id(self) -> int:
        """The node that serves as controller."""
        ...

    def nodes(self, peer: Peer) -> Sequence[Node]:
        """All nodes, with their addresses for the client of a connection."""
        ...

    def leaders(self, topic: TopicView, first: int, end: int) -> Iterable[LeaderRun]:
        """The leaders of a topic's partitions from one up to another, in order."""
        ...

    def coordinator(self, type_: CoordinatorType, key: str, peer: Peer) -> Now[Node]:
        """The coordinator of a group or a transactional id; RequestError if there is none."""
        ...
