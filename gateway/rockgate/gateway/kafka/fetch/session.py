"""One fetch session: the partitions a client reads, and which of them may have news.

News of a partition: records, an error, a diverging epoch, or a high watermark or log start that was
not sent yet. A session is *dirty* in the partitions that may have news: those that were requested
again, those whose queue has changed, those with records left to send, those answered with an error.
Only dirty ones are ever examined, so a poll costs what changed and not what exists. They are
examined in the order in which they became dirty, and one that returned records moves to the end, so
that a busy partition does not starve the others.

A request without a session is a session that is not cached: its partitions are dirty only once.

A session holds its partitions, which refer to it weakly: when the last reference to it is dropped,
a hundred thousand of them are freed at once, without waiting for the garbage collector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol
from weakref import ReferenceType, ref

from rockgate.gateway.kafka.request import names
from rockgate.gateway.storage.long_poll import Poll, Watcher
from rockgate.protocol.kafka.hot.fetch import FetchedPartition
from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

UNSENT = -1


class QueueWatching(Protocol):
    """Notifies of changes of queues: the store's, or those of a cluster's brokers."""

    def watch(self, queue: Any, watcher: Watcher) -> None:
        """Notify a watcher of every change of a queue, until `unwatch`."""

    def unwatch(self, queue: Any, watcher: Watcher) -> None:
        """Stop notifying it."""


class WantedTopic:
    """A topic of which partitions are read; known by name, or by id from v13 on."""

    __slots__ = ("name", "store_name", "topic_id")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        self.store_name = names.to_store(name) if name.startswith(names.RESERVED) else name
        """The store's name, if known: of an id only once it was found."""


class Wanted:
    """A partition that is read: what was requested of it, and what was sent."""

    __slots__ = (
        "asked",
        "high_watermark",
        "is_known",
        "log_start",
        "queue",
        "session",
        "topic",
    )

    def __init__(
        self, session: ReferenceType[FetchSession], topic: WantedTopic, asked: FetchPartition
    ) -> None:
        self.session = session
        self.topic = topic
        self.asked = asked
        self.queue: object | None = None
        """The queue behind it, once it was found."""
        self.is_known = False
        """Whether its topic existed at any time since it was requested."""
        self.high_watermark = UNSENT
        self.log_start = UNSENT

    def noted(self) -> None:
        """Note that the queue has changed."""
        session = self.session()
        if session is not None:
            session.note(self)


