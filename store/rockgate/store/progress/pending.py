"""Commits without a waiting client, until they are appended: the newest per group and queue.

A round drains the records buffered when it begins, a bounded number at a time. A key is in one
place only: a newer commit of a record that the round has not reached yet replaces it there. This
module knows neither the log nor the time.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator

from rockgate.store.progress.records import Held

_Groups = dict[str, dict[bytes, dict[int, bytes]]]


class Pending:
    """Records without positions, by group, topic id and queue id."""

    __slots__ = ("_draining", "_waiting")

    def __init__(self) -> None:
        self._waiting: _Groups = {}
        self._draining: _Groups = {}

    def __bool__(self) -> bool:
        return bool(self._waiting or self._draining)

    @property
    def is_draining(self) -> bool:
        """Whether a round is in progress."""
        return bool(self._draining)

    def find(self, group: str, topic_id: bytes, queue_id: int) -> bytes | None:
        """Return a record, or None."""
        for groups in (self._waiting, self._draining):
            record = groups.get(group, {}).get(topic_id, {}).get(queue_id)
            if record is not None:
                return record
        return None

    def of(self, group: str) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield a group's topic ids, queue ids and records."""
        for groups in (self._waiting, self._draining):
            for topic_id, queues in groups.get(group, {}).items():
                for queue_id, record in queues.items():
                    yield topic_id, queue_id, record

    def topics_of(self, group: str) -> Iterator[bytes]:
        """Yield the topics in which a group has records; some may be repeated."""
        for groups in (self._waiting, self._draining):
            yield from groups.get(group, ())

    def queues_of(self, group: str, topic_id: bytes) -> Iterator[int]:
        """Yield the queues of a topic in which a group has records; some may be repeated."""
        for groups in (self._waiting, self._draining):
            yield from groups.get(group, {}).get(topic_id, ())

    def groups(self) -> Iterator[str]:
        """Yield the groups that have records."""
        yield from self._waiting
        yield from (group for group in self._draining if group not in self._waiting)

    def put(self, group: str, topic_id: bytes, queue_id: int, record: bytes) -> None:
        """Add or replace a record."""
        queues = self._draining.get(group, {}).get(topic_id, {})
        if queue_id not in queues:
            queues = self._waiting.setdefault(group, {}).setdefault(topic_id, {})
        queues[queue_id] = record

    def drop(
        self,
        group: str,
        topic_id: bytes | None = None,
        queue_ids: Collection[int] | None = None,
    ) -> None:
        """Drop some queues of a group's topic, a topic, or without a topic the whole group."""
        for groups in (self._waiting, self._draining):
            topics = groups.get(group)
            if topics is None:
                continue
            if topic_id is None:
                topics.clear()
            elif queue_ids is None:
                topics.pop(topic_id, None)
            elif (queues := topics.get(topic_id)) is not None:
                for queue_id in queue_ids:
                    queues.pop(queue_id, None)
                if not queues:
                    del topics[topic_id]
            if not topics:
                del groups[group]

    def drop_topics(self, topic_ids: Iterable[bytes]) -> None:
        """Drop topics of every group."""
        gone = frozenset(topic_ids)
        for groups in (self._waiting, self._draining):
            for group, topics in list(groups.items()):
                for topic_id in topics.keys() & gone:
                    del topics[topic_id]
                if not topics:
                    del groups[group]

    # A round

    def begin_round(self) -> None:
        """Start to drain the buffered records."""
        assert not self._draining, "the last round has not ended"
        self._draining, self._waiting = self._waiting, {}

    def take(self, count: int) -> list[Held]:
        """Remove up to `count` records of the round and return them."""
        held_commits: list[Held] = []
        while self._draining and count > 0:
            group, topics = self._draining.popitem()
            while topics and count > 0:
                topic_id, queues = topics.popitem()
                if len(queues) > count:
                    topics[topic_id] = queues
                    queues = dict(queues.popitem() for _ in range(count))
                held_commits.append(Held(group, topic_id, queues))
                count -= len(queues)
            if topics:
                self._draining[group] = topics
        return held_commits

    def give_up_round(self, held_commits: Iterable[Held]) -> None:
        """Buffer again the records taken but not appended, and the rest of the round."""
        for held in (*held_commits, *self.take(sys.maxsize)):
            topics = self._waiting.setdefault(held.group, {})
            topics.setdefault(held.topic_id, {}).update(held.queues)
