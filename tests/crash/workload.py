"""A random workload on a store, and the model that determines what must exist afterwards.

The model is a list of effects, each with the range of the log that its entries take. Whatever
happens, a store that opens again must contain exactly the effects up to the end of its log: a
prefix, never less than was flushed, never half an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from tests.store.reading import entries

from rockgate.gateway.topics.policy import queue_policy
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import Contents
from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.files.interface import Directory
from rockgate.store.log.commitlog import Draft
from rockgate.store.progress.records import Commit
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.state.epochs import TOPIC as EPOCH_TOPIC
from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store
from rockgate.store.write.append import Intake

CONFIG = StoreConfig(
    segment_bytes=8192,
    populate_ahead_bytes=4096,
    flush="sync",
    checkpoint_bytes=6000,
    checkpoint_interval_ms=3_000,
    upkeep_gap_ms=0,
    snapshot_bytes=9000,
    snapshot_interval_ms=7_000,
    key_index_slots=50,
    key_index_entries=40,
    retention_interval_ms=1_000,
)
# The retention of each topic, so that some messages of a segment are deleted and others relocated.
NAMES: dict[str, dict[str, str]] = {
    "orders": {},
    "payments": {"retention.ms": "1000"},
    "shipments": {"retention.bytes": "1500"},
}
GROUPS = ("billing", "audit")


@dataclass
class TopicModel:
    queues: list[list[tuple[int, int, bytes]]]
    log_starts: dict[int, int] = field(default_factory=dict)


@dataclass
class Holdings:
    """The contents of a store, in the simplest form."""

    topics: dict[str, TopicModel] = field(default_factory=dict)
    progress: dict[tuple[str, str, int], int] = field(default_factory=dict)


Effect = Callable[[Holdings], None]


@dataclass(frozen=True)
class Step:
    start: int
    end: int
    effect: Effect


class Model:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.pending: tuple[int, Effect] | None = None
        self.epochs: set[int] = set()
        self.flushed = 0

    def begin(self, start: int, effect: Effect) -> None:
        self.pending = (start, effect)

    def finish(self, end: int) -> None:
        assert self.pending is not None
        start, effect = self.pending
        self.pending = None
        self.steps.append(Step(start, end, effect))

    def world_at(self, end: int) -> Holdings:
        """The contents after every step that ends at or before a position."""
        world = Holdings()
        for step in self.steps:
            if step.end <= end:
                step.effect(world)
        return world

    def cut(self, store: Store, end: int) -> None:
        """Drop what the log has lost; the step in progress counts if the log has it."""
        if self.pending is not None:
            # A longer log alone is not enough: it may only contain a segment's filler.
            behind = store.log.walk(self.pending[0], end) if self.pending[0] < end else ()
            if any(entry.topic != EPOCH_TOPIC for _, entry in behind):
                self.finish(end)
        self.pending = None
        self.steps = [step for step in self.steps if step.end <= end]


def open_store(directory: Directory, clock: ManualClock) -> Store:
    return Store(directory, CONFIG, clock, policy_of=queue_policy).begin_epoch()


class Workload:
    """Does random things to a store and updates the model."""

    def __init__(self, store: Store, model: Model, clock: ManualClock, random: Random) -> None:
        self.store = store
        self.model = model
        self.clock = clock
        self.random = random
        self.serial = 0
        self._advance_log_starts = store.topics.advance_log_starts
        # Everything that advances log starts, above all retention, updates the model.
        vars(store.topics)["advance_log_starts"] = self.advance_log_starts

    def run(self, steps: int) -> None:
        actions = (
            *(self.append_batch,) * 6,
            *(self.append_message,) * 5,
            *(self.append_group,) * 2,
            *(self.append_messages,) * 2,
            *(self.flush,) * 3,
            *(self.tick,) * 4,
            self.create_topic,
            self.delete_topic,
            self.grow_topic,
            self.commit_progress,
            self.delete_records,
        )
        for _ in range(steps):
            self.random.choice(actions)()
            self.model.flushed = self.store.flusher.flushed

    def _do(self, effect: Effect, action: Callable[[], object]) -> None:
        self.model.begin(self.store.log.end, effect)
        action()
        self.model.finish(self.store.log.end)

    def _body(self) -> bytes:
        self.serial += 1
        return b"%06d" % self.serial * self.random.choice((1, 5, 60, 300))

    def _queue(self) -> Queue | None:
        queues = [queue for queue in self.store.queues if queue.topic_id]
        return self.random.choice(queues) if queues else None

    # Actions

    def create_topic(self) -> None:
        free = [name for name in NAMES if self.store.topics.find(name) is None]
        if not free:
            return
        name, count = self.random.choice(free), self.random.randint(1, 3)

        def effect(world: Holdings) -> None:
            world.topics[name] = TopicModel([[] for _ in range(count)])

        new = NewTopic(name=name, queue_count=count, config=NAMES[name])
        self._do(effect, lambda: self.store.topics.create(new))

    def delete_topic(self) -> None:
        topics = list(self.store.topics)
        if len(topics) < 2 or self.random.random() < 0.5:
            return
        topic = self.random.choice(topics)

        def effect(world: Holdings) -> None:
            del world.topics[topic.name]
            world.progress = {k: v for k, v in world.progress.items() if k[1] != topic.name}

        self._do(effect, lambda: self.store.topics.delete([topic]))

    def grow_topic(self) -> None:
        topics = [topic for topic in self.store.topics if topic.queue_count < 5]
        if not topics:
            return
        topic = self.random.choice(topics)
        count = topic.queue_count + 1

        def effect(world: Holdings) -> None:
            world.topics[topic.name].queues.append([])

        self._do(effect, lambda: self.store.topics.grow({topic: count}))

    def append_batch(self) -> None:
        queue = self._queue()
        if queue is None:
            return
        body, count = self._body(), self.random.randint(1, 9)
        self._do(
            _append(queue, count, body),
            lambda: self.store.appender.batch(
                queue, body, count=count, record_ms=self.clock.now_ms()
            ),
        )

    def append_message(self, queue: Queue | None = None) -> None:
        queue = queue or self._queue()
        if queue is None:
            return
        body = self._body()
        properties = b"TAGS\x01t\x02KEYS\x01%b\x02" % body[:6]
        draft = Draft(b"", 0, 0, body, properties, born_ms=self.clock.now_ms())
        self._do(_append(queue, 1, body), lambda: self.store.appender.message(queue, draft))

    def append_group(self) -> None:
        intakes = []
        effects = []
        taken: dict[int, int] = {}
        for _ in range(self.random.randint(2, 4)):
            queue = self._queue()
            if queue is None:
                return
            body, count = self._body()[:400], self.random.randint(0, 4)
            intakes.append(Intake(queue, Draft(b"", 0, 0, body, batch_count=count)))
            base = queue.next_offset + taken.get(id(queue), 0)
            taken[id(queue)] = taken.get(id(queue), 0) + (count or 1)
            effects.append(_append(queue, count or 1, body, base))

        def effect(world: Holdings) -> None:
            for each in effects:
                each(world)

        self._do(effect, lambda: self.store.appender.group(intakes))

    def append_messages(self) -> None:
        queue = self._queue()
        if queue is None:
            return
        bodies = [self._body()[:400] for _ in range(self.random.randint(1, 4))]
        contents = Contents.of([(0, body, b"KEYS\x01%b\x02" % body[:6]) for body in bodies])
        base = queue.next_offset
        effects = [_append(queue, 1, body, base + at) for at, body in enumerate(bodies)]

        def effect(world: Holdings) -> None:
            for each in effects:
                each(world)

        born_ms = self.clock.now_ms()
        self._do(effect, lambda: self.store.appender.messages(queue, contents, born_ms=born_ms))

    def commit_progress(self) -> None:
        queue = self._queue()
        if queue is None:
            return
        group = self.random.choice(GROUPS)
        name, offset = queue.topic.decode(), self.random.randint(0, 100)

        def effect(world: Holdings) -> None:
            world.progress[group, name, queue.queue_id] = offset

        commit = Commit(queue.topic_id, queue.queue_id, offset)
        self._do(effect, lambda: self.store.progress.commit(group, [commit]))

    def delete_records(self) -> None:
        queue = self._queue()
        if queue is None or queue.next_offset <= queue.log_start:
            return
        topic = self.store.topics.get(queue.topic.decode())
        offset = self.random.randint(queue.log_start + 1, queue.next_offset)
        self.store.topics.advance_log_starts({topic: {queue.queue_id: offset}})

    def advance_log_starts(self, starts: Mapping[Topic, Mapping[int, int]]) -> None:
        moved = {topic.name: dict(offsets) for topic, offsets in starts.items()}

        def effect(world: Holdings) -> None:
            for name, offsets in moved.items():
                world.topics[name].log_starts.update(offsets)

        self._do(effect, lambda: self._advance_log_starts(starts))

    def flush(self) -> None:
        self.store.flush()

    def tick(self) -> None:
        self.clock.advance(self.random.choice((10, 500, 2_000)))
        if self.random.random() < 0.1:
            self.clock.step(-5_000)
        for _ in range(self.random.choice((3, 30))):
            self.store.tick()


def _append(queue: Queue, count: int, body: bytes, base: int | None = None) -> Effect:
    name, queue_id = queue.topic.decode(), queue.queue_id
    at = queue.next_offset if base is None else base

    def effect(world: Holdings) -> None:
        world.topics[name].queues[queue_id].append((at, count, body))

    return effect


# The contents of a store


def world_of(store: Store) -> Holdings:
    """Read everything back through the store's reader."""
    world = Holdings()
    names = {}
    for topic in store.topics:
        names[topic.id] = topic.name
        queues = [list(_read_all(store, queue)) for queue in store.queues.of(topic.id)]
        assert len(queues) == topic.queue_count
        world.topics[topic.name] = TopicModel(queues, dict(topic.log_starts))
    for group in list(store.progress.groups()):
        for topic_id, queue_id, committed in store.progress.fetch_group(group):
            world.progress[group, names[topic_id], queue_id] = committed.offset
    return world


def _read_all(store: Store, queue: Queue) -> Iterator[tuple[int, int, bytes]]:
    offset = queue.log_start
    while offset < queue.next_offset:
        slices = entries(store, queue, offset, 700)
        assert slices, f"offset {offset} of {queue.next_offset} cannot be read"
        for unit, view in slices:
            entry = envelope.read(view)
            envelope.check(view, entry)
            assert entry.topic == queue.topic
            key = envelope.get_property(envelope.properties_of(view, entry), b"KEYS")
            if key is not None:
                found = store.lookup.by_key(queue.topic, key, limit=9)
                assert unit.position in found, f"key {key!r} does not lead to {unit.position}"
            yield unit.base, unit.offset_count, bytes(envelope.body_of(view))
        offset = slices[-1].unit.base + slices[-1].unit.offset_count


def visible(world: Holdings) -> Holdings:
    """The part of the contents that is visible to readers: at or after the log starts."""
    shown = Holdings(progress=world.progress)
    for name, topic in world.topics.items():
        queues = [
            [item for item in queue if item[0] + item[1] > topic.log_starts.get(queue_id, 0)]
            for queue_id, queue in enumerate(topic.queues)
        ]
        shown.topics[name] = TopicModel(queues, topic.log_starts)
    return shown