class FetchSession:
    """The partitions of one session. Owned by the cache of sessions, or by one request."""

    __slots__ = (
        "__weakref__",
        "_is_watching",
        "_itself",
        "_topics",
        "_watching",
        "count",
        "created_ms",
        "dirty",
        "epoch",
        "examined_ms",
        "generation",
        "id",
        "is_to_be_cached",
        "news",
        "poll",
        "used_ms",
        "uses_ids",
    )

    def __init__(
        self, watching: QueueWatching, *, uses_ids: bool, is_to_be_cached: bool = False
    ) -> None:
        self._watching = watching
        self._itself = ref(self)
        self._topics: dict[str | bytes, tuple[WantedTopic, dict[int, Wanted]]] = {}
        self._is_watching = False
        self.uses_ids = uses_ids
        self.is_to_be_cached = is_to_be_cached
        """Whether the client requested a session."""
        self.id = 0
        """0 while it is not cached."""
        self.epoch = 0
        """The epoch that the next request must have."""
        self.created_ms = 0
        self.used_ms = 0
        self.examined_ms = 0
        """When all of it was last examined, where that is done again and again."""
        self.count = 0
        """How many partitions it has."""
        self.generation = 0
        """The generation of grants under which it was last read."""
        self.dirty: dict[Wanted, None] = {}
        """Partitions that may have news, in the order in which to read them."""
        self.news: dict[Wanted, None] = {}
        """Those that changed since the current request last read them."""
        self.poll: Poll[Any] | None = None
        """The request that waits, if any."""

    def __iter__(self) -> Iterator[Wanted]:
        for _, partitions in self._topics.values():
            yield from partitions.values()

    # Changing the partitions

    def want(self, topics: Iterable[FetchTopic]) -> None:
        """Add partitions, or change what is requested of existing ones."""
        for asked_topic in topics:
            self.want_of(asked_topic, asked_topic.partitions)

    def want_of(self, asked_topic: FetchTopic, asked_for: Iterable[FetchPartition]) -> None:
        """The same for some partitions of one topic."""
        itself, dirty = self._itself, self.dirty
        key = asked_topic.topic_id if self.uses_ids else asked_topic.topic
        found = self._topics.get(key)
        if found is None:
            found = self._topics[key] = (WantedTopic(asked_topic.topic, asked_topic.topic_id), {})
        topic, partitions = found
        for asked in asked_for:
            wanted = partitions.get(asked.partition)
            if wanted is None:
                wanted = partitions[asked.partition] = Wanted(itself, topic, asked)
                self.count += 1
            else:
                wanted.asked = asked
            dirty[wanted] = None

    def forget(self, topics: Iterable[ForgottenTopic]) -> None:
        """Drop partitions; unknown ones are ignored."""
        for forgotten in topics:
            key = forgotten.topic_id if self.uses_ids else forgotten.topic
            found = self._topics.get(key)
            if found is None:
                continue
            _, partitions = found
            for index in forgotten.partitions:
                wanted = partitions.pop(index, None)
                if wanted is not None:
                    self.count -= 1
                    self.dirty.pop(wanted, None)
                    self.news.pop(wanted, None)
                    self.bind(wanted, None)
            if not partitions:
                del self._topics[key]

    # Watching

    def note(self, wanted: Wanted) -> None:
        """Mark a partition as dirty, and wake the waiting poll."""
        self.dirty[wanted] = None
        self.news[wanted] = None
        if self.poll is not None:
            self.poll.wake()

    def note_grants(self, generation: int) -> None:
        """Mark everything as dirty if grants have changed: an error, or its end, is news.

        In a new session everything is.
        """
        if self.generation != generation:
            self.generation = generation
            if self.id:
                self.dirty.update(dict.fromkeys(self))

    def take_news(self) -> list[Wanted]:
        """Return the partitions that changed since the last call."""
        if not self.news:
            return []
        news = list(self.news)
        self.news.clear()
        return news

    def bind(self, wanted: Wanted, queue: object | None) -> None:
        """Set the queue of a partition: its topic may be deleted and created again."""
        if queue is wanted.queue:
            return
        if self._is_watching:
            if wanted.queue is not None:
                self._watching.unwatch(wanted.queue, wanted)
            if queue is not None:
                self._watching.watch(queue, wanted)
        wanted.queue = queue
        if queue is not None:
            wanted.is_known = True

    def watch(self) -> None:
        """Subscribe to changes of the queues."""
        if not self._is_watching:
            self._is_watching = True
            for wanted in self:
                if wanted.queue is not None:
                    self._watching.watch(wanted.queue, wanted)

    def unwatch(self) -> None:
        """Unsubscribe from changes."""
        if self._is_watching:
            self._is_watching = False
            for wanted in self:
                if wanted.queue is not None:
                    self._watching.unwatch(wanted.queue, wanted)

    def interrupt(self) -> None:
        """Complete the waiting poll with what is available: no further poll will come."""
        if self.poll is not None:
            self.poll.look_last()

    # Reporting

    def keep_news(self, reported: Iterable[Wanted]) -> None:
        """Examine those that changed since `take_news` again: what was sent predates the change."""
        if self.news:
            self.dirty.update((wanted, None) for wanted in reported if wanted in self.news)

    def report(self, wanted: Wanted, fetched: FetchedPartition, end: int) -> bool:
        """Return whether a response has news, and remember what it reported.

        `end` is the offset after the last that this reader may see.
        """
        _, code, high_watermark, _, log_start, records, _, _, diverging, _ = fetched
        if code:
            # When the error is resolved, everything is news again.
            wanted.high_watermark = UNSENT
            return True
        has_news = (
            high_watermark != wanted.high_watermark
            or log_start != wanted.log_start
            or diverging is not None
        )
        wanted.high_watermark = high_watermark
        wanted.log_start = log_start
        if records:
            self.dirty.pop(wanted, None)
            self.dirty[wanted] = None
            return True
        if diverging is None and end <= wanted.asked.fetch_offset:
            self.dirty.pop(wanted, None)
        return has_news
