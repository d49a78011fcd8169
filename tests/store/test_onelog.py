"""One log: where bodies lie and where they do not, and what a start knows before it is ready."""

from __future__ import annotations

import pytest
from tests.world import World

from rockgate.protocol.entry import read
from rockgate.store.config import StoreConfig
from rockgate.store.log.commitlog import Draft
from rockgate.store.store import Store
from rockgate.store.testing.memory_files import MemoryDisk

CONFIG = StoreConfig(segment_bytes=1 << 16, populate_ahead_bytes=1 << 12, key_index=False)
BODY = b"the only place of this body"


def fill(store: Store, count: int) -> None:
    """Messages for all queues of a topic in turn, over several segments."""
    queues = store.queues.of(store.topics.get("orders").id)
    for number in range(count):
        draft = Draft(b"", 0, 0, BODY + b" %d" % number)
        store.appender.message(queues[number % len(queues)], draft)


def holding(disk: MemoryDisk, text: bytes) -> dict[str, int]:
    """How often each folder's files have a text."""
    found: dict[str, int] = {}
    for path, content in disk.files():
        name = path.strip("/").split("/")[0]
        found[name] = found.get(name, 0) + content.count(text)
    return {name: count for name, count in found.items() if count}


@pytest.mark.row("MODEL-6")
@pytest.mark.row("MODEL-3")
def test_a_topic_is_its_queues_and_these_are_indexes_into_the_one_log_without_bodies() -> None:
    world = World(CONFIG)
    disk, store = world.disk, world.store
    topic = world.topic("orders", 3)
    queues = store.queues.of(topic.id)
    assert len(queues) == 3
    fill(store, 3_000)
    store.close()
    assert disk.root().child("queueindex").names(), "the queues are on disk"
    assert holding(disk, BODY) == {"commitlog": 3_000}
    world.kill()
    store = world.store
    positions: list[int] = []
    for queue_id, queue in enumerate(store.queues.of(topic.id)):
        units = queue.units(0, 1 << 40, 1 << 40)
        assert [unit.base for unit in units] == list(range(1_000))
        for unit in units[::100]:
            view = store.reader.entry(queue, unit).entry
            entry = read(view)
            body = bytes(view[entry.body_at : entry.body_at + entry.body_size])
            assert body == BODY + b" %d" % (unit.base * 3 + queue_id)
        positions += [unit.position for unit in units]
    assert len(set(positions)) == 3_000, "each in a place of its own of the same log"


@pytest.mark.row("U-11", "I-03")
def test_a_start_indexes_what_the_queues_lack_before_it_is_ready() -> None:
    world = World(CONFIG)
    store = world.store
    topic = world.topic("orders", 3)
    fill(store, 1_500)
    store.flush()
    fill(store, 1_500)
    world.kill()
    again = world.store
    for queue in again.queues.of(topic.id):
        assert queue.next_offset == 1_000
        assert [unit.base for unit in queue.units(0, 1 << 40, 1 << 40)] == list(range(1_000))
    fill(again, 3)
    assert [queue.next_offset for queue in again.queues.of(topic.id)] == [1_001] * 3


@pytest.mark.row("U-10")
def test_sizes_and_times_that_are_kafkas_rather_than_rocketmqs() -> None:
    config = StoreConfig()
    assert config.segment_bytes == 256 << 20
    assert config.retention_ms == 7 * 86_400_000
