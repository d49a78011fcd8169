"""The store as a whole, for those who need several of its parts."""

from __future__ import annotations

from typing import Protocol, Unpack

from rockgate.store.api.append import Appender
from rockgate.store.api.clock import Clock
from rockgate.store.api.delay import Deliveries
from rockgate.store.api.log import Epochs, Flushing, Log, Warmth
from rockgate.store.api.progress import CommittedOffsets, Progress
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.read import Lookup, Reader
from rockgate.store.api.topics import Topic, TopicLookup, Topics
from rockgate.store.attachments import Attachments
from rockgate.store.config import StoreConfig

__all__ = ["FlushedLog", "ReadOnlyStore", "Store"]


class ReadOnlyStore(Protocol):
    """What can be looked at, for those who change nothing."""

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
    def reader(self) -> Reader:
        """The way out, by offset, as far as anything is visible."""

    @property
    def lookup(self) -> Lookup:
        """The way out, by position and by key."""

    @property
    def log(self) -> Log:
        """What all queues lie in."""

    @property
    def warmth(self) -> Warmth:
        """What of it is in memory."""

    @property
    def epochs(self) -> Epochs:
        """The runs in which it was written."""

    @property
    def progress(self) -> CommittedOffsets:
        """Up to where groups have read."""

    @property
    def disk_used_percent(self) -> float:
        """How full the disk is that it lies on."""

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


class Store(ReadOnlyStore, FlushedLog, Protocol):
    """All parts of one store. Its methods, and theirs, belong to one thread."""

    def attach(self, **given: Unpack[Attachments]) -> None:
        """Hang what others do on to the store, each once."""

    @property
    def topics(self) -> Topics:
        """All topics, and how they are changed."""

    @property
    def appender(self) -> Appender:
        """The way in."""

    @property
    def progress(self) -> Progress:
        """Up to where groups have read, and how that is changed."""

    @property
    def deliveries(self) -> Deliveries:
        """How it is delivered."""
