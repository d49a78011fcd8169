"""Read-only access to several parts of the store together."""

from __future__ import annotations

from typing import Protocol

from rockgate.store.api.clock import Clock
from rockgate.store.api.log import Committing, Log
from rockgate.store.api.progress import CommittedOffsets
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.read import Lookup
from rockgate.store.api.topics import Topic, TopicLookup
from rockgate.store.config import StoreConfig

__all__ = ["CommittedLog", "ReadOnlyStore"]


class ReadOnlyStore(Protocol):
    """Read access, for those who change nothing."""

    @property
    def clock(self) -> Clock:
        """The store's clock."""

    @property
    def topics(self) -> TopicLookup:
        """All topics."""

    @property
    def queues(self) -> Queues:
        """The queues of all topics."""

    @property
    def lookup(self) -> Lookup:
        """Lookup by position and by key."""

    @property
    def log(self) -> Log:
        """The log that holds all queues."""

    @property
    def progress(self) -> CommittedOffsets:
        """The committed offsets of groups."""

    @property
    def disk_used_percent(self) -> float:
        """Disk usage in percent."""

    def queue(self, topic: Topic, queue_id: int) -> Queue:
        """Return one queue of a topic; UnknownQueue if there is no such queue."""


class CommittedLog(Protocol):
    """The log, and how much of it is committed."""

    @property
    def config(self) -> StoreConfig:
        """The store's settings, among them those of flushing."""

    @property
    def log(self) -> Log:
        """The log."""

    @property
    def commit(self) -> Committing:
        """The committed position and its waiters."""
