"""Sessions against the simplest model: one that scans every partition with every request.

Kafka's own sessions are such a scan. Whatever happens between two requests, the answers of a
session that examines only dirty partitions must be the same as those of the scan.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.gateway.kafka.fetcher import Answer, Asked, Fetcher, Key
from tests.gateway.kafka.world import KafkaWorld, call

from rockgate.gateway.kafka.handlers.fetch import Fetched
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.queues.consumequeue import Queue

NAMES = ("orders", "bills")
PARTITIONS = 3
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
Told = tuple[int, int, int, tuple[int, ...]]
"""Error, high watermark, log start, offsets of the records."""


@dataclass
class Cached:
    """What a scanning session remembers of a partition."""

    offset: int
    high_watermark: int = -1
    log_start: int = -1


class Scan:
    """A session that scans everything, always."""

    def __init__(self, world: KafkaWorld) -> None:
        self.world = world
        self.partitions: dict[Key, Cached] = {}

    def fetch(self, asked: dict[Key, int], forget: list[Key], *, is_full: bool) -> dict[Key, Told]:
        if is_full:
            self.partitions.clear()
        for key, offset in asked.items():
            self.partitions.setdefault(key, Cached(offset)).offset = offset
        for key in forget:
            self.partitions.pop(key, None)
        told = {}
        for key, cached in self.partitions.items():
            answer = self._look(key, cached.offset)
            error, high_watermark, log_start, offsets = answer
            has_changed = (high_watermark, log_start) != (cached.high_watermark, cached.log_start)
            if is_full or error or offsets or has_changed:
                told[key] = answer
            cached.high_watermark = -1 if error else high_watermark
            if not error:
                cached.log_start = log_start
        return told

    def _look(self, key: Key, offset: int) -> Told:
        topic = self.world.store.topics.find(key[0])
        if topic is None:
            return UNKNOWN, -1, -1, ()
        queue: Queue = self.world.store.queue(topic, key[1])
        if not queue.log_start <= offset <= queue.next_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, ()
        offsets = tuple(range(offset, queue.next_offset))
        return 0, queue.next_offset, queue.log_start, offsets


ALL = [(name, index) for name in NAMES for index in range(PARTITIONS)]
keys = st.sampled_from(ALL)
# Offsets are asked for relative to the end: at it, before it, and behind it.
asked = st.dictionaries(keys, st.sampled_from((0, 0, -1, -2, 1)), max_size=3)
nothing: st.SearchStrategy[dict[Key, int]] = st.just({})
steps = st.one_of(
    st.tuples(st.just("append"), keys),
    st.tuples(st.just("delete_records"), keys),
    st.tuples(st.just("delete_topic"), st.sampled_from(NAMES)),
    st.tuples(st.just("create_topic"), st.sampled_from(NAMES)),
    st.tuples(st.just("fetch"), asked, st.lists(keys, max_size=2)),
    st.tuples(st.just("fetch"), nothing, st.just([])),
    st.tuples(st.just("fetch"), nothing, st.just([])),
    st.tuples(st.just("full"), st.just(dict.fromkeys(ALL, 0))),
)


class Driven:
    """A world, a session in it, and the scan beside it."""

    def __init__(self) -> None:
        self.world = KafkaWorld()
        for name in NAMES:
            self.world.topic(name, PARTITIONS)
        self.fetcher = Fetcher(self.world)
        self.scan = Scan(self.world)
        self.session = (0, 0)
        for key in ALL:
            self.append(key)
        self.full(dict.fromkeys(ALL, 0))

    def do(self, action: str, *rest: object) -> None:
        getattr(self, action)(*rest)

    def append(self, key: Key) -> None:
        if self.world.store.topics.find(key[0]):
            self.world.append(*key)

    def delete_records(self, key: Key) -> None:
        if self.world.store.topics.find(key[0]):
            queue = self.world.queue(*key)
            middle = (queue.log_start + queue.next_offset + 1) // 2
            self.world.delete_records(middle, *key)

    def delete_topic(self, name: str) -> None:
        topic = self.world.store.topics.find(name)
        if topic:
            self.world.store.topics.delete([topic])

    def create_topic(self, name: str) -> None:
        if not self.world.store.topics.find(name):
            self.world.topic(name, PARTITIONS)

    def fetch(self, places: dict[Key, int], forget: list[Key]) -> None:
        is_full = self.session == (0, 0)
        if is_full:
            forget = []
        asked = {key: max(0, self.end(key) + place) for key, place in places.items()}
        expected = self.scan.fetch(asked, forget, is_full=is_full)
        fetched = self.fetcher.handler.handle(
            self.fetcher.request(
                {key: Asked(offset) for key, offset in asked.items()},
                session=self.session,
                forget=forget,
            ),
            call(12),
        )
        assert isinstance(fetched, Fetched)
        answer = Answer(self.fetcher, fetched)
        found = {
            key: (
                each.error_code,
                each.high_watermark,
                each.log_start_offset,
                tuple(answer.offsets(*key)),
            )
            for key, each in answer.partitions.items()
        }
        assert found == expected
        self.session = (answer.session_id, self.session[1] + 1) if answer.session_id else (0, 0)

    def end(self, key: Key) -> int:
        is_there = self.world.store.topics.find(key[0]) is not None
        return self.world.queue(*key).next_offset if is_there else 1

    def full(self, places: dict[Key, int]) -> None:
        self.session = (0, 0)
        self.fetch(places, [])


@settings(deadline=None, max_examples=budget("property_examples"))
@given(st.lists(steps, max_size=40))
def test_a_session_tells_what_a_scan_of_all_partitions_would_tell(
    actions: list[tuple[str, ...]],
) -> None:
    driven = Driven()
    for action in actions:
        driven.do(*action)
