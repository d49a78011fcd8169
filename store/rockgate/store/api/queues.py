"""Queues: which offsets there are, and where each of them lies."""

from __future__ import annotations

from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.queues.tags import tag_code

__all__ = [
    "Queue",
    "QueueTable",
    "Unit",
    "tag_code",
]
