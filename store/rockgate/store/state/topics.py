"""Topics: names, ids, queues, permissions, configs and queue start offsets.

A topic is identified by its id. A name belongs to one topic at a time; after delete and create the
same name is another topic, with another id and a later `created_position`, and everything in the
log before that position belongs to the deleted incarnation and never comes back.

Every change is a state entry, made by one of the methods below: validate, append, and when the
append returns, `apply` has changed the state. So nothing is changed in two ways.

Deleted topics leave nothing behind. A replay may find the creation of a topic whose deletion is
already in the state; it then also finds the deletion, because it always continues to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rockgate.store.errors import (
    OffsetOutOfRange,
    TopicExists,
    UnknownQueue,
    UnknownTopic,
)
from rockgate.store.policy import PolicyOf, default_policy
from rockgate.store.state.fold import Change, Journal
from rockgate.store.state.roster import Roster
from rockgate.store.state.snapshot_slices import Measured, sliced
from rockgate.store.state.topic import Piece, Topic, pack_slice, save, size_of, unpack_slice
from rockgate.store.state.topicchanges import (
    TOPICS_TOPIC,
    ConfigSet,
    Created,
    LogStarts,
    NewTopic,
    PermissionSet,
    QueuesSet,
    TopicChangeKind,
    check_config,
    check_permission,
    check_queue_count,
    decode,
    encode,
    random_topic_id,
)

__all__ = ["SLICE_COST", "NewTopic", "Topic", "Topics"]

SLICE_COST: Final = 700
_LOG_STARTS_PER_CHANGE: Final = 20_000


OnTopic = Callable[[Topic], None]
OnGrown = Callable[[Topic, int], None]
OnLogStarts = Callable[[Topic, Mapping[int, int]], None]


_FREEING: Final = frozenset(
    (TopicChangeKind.DELETE, TopicChangeKind.CONFIG, TopicChangeKind.LOG_STARTS)
)
"""Changes that free disk space: they are accepted as upkeep."""


class Topics:
    """The fold of all topics, and the only way to change them."""

    name: Final = "topics"
    topics: Final = frozenset((TOPICS_TOPIC,))

    def __init__(
        self,
        journal: Journal,
        *,
        upkeep: Journal | None = None,
        new_id: Callable[[], bytes] = random_topic_id,
        policy_of: PolicyOf = default_policy,
        slice_cost: int = SLICE_COST,
    ) -> None:
        self._journal = journal
        self._upkeep = upkeep or journal
        self._new_id = new_id
        self._policy_of = policy_of
        self._slice_cost = slice_cost
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._roster: Roster[Topic] = Roster()
        self.version = 0
        """Increases with every change that is visible in a listing of topics; not with log starts.
        """
        self.find: Callable[[str], Topic | None] = self._by_name.get
        """Return a topic by name, or None."""
        self.find_id: Callable[[bytes], Topic | None] = self._by_id.get
        """Return a topic by id, or None."""
        # Listeners, called by `apply` after the state has changed; `restore` calls none.
        self.on_created: list[OnTopic] = []
        self.on_deleted: list[OnTopic] = []
        self.on_grown: list[OnGrown] = []
        """Called with the topic and its previous number of queues."""
        self.on_altered: list[OnTopic] = []
        """After config, permission or the numbers of read and write queues changed."""
        self.on_log_starts: list[OnLogStarts] = []
        """Called with the topic and the offsets that advanced, by queue id."""

    # Reading

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        """Iterate over all topics; the iteration may pause while topics are created and deleted."""
        return (topic for _, topic in self._roster.walk() if topic is not None)

    def get(self, name: str) -> Topic:
        """Return a topic by name; UnknownTopic if there is none."""
        topic = self._by_name.get(name)
        if topic is None:
            raise UnknownTopic(name)
        return topic

    def owner(self, encoded_name: bytes, position: int) -> Topic | None:
        """Return the topic that a log entry belongs to; None if that incarnation was deleted."""
        topic = self._by_name.get(encoded_name.decode("utf-8", "replace"))
        return topic if topic is not None and topic.created_position <= position else None

    # Changing

    def create(self, new: NewTopic) -> Topic:
        """Create one topic; TopicExists, InvalidTopic."""
        return self.create_many((new,))[0]

    def create_many(self, news: Sequence[NewTopic]) -> list[Topic]:
        """Create all of these topics or, if one of them is invalid, none."""
        names = set()
        for new in news:
            new.check()
            if new.name in self._by_name or new.name in names:
                raise TopicExists(new.name)
            names.add(new.name)
        self._append(TopicChangeKind.CREATE, [self._created(new) for new in news])
        return [self._by_name[new.name] for new in news]

    def _created(self, new: NewTopic) -> Created:
        topic_id = self._new_id()
        assert len(topic_id) == 16 and any(topic_id), "a topic id is 16 bytes and not zero"
        return Created(
            name=new.name,
            topic_id=topic_id,
            queue_count=new.queue_count,
            permission=new.permission,
            is_internal=new.is_internal,
            config=dict(new.config),
        )

    def delete(self, topics: Iterable[Topic]) -> None:
        """Delete topics with everything in them; a name may be created again at once."""
        self._append(
            TopicChangeKind.DELETE, list(dict.fromkeys(self._alive(topic).id for topic in topics))
        )

    def grow(self, counts: Mapping[Topic, int]) -> None:
        """Give topics more queues; InvalidTopic for fewer than a topic has."""
        for topic, count in counts.items():
            check_queue_count(topic.name, count, topic.queue_count)
        self.set_queues({topic: (count, count) for topic, count in counts.items()})

    def set_queues(self, queues: Mapping[Topic, tuple[int, int]]) -> None:
        """Set the numbers of read and write queues.

        Either may shrink, so that consumers can drain queues to which producers no longer write.
        The queues remain: `queue_count` is the highest number there ever was.
        """
        items = []
        for topic, (read_queues, write_queues) in queues.items():
            check_queue_count(topic.name, read_queues, 0)
            check_queue_count(topic.name, write_queues, 0)
            if (topic.read_queues, topic.write_queues) != (read_queues, write_queues):
                items.append(QueuesSet(self._alive(topic).id, read_queues, write_queues))
        self._append(TopicChangeKind.QUEUES, items)

    def set_config(self, configs: Mapping[Topic, Mapping[str, str]]) -> None:
        """Replace the configs of topics, each as a whole."""
        items = []
        for topic, config in configs.items():
            check_config(topic.name, config)
            if self._alive(topic).config != config:
                items.append(ConfigSet(topic.id, dict(config)))
        self._append(TopicChangeKind.CONFIG, items)

    def set_permission(self, permissions: Mapping[Topic, int]) -> None:
        """Set what producers and consumers may do: WRITE, READ, both or neither."""
        items = []
        for topic, permission in permissions.items():
            check_permission(topic.name, permission)
            if self._alive(topic).permission != permission:
                items.append(PermissionSet(topic.id, permission))
        self._append(TopicChangeKind.PERMISSION, items)

    def advance_log_starts(self, starts: Mapping[Topic, Mapping[int, int]]) -> None:
        """Advance the log starts of queues; those that would not advance are skipped."""
        items = []
        for topic, offsets in starts.items():
            known = self._alive(topic).log_starts
            for queue_id, offset in offsets.items():
                if not 0 <= queue_id < topic.queue_count:
                    raise UnknownQueue(topic.name, queue_id)
                if not 0 <= offset < 1 << 63:
                    raise OffsetOutOfRange(offset, known.get(queue_id, 0), (1 << 63) - 1)
            moved = [pair for pair in offsets.items() if pair[1] > known.get(pair[0], 0)]
            items += [
                LogStarts(topic.id, dict(moved[at : at + _LOG_STARTS_PER_CHANGE]))
                for at in range(0, len(moved), _LOG_STARTS_PER_CHANGE)
            ]
        self._append(TopicChangeKind.LOG_STARTS, items)

    def _alive(self, topic: Topic) -> Topic:
        if self._by_id.get(topic.id) is not topic:
            raise UnknownTopic(topic.name)
        return topic

    def _append(self, kind: TopicChangeKind, items: Sequence[object]) -> None:
        if not items:
            return
        bodies = list(encode(kind, items))
        journal = self._upkeep if kind in _FREEING else self._journal
        if len(bodies) == 1:
            journal.append_state(TOPICS_TOPIC, bodies[0])
        else:
            journal.append_states([(TOPICS_TOPIC, body) for body in bodies])

    # The fold

    def apply(self, change: Change) -> None:
        """Apply a change."""
        kind, items = decode(change)
        position = change.position
        if kind is TopicChangeKind.CREATE:
            for created in items:
                self._create(Topic(created, position))
        elif kind is TopicChangeKind.DELETE:
            for topic_id in items:
                topic = self._by_id.get(topic_id)
                if topic is not None and topic.position < position:
                    self._delete(topic)
        elif kind is TopicChangeKind.LOG_STARTS:
            for item in items:
                self._advance(item, position)
            return
        else:
            for item in items:
                topic = self._by_id.get(item.topic_id)
                if topic is not None and topic.position < position:
                    topic.position = position
                    self._alter(topic, kind, item)
                    for listener in self.on_altered:
                        listener(topic)
        self.version = max(self.version, position + 1)

    def _create(self, topic: Topic) -> None:
        holder = self._by_name.get(topic.name)
        if holder is not None:
            if holder.created_position >= topic.created_position:
                return
            self._delete(holder)
        self._insert(topic)
        for listener in self.on_created:
            listener(topic)

    def _insert(self, topic: Topic) -> None:
        topic.policy = self._policy_of(topic.config)
        topic.place = self._roster.add(topic)
        self._by_name[topic.name] = topic
        self._by_id[topic.id] = topic

    def _remove(self, topic: Topic) -> None:
        self._roster.remove(topic.place)
        del self._by_name[topic.name]
        del self._by_id[topic.id]

    def _delete(self, topic: Topic) -> None:
        self._remove(topic)
        for listener in self.on_deleted:
            listener(topic)

    def _alter(self, topic: Topic, kind: TopicChangeKind, item: Any) -> None:
        if kind is TopicChangeKind.CONFIG:
            topic.config = item.config
            topic.policy = self._policy_of(topic.config)
        elif kind is TopicChangeKind.PERMISSION:
            topic.permit(item.permission)
        else:
            topic.read_queues = item.read_queues
            topic.write_queues = item.write_queues
            had = topic.queue_count
            topic.queue_count = max(had, item.read_queues, item.write_queues)
            if topic.queue_count > had:
                for listener in self.on_grown:
                    listener(topic, had)

    def _advance(self, item: LogStarts, position: int) -> None:
        # The highest offset wins in any order, so no position is stored.
        topic = self._by_id.get(item.topic_id)
        if topic is None or topic.created_position > position:
            return
        known = topic.log_starts
        moved = {q: offset for q, offset in item.offsets.items() if offset > known.get(q, 0)}
        known.update(moved)
        if moved:
            for listener in self.on_log_starts:
                listener(topic, moved)

    def snapshot(self) -> Iterator[bytes]:
        """Yield all topics, some thousand items of work per slice."""
        # The last slice exists even if it is empty, for its version.
        found: Iterator[list[Piece]] = sliced(self._pieces(), self._slice_cost)
        for pieces in found:
            yield pack_slice(self.version, pieces)

    def _pieces(self) -> Iterator[Measured[Piece]]:
        for _, topic in self._roster.walk():
            yield 1, 0, None
            for cost, piece in save(topic) if topic is not None else ():
                yield cost, size_of(piece), piece

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace all topics with those of a snapshot; no listener is called."""
        self.clear()
        for data in slices:
            version, topics, log_starts = unpack_slice(data)
            self.version = max(self.version, version)
            for topic in topics:
                holder = self._by_name.get(topic.name)
                if holder is not None and holder.created_position >= topic.created_position:
                    continue
                if holder is not None:
                    # Slices of two moments may contain two incarnations of a name; this one was
                    # deleted.
                    self._remove(holder)
                self._insert(topic)
            for item in log_starts:
                if (holder := self._by_id.get(item.topic_id)) is not None:
                    holder.log_starts.update(item.offsets)

    def clear(self) -> None:
        """Remove all topics; no listener is called."""
        self._by_name.clear()
        self._by_id.clear()
        self._roster.clear()
        self.version = 0

    def items(self) -> Iterator[tuple[bytes, object]]:
        """Yield every topic by id with all its fields, to compare two states."""
        for topic in self:
            yield topic.id, topic.fields()
