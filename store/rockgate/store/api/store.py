"""Read-only access to several parts of the store together."""

from __future__ import annotations

from typing import Protocol

from rockgate.store.api.clock import Clock
from rockgate.store.api.log import Flushing, Log
from rockgate.store.api.progress import CommittedOffsets
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.read import Lookup
from rockgate.store.api.topics import Topic, TopicLookup
from rockgate.store.config import StoreConfig

__all__ = ["FlushedLog", "ReadOnlyStore"]


class ReadOnlyStore(Protocol):
    """What can be read, for those who change nothing."""

    @property
    def clock(self) -> Clock:
        """The time it goes by."""

    @property
    def topics(self) -> TopicLookup:
        """All topics."""

    @property
    def queues(self) -> Queues:
        """Their queues."""

    @property
    def lookup(self) -> Lookup:
        """The way out, by position and by key."""

    @property
    def log(self) -> Log:
        """What all queues lie in."""

    @property
    def progress(self) -> CommittedOffsets:
        """Up to where groups have read."""

    @property
    def disk_used_percent(self) -> float:
        """How full its disk is."""

    def queue(self, topic: Topic, queue_id: int) -> Queue:
        """Return one queue of a topic; UnknownQueue if it has no such."""


class FlushedLog(Protocol):
    """The log, and how far it is on disk."""

    @property
    def config(self) -> StoreConfig:
        """What is to be on disk, and when."""

    @property
    def log(self) -> Log:
        """What was appended."""

    @property
    def flusher(self) -> Flushing:
        """What of it is on disk."""
