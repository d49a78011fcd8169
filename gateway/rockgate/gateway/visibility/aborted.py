"""Batches of aborted transactions: Kafka consumers skip them, RocketMQ consumers never see them.

Answers to Kafka consumers list the aborted transactions. RocketMQ's wire cannot express that, so
the batches are hidden here, by one lookup in the fold of transactions for each transactional one.
The lookup is repeated at every read: reads end before the last stable offset, where every
transaction is decided, but nothing here relies on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rockgate.gateway.transcode.messages import Origin
from rockgate.store.api.topics import TopicLookup


class TransactionIndex(Protocol):
    """The state of the transactions in partitions."""

    def aborted(
        self, topic_id: bytes, queue_id: int, offset: int, end: int
    ) -> Sequence[tuple[int, int, int]]:
        """Return first offset, marker offset and producer id of those that overlap a range."""


class AbortedBatches:
    """Whether the transaction of a batch was aborted."""

    def __init__(self, topics: TopicLookup, transactions: TransactionIndex) -> None:
        self._topics = topics
        self._transactions = transactions

    def __call__(self, origin: Origin) -> bool:
        """Whether a transactional batch is hidden."""
        topic = self._topics.owner(origin.topic, origin.position)
        if topic is None:
            return False
        found = self._transactions.aborted(topic.id, origin.queue_id, origin.base, origin.base + 1)
        return any(producer_id == origin.producer_id for _, _, producer_id in found)
