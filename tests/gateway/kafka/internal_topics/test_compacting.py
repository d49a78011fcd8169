"""`__consumer_offsets` is compacted while the same offsets are committed again and again."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from tests.budget import budget
from tests.gateway.kafka.internal_topics.test_writer import Mirror
from tests.store.keeping import CONFIG

from rockgate.gateway.compaction.bodies import EntryBodies
from rockgate.gateway.kafka.internal_topics import formats
from rockgate.gateway.kafka.internal_topics.partition import partition_of
from rockgate.gateway.kafka.internal_topics.writer import OFFSETS
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import body_of
from rockgate.protocol.kafka.records.record import read_records

SETTINGS = replace(CONFIG, compaction_interval_ms=1_000, compaction_bytes_per_second=1 << 40)
GROUPS = ("readers", "writers")
EVERY = 10
"""Commits between two flushes of the internal topics."""


class Compacted(Mirror):
    """The writer of internal topics over a store of short segments that compacts them."""

    def __init__(self) -> None:
        super().__init__(SETTINGS)

    def open(self) -> None:
        super().open()
        self.store.attach(bodies=EntryBodies(self.store.reader, self.folds.stable_offsets))

    def kept(self, partition: int) -> dict[int, tuple[bytes, bytes | None]]:
        """The records of a partition that readers get, by offset; no offset is missing."""
        found: dict[int, tuple[bytes, bytes | None]] = {}
        offset = self.queue(OFFSETS, partition).log_start
        for unit, view in self.entries(OFFSETS, partition):
            assert unit.base <= offset, "offsets are missing"
            offset = unit.base + unit.offset_count
            envelope.check(view, envelope.read(view))
            for each in read_records(body_of(view)):
                found[each.offset] = (each.key or b"", each.value)
        assert offset == self.queue(OFFSETS, partition).next_offset
        return found


@pytest.mark.row("CMP-6")
def test_readers_find_the_last_commit_of_each_partition_however_many_there_were() -> None:
    world = Compacted()
    orders = world.topic("orders", 3)
    count = budget("internal_commits")
    for number in range(count):
        for group in GROUPS:
            world.commit(orders, number % 3, number, group)
        if number % EVERY == 0:
            world.write()
    world.write()
    ends = {group: world.queue(OFFSETS, partition_of(group, 5)).next_offset for group in GROUPS}
    assert min(ends.values()) > count // EVERY, "each flush wrote its last values"
    last = {group: latest(world, group) for group in GROUPS}
    world.topic("filler", 1)
    world.message("filler", body=bytes(7_000))
    for _ in range(4):
        world.message("filler", body=bytes(7_000))
        world.pass_time(30_000)
    assert world.store.cleaner.dropped_count > count // EVERY
    for is_killed in (None, False, True):
        if is_killed is not None:
            (world.kill if is_killed else world.reopen)()
            world.write()
        for group in GROUPS:
            kept = world.kept(partition_of(group, 5))
            assert set(last[group].items()) <= set(kept.items()), "the last values, where they were"
            assert len(kept) < 12, "and little else"
            values = {key: value for key, value in kept.values()}
            for queue_id in range(3):
                value = values[formats.offset_key(group, "orders", queue_id)]
                committed = world.store.progress.fetch(group, orders.id, queue_id)
                assert value is not None and committed is not None
                assert struct.unpack_from(">hq", value) == (3, committed.offset)
            if is_killed is None:
                assert world.queue(OFFSETS, partition_of(group, 5)).next_offset == ends[group]


def latest(world: Compacted, group: str) -> dict[int, tuple[bytes, bytes | None]]:
    """The last record of each key of a group, by offset."""
    by_key = {key: offset for offset, (key, _) in world.kept(partition_of(group, 5)).items()}
    kept = world.kept(partition_of(group, 5))
    return {offset: kept[offset] for offset in by_key.values()}


@pytest.mark.row("CMP-6")
def test_a_deleted_group_leaves_nothing_once_the_horizon_of_its_tombstone_has_come() -> None:
    world = Compacted()
    orders = world.topic("orders", 1)
    partition = partition_of("gone", 5)
    [other] = [name for name in map(str, range(20)) if partition_of(name, 5) == partition][:1]
    world.commit(orders, 0, 5, "gone")
    world.write()
    topic = world.store.topics.get(OFFSETS)
    config = dict(topic.config) | {"delete.retention.ms": "1000", "min.cleanable.dirty.ratio": "0"}
    world.store.topics.set_config({topic: config})
    world.store.progress.delete_groups(["gone"])
    world.write()
    key = formats.offset_key("gone", "orders", 0)
    assert [value is None for found, value in world.kept(partition).values() if found == key] == [
        False,
        True,
    ]
    world.topic("filler", 1)
    for number in range(6):
        world.commit(orders, 0, number, other)
        world.write()
        world.message("filler", body=bytes(7_000))
        world.message("filler", body=bytes(7_000))
        world.pass_time(30_000)
    assert key not in {found for found, _ in world.kept(partition).values()}
    world.kill()
    world.write()
    assert key not in {found for found, _ in world.kept(partition).values()}
