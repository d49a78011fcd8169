"""Keys that were not indexed when their messages were appended are indexed later, in slices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.world import World

from rockgate.protocol.entry import INDEXED
from rockgate.store.config import StoreConfig
from rockgate.store.keys import keyfeed, keyindex
from rockgate.store.keys.entrykeys import Found
from rockgate.store.keys.keyfeed import KeyFeed
from rockgate.store.keys.keyindex import KeyIndex
from rockgate.store.log.commitlog import Draft
from rockgate.store.store import Store

CONFIG = StoreConfig(
    segment_bytes=64 << 10,
    populate_ahead_bytes=8 << 10,
    key_index_slots=50,
    key_index_entries=500,
)


@pytest.mark.row("I-07")
def test_what_was_missed_is_found_after_catching_up_in_slices() -> None:
    world = World(CONFIG)
    world.topic()
    store, queue = world.store, world.queue()
    assert store.keys is not None
    store.keys.missed_from = store.log.end
    positions = [
        store.appender.message(queue, Draft(b"", 0, 0, b"x" * 100, b"KEYS\x01k%d\x02" % n)).position
        for n in range(40)
    ]
    assert store.lookup.by_key(b"orders", b"k7", limit=5) == []
    turns = 1
    while KeyFeed(store.log, store.keys).step(1_000):
        turns += 1
    assert turns > 5
    found = [store.lookup.by_key(b"orders", b"k%d" % n, limit=5) for n in range(40)]
    assert found == [[position] for position in positions]


def test_a_start_indexes_keys_that_are_not_on_disk_yet() -> None:
    world = World(CONFIG)
    world.topic()
    position = world.message(properties={"UNIQ_KEY": "u1", "KEYS": "a b"}).position
    world.kill()
    again = world.store
    for key in (b"u1", b"a", b"b"):
        assert again.lookup.by_key(b"orders", key, limit=5) == [position]
    assert isinstance(again.keys, KeyIndex)


def test_a_disk_that_stays_full_does_not_keep_the_loop_busy() -> None:
    world = World(replace(CONFIG, key_index_entries=10))
    world.topic()
    disk, store, queue = world.disk, world.store, world.queue()
    assert store.keys is not None
    disk.capacity = disk.used
    positions = [
        store.appender.message(queue, Draft(b"", 0, 0, b"x", b"KEYS\x01k%d\x02" % n)).position
        for n in range(25)
    ]
    assert store.keys.missed_from == positions[9]
    assert not KeyFeed(store.log, store.keys).step(1_000)
    disk.capacity = 1 << 30
    store.keys.prepare()
    while KeyFeed(store.log, store.keys).step(1_000):
        store.keys.prepare()
    found = [store.lookup.by_key(b"orders", b"k%d" % n, limit=5) for n in range(25)]
    assert found == [[position] for position in positions]


def test_a_batch_that_takes_long_is_indexed_by_a_job_and_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyindex, "PART_COUNT", 10)
    monkeypatch.setattr(keyfeed, "PART_COUNT", 10)
    jobs = 0

    class SlowWorld(World):
        def record_keys(self, body: memoryview) -> Found:
            def find() -> list[bytes]:
                nonlocal jobs
                jobs += 1
                return bytes(body).split()

            return find if bytes(body).startswith(b"slow") else bytes(body).split()

    world = SlowWorld(CONFIG)
    world.topic()
    store, queue = world.store, world.queue()
    many = [b"many%d" % n for n in range(35)]
    bodies = (b"first", b"slow one two", b" ".join(many), b"last")
    positions = [
        store.appender.batch(queue, body, count=1, record_ms=1, sys_flag=INDEXED).position
        for body in bodies
    ]
    message = store.appender.message(queue, Draft(b"", 0, 0, b"x", b"KEYS\x01key\x02"))
    expected = dict(zip((b"first", b"two", b"many34", b"last"), positions, strict=True))
    expected[b"key"] = message.position

    def found(within: Store) -> dict[bytes, int]:
        there = {key: within.lookup.by_key(b"orders", key, limit=2) for key in expected}
        assert all(len(places) <= 1 for places in there.values())
        return {key: places[0] for key, places in there.items() if places}

    assert (found(store), jobs) == ({b"first": positions[0]}, 0)
    turns = 0
    while store.upkeep():
        turns += 1
        # A start in the middle finds all of it, too, and nothing twice.
        assert store.keys is not None
        store.keys.flush()
        again = SlowWorld(CONFIG, world.disk.killed(), world.clock)
        assert found(again.store) == expected
    assert turns >= 5 and found(store) == expected
