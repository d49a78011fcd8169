"""Offsets without a readable record:

counted without opening a batch, and retained over a restart.
"""

from __future__ import annotations

from tests.gateway.kafka.admin import Admin

from rockgate.gateway.visibility.empty_offsets import EmptyOffsets
from rockgate.store.delay.changes import DELAY_TOPIC, encode_schedule
from rockgate.store.state.topic import Topic


def schedule(admin: Admin, topic: Topic, queue_id: int, *offsets: int) -> None:
    [change] = encode_schedule(topic.id, queue_id, [(offset, 1) for offset in offsets])
    admin.store.appender.append_state(DELAY_TOPIC, change)


def test_delayed_records_and_markers_leave_empty_offsets() -> None:
    admin = Admin()
    topic = admin.topic("a", 2)
    empty = admin.folds.empty
    schedule(admin, topic, 0, 3, 4, 9_000)
    admin.folds.stable_offsets.ended(
        (topic.id, 0), 7, first=5, offset=6, is_abort=False, high_watermark=7
    )
    assert empty.count(topic.id, 0, 0, 10_000) == 4
    assert empty.count(topic.id, 0, 4, 9_000) == 2
    assert empty.count(topic.id, 0, 9_001, 10_000) == 0
    assert empty.count(topic.id, 0, 5, 5) == 0
    assert empty.count(topic.id, 1, 0, 10_000) == 0


def test_a_snapshot_holds_them_and_a_replay_alters_nothing() -> None:
    admin = Admin()
    topic = admin.topic("a", 2)
    schedule(admin, topic, 0, *range(100, 5_000), 20_000)
    schedule(admin, topic, 1, 7)
    again = EmptyOffsets(admin.store.topics, slice_chunks=1)
    again.restore(list(admin.folds.empty.snapshot()))
    assert again.count(topic.id, 0, 0, 1 << 40) == 4_901
    assert again.count(topic.id, 1, 7, 8) == 1
    assert list(again.snapshot())[-1][:1] == b"\x01"
    again.restore(list(again.snapshot()))
    assert again.count(topic.id, 0, 0, 1 << 40) == 4_901


def test_what_is_deleted_is_forgotten() -> None:
    admin = Admin()
    topic = admin.topic("a")
    for _ in range(5_000):
        admin.append("a", 0)
    schedule(admin, topic, 0, 3, 4_500)
    admin.delete_records(4_200, "a", 0)
    empty = admin.folds.empty
    assert empty.count(topic.id, 0, 0, 5_000) == 1
    admin.store.topics.delete([topic])
    assert empty.count(topic.id, 0, 0, 5_000) == 0
