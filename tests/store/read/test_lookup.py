from __future__ import annotations

import pytest
from tests.world import World

from rockgate.protocol.entry import INDEXED
from rockgate.store.config import StoreConfig
from rockgate.store.log.commitlog import Draft
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store

CONFIG = StoreConfig(
    segment_bytes=64 << 10,
    populate_ahead_bytes=8 << 10,
    key_index_slots=50,
    key_index_entries=500,
)


class WordWorld(World):
    """A store that does not know what a batch is: here a body's words are its keys."""

    def record_keys(self, body: memoryview) -> list[bytes]:
        return bytes(body).split()


@pytest.fixture
def world() -> World:
    world = WordWorld(CONFIG)
    world.topic("orders", 2)
    return world


@pytest.fixture
def store(world: World) -> Store:
    return world.store


def message(store: Store, body: bytes = b"body", properties: bytes = b"") -> int:
    queue = store.queue(store.topics.get("orders"), 0)
    return store.appender.message(queue, Draft(b"", 0, 0, body, properties)).position


def batch(store: Store, body: bytes, count: int, sys_flag: int = INDEXED) -> int:
    queue = store.queue(store.topics.get("orders"), 0)
    appended = store.appender.batch(queue, body, count=count, record_ms=1, sys_flag=sys_flag)
    return appended.position


def test_an_entry_is_found_by_its_position(store: Store) -> None:
    positions = [message(store), batch(store, b"a b", 2), message(store)]
    for offset, position in zip((0, 1, 3), positions, strict=True):
        found = store.lookup.entry(position)
        assert found is not None
        queue, slice_ = found
        assert (queue.queue_id, slice_.unit.base, slice_.unit.position) == (0, offset, position)
        assert len(slice_.entry) == slice_.unit.size


def test_nothing_is_found_where_no_entry_starts(store: Store) -> None:
    position = message(store)
    for place in (-1, position + 1, store.log.end, store.log.end + 4096, 1 << 43):
        assert store.lookup.entry(place) is None


def test_state_is_not_shown(store: Store) -> None:
    assert store.lookup.entry(store.log.start) is None


def test_what_was_deleted_is_not_shown_but_the_rest_of_a_batch_is(store: Store) -> None:
    positions = [message(store), batch(store, b"a b c", 3)]
    topic = store.topics.get("orders")
    store.topics.advance_log_starts({topic: {0: 2}})
    assert [store.lookup.entry(position) is not None for position in positions] == [False, True]
    store.topics.advance_log_starts({topic: {0: 4}})
    assert store.lookup.entry(positions[1]) is None


def test_an_earlier_life_of_a_topic_is_not_shown(store: Store) -> None:
    position = message(store, properties=b"KEYS\x01k\x02")
    store.topics.delete([store.topics.get("orders")])
    store.topics.create(NewTopic(name="orders", queue_count=2))
    assert store.lookup.entry(position) is None
    assert store.lookup.by_key(b"orders", b"k", limit=9) == []


def test_a_batch_is_found_by_each_of_its_keys_if_its_flag_says_so(store: Store) -> None:
    first, _ = batch(store, b"a b", 2), batch(store, b"a c", 2, sys_flag=0)
    last = batch(store, b"a a", 2)
    assert store.lookup.by_key(b"orders", b"a", limit=9) == [last, first]
    assert store.lookup.by_key(b"orders", b"b", limit=9) == [first]
    assert store.lookup.by_key(b"orders", b"c", limit=9) == []


def test_a_rebuilt_index_finds_the_same(store: Store, world: World) -> None:
    positions = [batch(store, b"a b", 2), message(store, properties=b"KEYS\x01a\x02")]
    positions.append(batch(store, b"a", 1))
    store.topics.set_config({store.topics.get("orders"): {"message.index": "false"}})
    world.kill()
    again = world.store
    assert again.lookup.by_key(b"orders", b"a", limit=9) == positions[::-1]
    assert again.lookup.by_key(b"orders", b"b", limit=9) == positions[:1]
    again.close()
