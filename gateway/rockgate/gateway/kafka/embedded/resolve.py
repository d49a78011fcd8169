"""Which topic and which queue a client means, for handlers that work on the store itself.

Those that deployments share ask the catalog. The fast cases of Produce and Fetch say the same once
more: a call for each topic would make finding its queues a tenth slower.
"""

from __future__ import annotations

from rockgate.gateway.kafka.request.names import RESERVED, to_store
from rockgate.gateway.kafka.topics.catalog import TopicView
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic, TopicLookup


def find_topic(topics: TopicLookup, name: str) -> Topic | None:
    """Return the topic that a client names, or None: UNKNOWN_TOPIC_OR_PARTITION."""
    return topics.find(to_store(name) if name.startswith(RESERVED) else name)


def find_queue(queues: Queues, topic: TopicView | None, index: int) -> Queue | None:
    """Return a partition of a topic, or None: UNKNOWN_TOPIC_OR_PARTITION."""
    if topic is None:
        return None
    found = queues.of(topic.id)
    return found[index] if 0 <= index < len(found) else None
