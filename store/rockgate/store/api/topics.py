"""Topics: what they are, and how they are made, changed and removed."""

from __future__ import annotations

from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import QUEUE_COUNT_MAX, READ, WRITE, NewTopic
from rockgate.store.state.topics import Topics

__all__ = [
    "QUEUE_COUNT_MAX",
    "READ",
    "WRITE",
    "NewTopic",
    "Topic",
    "Topics",
]
