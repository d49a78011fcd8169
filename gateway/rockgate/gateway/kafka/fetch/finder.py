"""Finding the queues of the topics that a Fetch reads, and what its client may read of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rockgate.gateway.kafka.fetch.session import WantedTopic
from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.kafka.request.permitted import GrantGeneration
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import TopicLookup


class QueueFinder(Protocol):
    """Finds the queues of topics: the store's, or those of a cluster's brokers."""

    def queues(self, wanted: WantedTopic, by_id: bool) -> Sequence[Any] | ErrorCode:
        """Return a topic's queues, or why they cannot be read."""


class Finder:
    """Finds the queues of topics."""

    def __init__(self, topics: TopicLookup, queues: Queues) -> None:
        self._topics = topics
        self._queues = queues

    def queues(self, wanted: WantedTopic, by_id: bool) -> Sequence[Queue] | ErrorCode:
        """Return a topic's queues, or why they cannot be read."""
        topics = self._topics
        topic = topics.find_id(wanted.topic_id) if by_id else topics.find(wanted.store_name)
        if topic is not None:
            wanted.store_name = topic.name
            if not topic.is_readable:
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return self._queues.of(topic.id)
        if by_id and not wanted.store_name:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if by_id and topics.find(wanted.store_name) is not None:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Reading(Protocol):
    """What clients may read, by the grants of now."""

    @property
    def grants(self) -> GrantGeneration:
        """What decides."""

    def may_read(self, peer: Peer, key: str | bytes, store_name: str, /) -> bool:
        """Whether a client may fetch from a topic; remembered in `peer.readable` if it may."""
