"""A store without an epoch: it is read, looks after its own files, and leaves its log alone."""

from __future__ import annotations

import pytest
from tests.store.keeping import HOUR_MS, Keeping
from tests.store.waiting_store import WaitingStore

from rockgate.store.clock import ManualClock
from rockgate.store.errors import StoreReadOnly
from rockgate.store.log.commitlog import Draft
from rockgate.store.progress.records import Commit
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store


def log_bytes(store: Store) -> bytes:
    """The bytes of the log, from its first position to its end."""
    whole = b"".join(bytes(each.mapping.view) for each in store.segments.row)
    return whole[: store.log.end - store.log.start]


def let_time_pass(store: Store, clock: ManualClock) -> None:
    for _ in range(50):
        clock.advance(HOUR_MS)
        for _ in range(20):
            store.tick()


def only_opened(world: Keeping | WaitingStore) -> Store:
    """The world's directory, opened again and without an epoch."""
    world.store.close()
    world.disk = world.disk.killed()
    world.store = world.open_to_read()
    return world.store


def test_whatever_upkeep_runs_nothing_is_appended() -> None:
    world = WaitingStore()
    topic = world.topic("short", retention_ms="1000")
    world.store.progress.commit("group", [Commit(topic.id, 0, 3)])
    for _ in range(40):
        world.store.appender.message(world.queue("short"), Draft(b"", 0, 0, b"x" * 500))
    world.schedule(b"due", world.clock.now_ms() + 24 * HOUR_MS)
    store = only_opened(world)
    store.deliveries.redeliver = world.redeliver
    before, epochs = log_bytes(store), store.epochs.all
    let_time_pass(store, world.clock)
    assert log_bytes(store) == before
    assert store.epochs.all == epochs
    assert world.delivered() == []
    assert {count for _, count in store.steps.failures()} == {0}, "nothing was tried in vain"
    assert store.deliveries.put_off_count == 0
    assert store.retention.failure is None
    assert world.queue("short").log_start == 0
    store.close()
    world.disk = world.disk.killed()
    store = world.store = world.open_to_read()
    assert log_bytes(store) == before
    # All of it was due: with an epoch it is done.
    store.begin_epoch()
    store.deliveries.redeliver = world.redeliver
    let_time_pass(store, world.clock)
    assert world.delivered() == [b"due"]
    assert world.queue("short").log_start == 40
    store.close()


def test_it_refuses_every_change() -> None:
    keeping = Keeping()
    keeping.topic("a")
    store = only_opened(keeping)
    queue = keeping.queue("a")
    with pytest.raises(StoreReadOnly):
        store.appender.message(queue, Draft(b"", 0, 0, b"x"))
    with pytest.raises(StoreReadOnly):
        store.appender.batch(queue, b"x", count=1, record_ms=0)
    with pytest.raises(StoreReadOnly):
        store.topics.create(NewTopic(name="b", queue_count=1))
    with pytest.raises(StoreReadOnly):
        store.appender.upkeep.append_state(b"any", b"change")
    store.close()


def test_it_is_read_under_sync_too_after_a_death() -> None:
    keeping = Keeping(flush="sync")
    keeping.topic("a")
    held = keeping.fill("a", 9)
    keeping.disk = keeping.disk.killed()
    keeping.store = keeping.open_to_read()
    assert keeping.read("a") == held
    keeping.store.close()


def test_an_epoch_makes_it_writable() -> None:
    keeping = Keeping()
    keeping.topic("a")
    held = keeping.fill("a", 3)
    last = keeping.store.epochs.current
    store = only_opened(keeping)
    assert store.epochs.current == last
    assert store.begin_epoch() is store
    assert store.epochs.current == last + 1
    held += keeping.fill("a", 3)
    keeping.reopen()
    assert keeping.read("a") == held
    assert keeping.store.epochs.current == last + 2


def test_someone_else_may_number_the_epoch_and_never_go_back() -> None:
    keeping = Keeping()
    last = keeping.store.epochs.current
    store = only_opened(keeping)
    with pytest.raises(ValueError, match="cannot follow"):
        store.begin_epoch(last)
    keeping.disk = keeping.disk.killed()
    store = keeping.open_to_read().begin_epoch(last + 7)
    assert store.epochs.current == last + 7
    store.close()


def test_a_segment_in_which_nothing_is_needed_goes_without_an_epoch() -> None:
    keeping = Keeping()
    topic = keeping.topic("a")
    keeping.fill_segment("a")
    keeping.fill_segment("a")
    keeping.store.topics.advance_log_starts({topic: {0: keeping.queue("a").next_offset}})
    keeping.store.close()
    keeping.disk = keeping.disk.killed()
    store = keeping.store = keeping.open_to_read()
    end, first = store.log.end, store.log.start
    let_time_pass(store, keeping.clock)
    assert store.log.end == end
    assert store.log.start > first
    store.close()
