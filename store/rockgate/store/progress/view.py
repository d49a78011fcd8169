"""Read access to committed offsets: by group, and by queue."""

from __future__ import annotations

from collections.abc import Iterator

from rockgate.store.progress.pending import Pending
from rockgate.store.progress.records import Committed, Held, Key, position_key, unpack_record
from rockgate.store.state.roster import Roster


class CommittedOffsets:
    """Read access to committed offsets; Progress fills it."""

    def __init__(self) -> None:
        self._roster: Roster[Held] = Roster()
        # Both map to slots of the roster.
        self._groups: dict[str, dict[bytes, int]] = {}
        self._topics: dict[bytes, dict[str, int]] = {}
        self._pending = Pending()

    def fetch(self, group: str, topic_id: bytes, queue_id: int) -> Committed | None:
        """Return a group's committed offset in a queue, or None."""
        if self._pending:
            bare = self._pending.find(group, topic_id, queue_id)
            if bare is not None:
                return unpack_record(bare, 0)
        record = self._record(group, topic_id, queue_id)
        return None if record is None else unpack_record(record)

    def fetch_group(self, group: str) -> Iterator[tuple[bytes, int, Committed]]:
        """Yield a group's topic ids, queue ids and offsets; consume it before the next change."""
        pending = self._pending
        for place in self._groups.get(group, {}).values():
            held = self._roster[place]
            for queue_id, record in held.queues.items():
                if pending and pending.find(group, held.topic_id, queue_id) is not None:
                    continue
                yield held.topic_id, queue_id, unpack_record(record)
        for topic_id, queue_id, bare in pending.of(group):
            yield topic_id, queue_id, unpack_record(bare, 0)

    def topics_of(self, group: str) -> list[bytes]:
        """Return the topics in which a group has committed offsets."""
        held = self._groups.get(group, {})
        waiting = self._pending.topics_of(group) if self._pending else ()
        return list(dict.fromkeys((*held, *waiting)))

    def queues_of(self, group: str, topic_id: bytes) -> list[int]:
        """Return the queues of a topic in which a group has committed offsets."""
        place = self._groups.get(group, {}).get(topic_id)
        held = () if place is None else self._roster[place].queues
        waiting = self._pending.queues_of(group, topic_id) if self._pending else ()
        return list(dict.fromkeys((*held, *waiting)))

    def count(self, group: str, most: int) -> int:
        """Return the number of a group's offsets; counting stops above `most`."""
        count = 0
        for place in self._groups.get(group, {}).values():
            count += len(self._roster[place].queues)
            if count > most:
                break
        return count

    def groups(self) -> Iterator[str]:
        """Yield the groups with committed offsets; consume it before the next change."""
        yield from self._groups
        yield from (group for group in self._pending.groups() if group not in self._groups)

    def groups_of(self, topic_id: bytes) -> Iterator[str]:
        """Return the groups that have committed offsets in a topic."""
        return iter(self._topics.get(topic_id, ()))

    def page(self, place: int, count: int) -> tuple[int | None, list[tuple[Key, Committed]]]:
        """Return about `count` appended offsets from a place on, and the next place.

        Start at place 0; None is the end. Progress may change between two pages: what exists
        throughout is returned once.
        """
        found: list[tuple[Key, Committed]] = []
        for at, held in self._roster.walk(place):
            if count <= 0:
                return at, found
            count -= 1
            if held is not None:
                found += [
                    (Key(held.group, held.topic_id, queue_id), unpack_record(record))
                    for queue_id, record in held.queues.items()
                ]
                count -= len(held.queues)
        return None, found

    def page_since(self, place: int, count: int, position: int) -> tuple[int | None, list[Key]]:
        """The same, of offsets that were changed at a position of the log or behind it."""
        found: list[Key] = []
        since = position_key(max(0, position))
        for at, held in self._roster.walk(place):
            if count <= 0:
                return at, found
            count -= 1
            if held is not None:
                found += [
                    Key(held.group, held.topic_id, queue_id)
                    for queue_id, record in held.queues.items()
                    if record >= since
                ]
                count -= len(held.queues)
        return None, found

    def _record(self, group: str, topic_id: bytes, queue_id: int) -> bytes | None:
        place = self._groups.get(group, {}).get(topic_id)
        return self._roster[place].queues.get(queue_id) if place is not None else None
