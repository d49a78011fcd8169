"""The disk's limit: who is refused, who is not, and what goes if it must."""

from __future__ import annotations

from typing import Any

import pytest
from tests.store.keeping import HOUR_MS, SEGMENT, Keeping

from rockgate.store.errors import StoreError, StoreFull
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.upkeep.disk import LOOK_MS

CAPACITY = 40 * SEGMENT


def over_the_limit(**settings: Any) -> Keeping:
    """A store whose disk is past nine tenths."""
    keeping = Keeping(MemoryDisk(capacity=CAPACITY), disk_used_percent_max=80, **settings)
    keeping.topic("orders")
    while keeping.disk.used < CAPACITY * 0.85:
        keeping.fill("orders", 1)
    keeping.pass_time(LOOK_MS)
    return keeping


def test_past_the_limit_producers_get_a_clear_error() -> None:
    keeping = over_the_limit()
    with pytest.raises(StoreFull) as refused:
        keeping.fill("orders", 1)
    text = str(refused.value)
    assert f"{keeping.store.retention.disk.used_percent:.1f} % exceeds" in text
    assert "disk_used_percent_max (80)" in text
    assert "lower the retention" in text


def test_past_the_limit_readers_continue_and_state_changes_are_taken() -> None:
    keeping = over_the_limit()
    assert keeping.store.retention.disk.is_over
    assert len(keeping.read("orders")) == keeping.serial
    keeping.topic("other")
    assert keeping.store.topics.find("other") is not None


def test_below_the_limit_again_producers_are_welcome() -> None:
    keeping = over_the_limit()
    keeping.disk.capacity = 2 * CAPACITY
    keeping.pass_time(LOOK_MS - 1)
    assert keeping.store.retention.disk.is_over
    keeping.pass_time(1)
    assert not keeping.store.retention.disk.is_over
    keeping.fill("orders", 1)


def test_the_limit_is_passed_only_above_it() -> None:
    keeping = Keeping(MemoryDisk(capacity=CAPACITY))
    keeping.disk.capacity = 2 * keeping.disk.used
    keeping.store.close()
    keeping.config = Keeping(disk_used_percent_max=50).config
    keeping.disk = keeping.disk.killed()
    keeping.open()
    keeping.disk.capacity = 2 * keeping.disk.used
    keeping.store.tick()
    assert keeping.store.retention.disk.used_percent == 50.0
    assert not keeping.store.retention.disk.is_over
    keeping.disk.capacity -= 1
    keeping.pass_time(LOOK_MS)
    assert keeping.store.retention.disk.is_over


def test_a_refusal_of_another_reason_is_neither_replaced_nor_lifted() -> None:
    keeping = over_the_limit()
    other = StoreError("the disk failed")
    keeping.store.appender.refusal = other
    keeping.disk.capacity = 2 * CAPACITY
    keeping.pass_time(LOOK_MS)
    assert keeping.store.appender.refusal is other
    keeping.disk.capacity = CAPACITY
    keeping.pass_time(LOOK_MS)
    assert keeping.store.appender.refusal is other


def test_a_disk_that_cannot_be_asked_changes_nothing() -> None:
    keeping = over_the_limit()

    def fail() -> tuple[int, int]:
        raise OSError("stale file handle")

    vars(keeping.store.retention.disk)["_directory"] = type("D", (), {"space": staticmethod(fail)})
    keeping.pass_time(LOOK_MS)
    assert keeping.store.retention.disk.is_over


def test_what_has_expired_goes_soon_when_the_disk_is_past_its_limit() -> None:
    keeping = over_the_limit(retention_ms=HOUR_MS, retention_interval_ms=24 * HOUR_MS)
    # The clock has not come to the next round, but what is over its time can help now.
    keeping.pass_time(2 * HOUR_MS)
    keeping.pass_time(LOOK_MS)
    assert not keeping.store.retention.disk.is_over
    keeping.fill("orders", 1)


# Forced clean-up


def test_nothing_unexpired_goes_by_default_however_full_the_disk_is() -> None:
    keeping = over_the_limit()
    keeping.pass_time(HOUR_MS)
    assert keeping.store.retention.disk.is_over
    assert keeping.queue("orders").log_start == 0
    assert len(keeping.read("orders")) == keeping.serial


def test_forced_clean_up_removes_the_oldest_segments_until_the_disk_is_below_its_limit() -> None:
    keeping = over_the_limit(disk_forced_cleanup=True)
    disk = keeping.store.retention.disk
    assert not disk.is_over
    kept = keeping.read("orders")
    assert 0 < len(kept) < keeping.serial
    assert kept[-1][2].startswith(b"%06d" % keeping.serial)
    assert keeping.queue("orders").log_start == kept[0][0]
    # No more than was needed: one segment less would have been too few.
    assert disk.used_percent > 80 - 100 * SEGMENT / CAPACITY - 5
    keeping.fill("orders", 1)
    keeping.kill()
    assert keeping.read("orders")[: len(kept)] == kept


def test_forced_clean_up_never_takes_a_compacted_topic_or_what_a_keeper_wants() -> None:
    keeping = Keeping(
        MemoryDisk(capacity=CAPACITY), disk_used_percent_max=80, disk_forced_cleanup=True
    )
    keeping.topic("table", cleanup_policy="compact")
    keeping.topic("orders")
    table = keeping.fill("table", 3)
    while keeping.disk.used < CAPACITY * 0.85:
        keeping.fill("orders", 1)
    keeping.pass_time(LOOK_MS)
    assert not keeping.store.retention.disk.is_over
    assert keeping.queue("orders").log_start > 0
    assert keeping.read("table") == table


def test_a_full_disk_stops_a_round_and_the_next_one_continues() -> None:
    keeping = Keeping(retention_ms=HOUR_MS, disk_used_percent_max=100)
    keeping.topic("short")
    keeping.topic("long", retention_ms="-1")
    long = keeping.fill_segment("short", "short", "long")["long"]
    keeping.disk.capacity = keeping.disk.used
    with pytest.raises(StoreFull):
        while True:
            keeping.fill("short", 1, size=20)
    keeping.pass_time(2 * HOUR_MS)
    assert isinstance(keeping.store.retention.failure, StoreFull)
    assert keeping.read("long") == long
    keeping.disk.capacity = 100 * SEGMENT
    keeping.pass_time(2 * HOUR_MS)
    assert keeping.store.retention.failure is None
    assert keeping.read("long") == long
    assert keeping.store.log.start > 0
