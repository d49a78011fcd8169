"""Nothing that cannot be undone happens above what is committed (docs/internals/replication.md).

Retention appends live entries again and removes their segment. A node whose log is cut back after
another one took over loses the copies: if the segment is gone too, the messages are lost, and the
store opens without complaint.
"""

from __future__ import annotations

from tests.store.keeping import HOUR_MS, Held, Keeping

from rockgate.protocol.entry import MOVED
from rockgate.store.check.repair import truncate


def kept_among_expired(keeping: Keeping) -> list[Held]:
    """Fill segments with messages that expire, and a few that stay."""
    keeping.topic("short", retention_ms=str(HOUR_MS))
    keeping.topic("long")
    kept = []
    for _ in range(4):
        kept += keeping.fill("long", 2)
        keeping.fill_segment("short")
    keeping.settle()
    return kept


def first_copy(keeping: Keeping) -> int:
    """The position of the first entry that was appended again; the log's end without one."""
    log = keeping.store.log
    copies = (entry.position for _, entry in log.walk(log.start) if entry.sys_flag & MOVED)
    return next(copies, log.end)


def cut_back(keeping: Keeping, position: int) -> None:
    """Stop, cut the log at a position as a replica does, and start."""
    keeping.store.close()
    truncate(keeping.directory, position)
    keeping.open()


def move_uncommitted(keeping: Keeping) -> int:
    """Let retention work, replicas fall silent as soon as it moves; return where copies begin."""
    commit, log = keeping.store.commit, keeping.store.log
    commit.replicate(log.end)
    while first_copy(keeping) == log.end:
        commit.advance(log.end)
        keeping.pass_time(HOUR_MS)
    return first_copy(keeping)


def test_what_is_kept_survives_a_cut_below_its_copies() -> None:
    keeping = Keeping()
    kept = kept_among_expired(keeping)
    position = move_uncommitted(keeping)
    assert keeping.store.retention.mover.moved_count > 0, "or the cut undoes nothing"
    cut_back(keeping, position)
    assert keeping.read("long") == kept


def test_a_segment_goes_once_it_is_committed_that_nothing_in_it_is_live() -> None:
    keeping = Keeping()
    kept = kept_among_expired(keeping)
    move_uncommitted(keeping)
    retention, commit = keeping.store.retention, keeping.store.commit
    moved = keeping.store.log.end
    for _ in range(3):
        # What is appended meanwhile is not awaited, or there would be no end of it under load.
        kept += keeping.fill("long", 1)
        keeping.pass_time(HOUR_MS)
    assert retention.removed_count == 0
    assert "waiting for replicas" in {each.reason for each in retention.segments}
    commit.advance(moved - 1)
    keeping.pass_time(HOUR_MS)
    assert retention.removed_count == 0
    commit.advance(moved)
    keeping.pass_time(HOUR_MS)
    assert retention.removed_count == 1
    assert keeping.read("long") == kept


def test_expiry_goes_on_while_a_segment_waits() -> None:
    keeping = Keeping()
    kept_among_expired(keeping)
    move_uncommitted(keeping)
    keeping.topic("other", retention_ms=str(HOUR_MS))
    keeping.fill("other", 2)
    keeping.pass_time(2 * HOUR_MS)
    keeping.pass_time(2 * HOUR_MS)
    assert keeping.queue("other").log_start == keeping.queue("other").next_offset


def test_a_pinned_segment_stays() -> None:
    keeping = Keeping()
    kept_among_expired(keeping)
    keeping.store.attach(pinned=lambda: 0)
    for _ in range(8):
        keeping.pass_time(HOUR_MS)
    assert keeping.store.retention.removed_count == 0


def test_a_snapshot_gets_its_name_once_all_it_needs_is_committed() -> None:
    keeping = Keeping()
    keeping.topic("orders")
    commit, log = keeping.store.commit, keeping.store.log
    commit.replicate(log.end)
    keeping.topic("more")
    snapshotter, snapshots = keeping.store.snapshotter, keeping.store.snapshots
    snapshotter.tick(is_wanted=True)
    for _ in range(20):
        snapshotter.tick(is_wanted=True)
    assert snapshots.newest is None
    commit.advance(log.end)
    snapshotter.tick(is_wanted=True)
    assert snapshots.newest is not None
    assert snapshots.newest.replay_from == log.end


def test_a_snapshot_that_is_not_committed_at_the_end_is_dropped() -> None:
    keeping = Keeping()
    keeping.topic("orders")
    keeping.store.commit.replicate(0)
    keeping.store.close()
    assert keeping.directory.child("snapshots").names() == []
    keeping.open()
    assert keeping.store.topics.find("orders") is not None


def test_units_are_indexed_once_they_are_committed() -> None:
    # A unit in an index file counts as visible.
    keeping = Keeping(flush="sync")
    keeping.topic("orders")
    keeping.fill_segment("orders")
    commit, log = keeping.store.commit, keeping.store.log
    commit.replicate(keeping.store.queues.indexed)
    keeping.fill_segment("orders")
    keeping.fill_segment("orders")
    was = keeping.store.queues.indexed
    for _ in range(3):
        keeping.pass_time(10_000)
    assert keeping.store.checkpointer.position == log.end
    assert keeping.store.queues.indexed == was
    commit.advance(log.end)
    keeping.fill("orders", 1)
    keeping.pass_time(10_000)
    assert keeping.store.queues.indexed > was
