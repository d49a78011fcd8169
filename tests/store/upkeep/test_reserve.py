"""The reserve: a log that is full frees itself, whoever filled it, and a server starts on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.store.keeping import HOUR_MS, SEGMENT, Keeping

from rockgate.store.errors import StoreFull
from rockgate.store.progress.progress import Commit
from rockgate.store.state.topic import Topic
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.upkeep.disk import LOOK_MS
from rockgate.store.upkeep.reserve import Reserve

CAPACITY = 24 * SEGMENT


def small_disk(**settings: Any) -> Keeping:
    """A store on a small disk whose whole is to be used."""
    keeping = Keeping(
        MemoryDisk(capacity=CAPACITY),
        disk_used_percent_max=100,
        retention_ms=HOUR_MS,
        **settings,
    )
    keeping.topic("orders")
    return keeping


def until_refused(keeping: Keeping, act: Callable[[], object]) -> StoreFull:
    """Do something again and again, with upkeep in between, until there is no room for it."""
    for number in range(100_000):
        try:
            if number % 10 == 9:
                keeping.pass_time(10)
            act()
        except StoreFull as error:
            return error
    raise AssertionError("it is never refused")


def commit(keeping: Keeping, offset: int = 1) -> None:
    topic = keeping.store.topics.get("orders")
    keeping.store.progress.commit("group", [Commit(topic.id, 0, offset, metadata="m" * 100)])


def fill_up(keeping: Keeping) -> None:
    """Fill the log with messages, then with commits, until neither is taken."""
    until_refused(keeping, lambda: keeping.fill("orders", 1))
    until_refused(keeping, lambda: commit(keeping))


def check_full(keeping: Keeping) -> None:
    for refused in (
        lambda: keeping.fill("orders", 1),
        lambda: commit(keeping),
        lambda: keeping.topic("more"),
    ):
        until_refused(keeping, refused)


def check_well(keeping: Keeping) -> None:
    """Everything continues by itself."""
    keeping.fill("orders", 3)
    commit(keeping, 7)
    keeping.topic(f"topic-{keeping.store.log.end}")
    assert keeping.store.retention.failure is None


def test_when_messages_are_refused_commits_have_room_left() -> None:
    keeping = small_disk()
    refused = until_refused(keeping, lambda: keeping.fill("orders", 1))
    assert "are reserved" in str(refused)
    for number in range(20):
        commit(keeping, number)
    keeping.topic("more")


def test_when_commits_are_refused_upkeep_has_room_left() -> None:
    keeping = small_disk()
    fill_up(keeping)
    keeping.pass_time(LOOK_MS)
    check_full(keeping)
    free = keeping.disk.root().space()[0]
    assert free >= 2 * SEGMENT
    assert keeping.store.retention.disk.is_over


def test_room_that_upkeep_made_for_itself_is_not_for_messages() -> None:
    keeping = small_disk()
    fill_up(keeping)
    topic = keeping.store.topics.get("orders")
    end = keeping.row()[-1]
    while keeping.row()[-1] == end:
        keeping.store.topics.set_config({topic: {"retention.ms": str(keeping.store.log.end)}})
    with pytest.raises(StoreFull):
        keeping.fill("orders", 1, size=10)
    with pytest.raises(StoreFull):
        commit(keeping)


@pytest.mark.parametrize("how", ["at once", "clean stop", "kill"])
def test_a_full_log_frees_itself_when_its_messages_have_expired(how: str) -> None:
    keeping = small_disk()
    fill_up(keeping)
    if how == "clean stop":
        keeping.reopen()
        assert keeping.store.found.was_clean
    elif how == "kill":
        keeping.kill()
    assert len(keeping.read("orders")) > 0
    if how != "at once":
        with pytest.raises(StoreFull):
            keeping.fill("orders", 1, size=10)
    keeping.pass_time(LOOK_MS)
    keeping.pass_time(2 * HOUR_MS)
    keeping.pass_time(LOOK_MS)
    assert not keeping.store.retention.disk.is_over
    assert keeping.store.log.start > 0
    check_well(keeping)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_full_log_of_which_half_is_kept_is_moved_within_the_reserve(is_killed: bool) -> None:
    keeping = small_disk()
    keeping.topic("kept", retention_ms="-1")
    held = []

    def both() -> None:
        keeping.fill("orders", 2)
        held.extend(keeping.fill("kept", 1))

    until_refused(keeping, both)
    until_refused(keeping, lambda: commit(keeping))
    if is_killed:
        keeping.kill()
    for _ in range(3):
        keeping.pass_time(2 * HOUR_MS)
    assert keeping.store.retention.mover.moved_count > 0
    assert keeping.read("kept") == held
    check_well(keeping)


def test_a_full_log_whose_oldest_segment_is_all_alive_is_moved_within_the_reserve() -> None:
    keeping = small_disk()
    keeping.topic("kept", retention_ms="-1")
    held = keeping.fill_segment("kept")["kept"]
    fill_up(keeping)
    for _ in range(3):
        keeping.pass_time(2 * HOUR_MS)
    assert keeping.read("kept") == held
    assert keeping.store.log.start > 0
    check_well(keeping)


def delete(keeping: Keeping, topic: Topic) -> None:
    keeping.store.topics.delete([topic])


def shorten(keeping: Keeping, topic: Topic) -> None:
    keeping.store.topics.set_config({topic: {"retention.ms": "1"}})


def empty(keeping: Keeping, topic: Topic) -> None:
    keeping.store.topics.advance_log_starts({topic: {0: keeping.queue("large").next_offset}})


@pytest.mark.parametrize("act", [delete, shorten, empty])
def test_who_makes_room_in_a_full_log_gets_it_going_again(
    act: Callable[[Keeping, Topic], None],
) -> None:
    keeping = small_disk()
    topic = keeping.topic("large", retention_ms="-1")
    until_refused(keeping, lambda: keeping.fill("large", 1))
    until_refused(keeping, lambda: commit(keeping))
    keeping.pass_time(LOOK_MS)
    check_full(keeping)
    keeping.clock.advance(10)
    act(keeping, topic)
    keeping.pass_time(LOOK_MS)
    for _ in range(3):
        keeping.pass_time(10_000)
    check_well(keeping)


def test_room_that_comes_back_is_used_by_itself() -> None:
    keeping = small_disk()
    fill_up(keeping)
    keeping.pass_time(LOOK_MS)
    keeping.disk.capacity *= 2
    keeping.pass_time(LOOK_MS)
    check_well(keeping)


def test_what_no_one_waited_for_is_written_at_a_stop_with_a_full_log() -> None:
    keeping = small_disk()
    fill_up(keeping)
    topic = keeping.store.topics.get("orders")
    keeping.store.progress.commit("late", [Commit(topic.id, 0, 5)], acknowledged=False)
    keeping.reopen()
    found = keeping.store.progress.fetch("late", topic.id, 0)
    assert found is not None and found.offset == 5


# A disk that others have filled to the last byte


def filled_by_others(how: str) -> Keeping:
    """A store whose last segment and whose disk are full to the last byte, started on it."""
    keeping = small_disk()
    fill_up(keeping)
    active = keeping.row()[-1]
    rest = SEGMENT - (keeping.store.log.end - active)
    while rest > 200:
        keeping.store.appender.upkeep.append_state(b"none", bytes(min(rest - 150, 2_000)))
        rest = SEGMENT - (keeping.store.log.end - active)
    keeping.store.flush()
    keeping.disk.capacity = keeping.disk.used
    if how == "clean stop":
        keeping.reopen()
    else:
        keeping.kill()
    return keeping


@pytest.mark.parametrize("how", ["clean stop", "kill"])
def test_a_start_without_any_room_serves_readers_and_writes_once_there_is_some(how: str) -> None:
    keeping = filled_by_others(how)
    epoch = keeping.store.epochs.current
    read = keeping.read("orders")
    assert len(read) > 0
    until_refused(keeping, lambda: keeping.fill("orders", 1))
    until_refused(keeping, lambda: commit(keeping))
    keeping.pass_time(LOOK_MS)
    keeping.disk.capacity = 3 * CAPACITY
    keeping.pass_time(LOOK_MS)
    keeping.pass_time(LOOK_MS)
    assert keeping.store.epochs.current == epoch, "its epoch is the one that it said from the start"
    check_well(keeping)
    assert keeping.store.epochs.at(keeping.store.log.end) == epoch
    keeping.reopen()
    assert keeping.store.epochs.current == epoch + 1
    assert keeping.read("orders")[: len(read)] == read


def test_an_index_that_there_is_no_room_for_does_not_keep_a_server_down() -> None:
    keeping = small_disk()
    keeping.fill_segment("orders")
    keeping.fill_segment("orders")
    held = keeping.read("orders")
    keeping.store.flush()
    keeping.pass_time(2_000)
    names = keeping.indexes()
    keeping.disk = keeping.disk.killed()
    folder = keeping.disk.root().child("queueindex")
    for name in names:
        folder.remove(name)
    keeping.disk.capacity = keeping.disk.used
    keeping.open()
    assert keeping.read("orders") == held
    keeping.disk.capacity = CAPACITY
    keeping.pass_time(LOOK_MS)
    keeping.pass_time(2_000)
    assert keeping.indexes()
    assert keeping.read("orders") == held


def test_of_a_disk_that_is_small_for_its_segments_a_share_is_kept() -> None:
    keeping = Keeping()
    reserve = Reserve(1 << 20, keeping.store.snapshots, None)
    assert reserve.least(1 << 40) == 5 << 19
    assert reserve.low(1 << 40) == (5 << 19) + (1 << 20)
    assert reserve.least(4 << 20) == 1 << 20
    assert reserve.low(4 << 20) == (1 << 20) + (1 << 19)
