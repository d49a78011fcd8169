"""A replica that follows: the same log, folds and queues, however the bytes arrive."""

from __future__ import annotations

import pytest
from tests.budget import budget
from tests.seeds import seeded
from tests.store.replication.pair import Primary, Replica, assert_same, piece

from rockgate.store.errors import StoreCorrupt, StoreFull
from rockgate.store.testing.memory_files import MemoryDisk


def test_a_replica_has_the_log_the_folds_and_the_queues_of_its_primary() -> None:
    random = seeded()
    for _ in range(budget("replication_rounds")):
        primary, replica = Primary(random), Replica(random)
        for _ in range(random.randint(3, 12)):
            primary.workload.run(random.randint(1, 25))
            replica.connect(primary.store)
            replica.follow(primary.store)
            assert_same(primary.store, replica.store, has_maxima=not replica.copied_count)
            replica.tick()
            if random.random() < 0.3:
                replica.close()
                replica.open()
        assert_same(primary.store, replica.store)
        replica.close()
        # Another store with the same directory finds all of it, too.
        replica.open()
        assert_same(primary.store, replica.store)


def test_a_replica_shows_what_is_committed_and_applied() -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    primary.workload.create_topic()
    replica.follow(primary.store)
    primary.workload.append_message()
    queue = next(iter(primary.store.queues))
    while queue.next_offset == 0:
        primary.workload.append_message()
    own = replica.store.queue(replica.store.topics.get(queue.topic.decode()), queue.queue_id)
    assert primary.store.commit.position < primary.store.log.end
    replica.follow(primary.store)
    assert own.next_offset == queue.next_offset
    assert replica.store.reader.high_watermark(own) == 0, "the primary may lose it yet"
    primary.store.flush()
    replica.follow(primary.store)
    assert replica.store.reader.high_watermark(own) == queue.next_offset
    replica.following.committed(1 << 40)
    assert replica.store.commit.position == replica.store.log.end


def test_who_waits_for_a_queue_is_woken_when_more_is_shown() -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    told: list[str] = []
    replica.store.attach(
        on_append=lambda queue: told.append("append"),
        on_flushed=lambda position: told.append("shown"),
    )
    primary.workload.create_topic()
    primary.store.flush()
    replica.follow(primary.store)
    told.clear()
    primary.workload.append_message()
    primary.store.flush()
    replica.follow(primary.store)
    assert told == ["append", "shown"]


def test_damaged_bytes_are_not_applied_and_end_the_connection() -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    primary.workload.create_topic()
    replica.follow(primary.store)
    end = replica.store.log.end
    primary.workload.append_message()
    data = bytearray(piece(primary.store.log, end, 1 << 20))
    at = random.randrange(len(data))
    # A larger size only waits for the rest of it.
    at = max(at, 4)
    data[at] ^= 1 << random.randrange(8)
    with pytest.raises(StoreCorrupt):
        replica.following.receive(end, memoryview(data))
    assert not replica.following.apply()
    assert replica.store.log.end == end
    replica.connect(primary.store)
    replica.follow(primary.store)
    assert_same(primary.store, replica.store)


def test_bytes_of_another_place_or_across_a_segment_are_refused() -> None:
    replica = Replica(seeded())
    size = replica.store.segments.segment_size
    with pytest.raises(StoreCorrupt, match="were due"):
        replica.following.receive(1, memoryview(b"x"))
    with pytest.raises(StoreCorrupt, match="not of one segment"):
        replica.following.receive(0, memoryview(bytes(size + 1)))


def test_half_an_entry_is_neither_applied_nor_found_by_the_next_start() -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    primary.workload.create_topic()
    replica.follow(primary.store)
    end = replica.store.log.end
    primary.workload.append_group()
    primary.workload.append_group()
    data = piece(primary.store.log, end, 1 << 20)
    replica.following.receive(end, data[: random.randrange(8, len(data) - 1)])
    replica.close()
    assert "abort" not in replica.disk.root().names(), "it is a clean stop"
    cut_power = replica.disk.power_cut(random)
    for disk in (replica.disk, cut_power):
        again = Replica(random, disk)
        segment = again.store.segments.active
        behind = bytes(segment.mapping.view[again.store.log.end - segment.start :])
        assert not any(behind)
        again.connect(primary.store)
        again.follow(primary.store)
        assert_same(primary.store, again.store)
        again.close()


def test_a_replica_appends_nothing_and_frees_its_segments_by_itself() -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    rounds = 0
    while replica.store.retention.removed_count == 0:
        primary.workload.run(5)
        primary.workload.tick()
        primary.store.flush()
        replica.connect(primary.store)
        replica.follow(primary.store)
        end = replica.store.log.end
        replica.tick()
        assert replica.store.log.end == end, "it appended something"
        rounds += 1
        assert rounds < 1000, "it frees nothing"
    assert replica.store.retention.mover.moved_count == 0
    assert_same(primary.store, replica.store)


def test_a_full_disk_stops_following_until_there_is_space() -> None:
    random = seeded()
    disk = MemoryDisk()
    primary, replica = Primary(random), Replica(random, disk)
    while primary.store.log.end < 5 * primary.store.segments.segment_size:
        primary.workload.create_topic()
        primary.workload.append_messages()
    disk.capacity = disk.used
    with pytest.raises(StoreFull):
        replica.follow(primary.store)
    disk.capacity = 1 << 40
    replica.connect(primary.store)
    replica.follow(primary.store)
    assert_same(primary.store, replica.store)
