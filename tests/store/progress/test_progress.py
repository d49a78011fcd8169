"""Progress: acknowledged and coalesced commits, removals, lives of topics, against a model."""

import itertools
import sys
import time
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.budget import budget
from tests.store.journals import MemoryJournal

from rockgate.store.clock import ManualClock
from rockgate.store.errors import EntryTooLarge, InvalidGroup, StoreFull
from rockgate.store.progress.progress import COALESCE_MS, Commit, Committed, Key, Progress
from rockgate.store.progress.records import (
    PROGRESS_TOPIC,
    ProgressRecordKind,
    decode,
    unpack_record,
)
from rockgate.store.state.fold import Change
from rockgate.store.state.topics import NewTopic, Topics

A, B = bytes([1] * 16), bytes([2] * 16)


class Setup:
    """Progress on a journal in memory and a clock that is turned by hand."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.clock = ManualClock()
        self.progress = Progress(self.journal, self.clock)
        self.state = self.journal.attach(self.progress)

    def commit(self, group: str, queue_id: int, offset: int, *, acknowledged: bool = True) -> None:
        self.progress.commit(group, [Commit(A, queue_id, offset)], acknowledged=acknowledged)

    def one_way(self, group: str, queue_id: int, offset: int) -> None:
        self.commit(group, queue_id, offset, acknowledged=False)

    def offset(self, group: str, queue_id: int, topic_id: bytes = A) -> int | None:
        found = self.progress.fetch(group, topic_id, queue_id)
        return found.offset if found else None

    def step(self) -> bool:
        return self.progress.step(self.clock.monotonic_ms())

    def restarted(self) -> "Setup":
        """What a new process finds."""
        other = Setup()
        self.journal.replay(other.state, 0)
        return other

    def appended(self) -> list[tuple[str, int, int]]:
        return [key for change in self.journal.changes for key in commits_in(change)]


def commits_in(change: Change) -> list[tuple[str, int, int]]:
    """Group, queue and offset of every record in a change."""
    if change.topic != PROGRESS_TOPIC or change.body[1] != ProgressRecordKind.COMMIT:
        return []
    return [
        (held.group, queue_id, unpack_record(record, 0).offset)
        for held in decode(change)[1]
        for queue_id, record in held.queues.items()
    ]


# Commits that are waited for


@pytest.mark.row("OFF-8")
def test_an_acknowledged_commit_is_in_the_log_before_the_call_returns() -> None:
    setup = Setup()
    setup.commit("g", 0, 17)
    assert setup.appended() == [("g", 0, 17)]
    assert setup.restarted().offset("g", 0) == 17


def test_a_commit_is_fetched_with_everything_that_was_committed() -> None:
    setup = Setup()
    setup.progress.commit("g", [Commit(A, 3, 17, 5, "note", 99)])
    now_ms = setup.clock.now_ms()
    assert setup.progress.fetch("g", A, 3) == Committed(17, 5, "note", now_ms, 99)


def test_what_was_never_committed_is_none() -> None:
    setup = Setup()
    setup.commit("g", 0, 17)
    assert setup.offset("h", 0) is setup.offset("g", 1) is setup.offset("g", 0, B) is None


@pytest.mark.row("OFF-8")
def test_a_lower_offset_is_accepted_because_a_group_may_be_set_back() -> None:
    setup = Setup()
    setup.commit("g", 0, 17)
    setup.commit("g", 0, 3)
    assert setup.offset("g", 0) == 3


def test_many_queues_of_many_topics_are_one_entry() -> None:
    setup = Setup()
    setup.progress.commit("g", [Commit(t, q, q) for t in (A, B) for q in range(5_000)])
    assert setup.journal.group_sizes == [1]
    assert len(list(setup.progress.fetch_group("g"))) == 10_000
    assert setup.progress.topics_of("g") == [A, B]
    assert setup.progress.topics_of("another") == []


def test_what_needs_several_entries_is_one_atomic_group() -> None:
    setup = Setup()
    setup.progress.commit("g", [Commit(A, q, q) for q in range(50_000)])
    assert setup.journal.group_sizes == [2]
    assert len(list(setup.progress.fetch_group("g"))) == 50_000


def test_a_commit_with_one_bad_offset_commits_nothing() -> None:
    setup = Setup()
    for acknowledged in (True, False):
        with pytest.raises(EntryTooLarge):
            setup.progress.commit(
                "g",
                [Commit(A, 0, 1), Commit(A, 1, 1, metadata="x" * 40_000)],
                acknowledged=acknowledged,
            )
        with pytest.raises(InvalidGroup):
            setup.progress.commit("\ud800", [Commit(A, 0, 1)], acknowledged=acknowledged)
    setup.progress.commit("g", [])
    setup.progress.flush()
    assert (setup.journal.changes, list(setup.progress.groups())) == ([], [])


def test_a_commit_that_cannot_be_appended_changes_nothing() -> None:
    setup = Setup()
    setup.commit("g", 0, 1)
    setup.journal.failure = StoreFull("no space left on device")
    with pytest.raises(StoreFull):
        setup.commit("g", 0, 2)
    assert setup.offset("g", 0) == 1


# Commits that are not waited for


def test_a_one_way_commit_can_be_read_at_once_and_is_appended_by_the_next_step() -> None:
    setup = Setup()
    setup.one_way("g", 0, 17)
    assert (setup.offset("g", 0), setup.appended()) == (17, [])
    assert list(setup.progress.groups()) == ["g"]
    assert [entry[:2] for entry in setup.progress.fetch_group("g")] == [(A, 0)]
    assert setup.progress.topics_of("g") == [A]
    setup.step()
    assert setup.progress.topics_of("g") == [A]
    assert (setup.offset("g", 0), setup.appended()) == (17, [("g", 0, 17)])


def test_one_way_commits_of_a_queue_are_appended_once_a_second_at_most() -> None:
    setup = Setup()
    for offset in range(100):
        setup.one_way("g", 0, offset)
        setup.step()
        setup.clock.advance(100)
    assert [offset for _, _, offset in setup.appended()] == list(range(0, 100, 10))


def test_a_one_way_commit_that_says_the_same_again_is_never_appended() -> None:
    setup = Setup()
    setup.commit("g", 0, 17)
    for _ in range(5):
        setup.one_way("g", 0, 17)
        setup.clock.advance(COALESCE_MS)
        setup.step()
    setup.progress.flush()
    assert setup.appended() == [("g", 0, 17)]


def test_a_one_way_commit_taken_back_before_its_second_leaves_no_trace() -> None:
    setup = Setup()
    setup.commit("g", 0, 17)
    setup.one_way("g", 0, 18)
    setup.one_way("g", 0, 17)
    setup.progress.flush()
    assert setup.appended() == [("g", 0, 17)]


def test_everything_that_waits_is_appended_at_the_stop_whatever_the_time() -> None:
    setup = Setup()
    setup.one_way("g", 0, 1)
    setup.step()
    for queue_id in range(5_000):
        setup.one_way("g", queue_id, 2)
    assert not setup.step()
    setup.progress.flush()
    after = setup.restarted()
    assert [after.offset("g", queue_id) for queue_id in range(5_000)] == [2] * 5_000
    end = setup.journal.end
    setup.progress.flush()
    assert setup.journal.end == end


def test_a_killed_process_forgets_at_most_what_waited() -> None:
    setup = Setup()
    setup.commit("g", 0, 1)
    setup.one_way("g", 0, 2)
    assert setup.restarted().offset("g", 0) == 1


def test_an_acknowledged_commit_replaces_an_earlier_one_that_still_waits() -> None:
    setup = Setup()
    setup.one_way("g", 0, 1)
    setup.commit("g", 0, 2)
    assert setup.offset("g", 0) == 2
    setup.progress.flush()
    assert setup.appended() == [("g", 0, 2)]


def test_a_large_round_is_appended_in_parts_so_that_the_loop_is_never_held() -> None:
    setup = Setup()
    setup.progress.commit("g", [Commit(A, q, q) for q in range(10_000)], acknowledged=False)
    steps = 1
    while setup.step():
        steps += 1
    assert steps == 10
    assert len(set(setup.appended())) == len(setup.appended()) == 10_000


def test_a_queue_at_the_end_of_a_long_round_still_waits_a_second_for_the_next() -> None:
    setup = Setup()
    times: dict[int, list[int]] = {}
    for _ in range(60):
        for queue_id in range(3_000):
            setup.one_way("g", queue_id, setup.clock.now_ms())
        before = len(setup.journal.changes)
        setup.step()
        for change in setup.journal.changes[before:]:
            for _, queue_id, _ in commits_in(change):
                times.setdefault(queue_id, []).append(setup.clock.monotonic_ms())
        setup.clock.advance(150)
    gaps = [b - a for seen in times.values() for a, b in itertools.pairwise(seen)]
    assert gaps and min(gaps) >= COALESCE_MS


def test_what_a_full_disk_refuses_is_tried_again_a_second_later() -> None:
    setup = Setup()
    for queue_id in range(3_000):
        setup.one_way("g", queue_id, 1)
    setup.journal.failure = StoreFull("no space left on device")
    with pytest.raises(StoreFull):
        setup.step()
    assert not setup.step(), "the error is not raised at every turn"
    assert setup.offset("g", 0) == 1
    setup.journal.failure = None
    setup.clock.advance(COALESCE_MS)
    while setup.step():
        pass
    assert len(setup.appended()) == 3_000


# Removing


def test_a_groups_progress_is_removed_whole_by_topic_or_by_queue() -> None:
    setup = Setup()
    for group in "ghi":
        setup.progress.commit(group, [Commit(t, q, 1) for t in (A, B) for q in (0, 1)])
    setup.progress.delete_groups(["g"])
    setup.progress.delete_topic("h", A)
    setup.progress.remove([Key("i", A, 0), Key("i", B, 1), Key("i", B, 0)])
    for found in (setup.progress, setup.restarted().progress):
        assert sorted(key for key, _ in found.items()) == [
            Key("h", B, 0),
            Key("h", B, 1),
            Key("i", A, 1),
        ]
        assert sorted(found.groups()) == ["h", "i"]
        assert sorted(found.groups_of(B)) == ["h"]


def test_removing_what_is_not_there_is_not_appended() -> None:
    setup = Setup()
    setup.commit("g", 0, 1)
    end = setup.journal.end
    setup.progress.delete_groups(["h"])
    setup.progress.delete_topic("g", B)
    setup.progress.delete_topic("h", A)
    setup.progress.remove([Key("g", A, 1), Key("g", B, 0)])
    assert setup.journal.end == end


def test_removing_takes_what_waits_along() -> None:
    setup = Setup()
    for group in "ghi":
        setup.one_way(group, 0, 1)
    setup.commit("i", 1, 1)
    setup.progress.delete_groups(["g"])
    setup.progress.delete_topic("h", A)
    setup.progress.remove([Key("i", A, 0), Key("i", A, 1)])
    setup.progress.flush()
    assert (list(setup.progress.groups()), setup.appended()) == ([], [("i", 1, 1)])


def test_a_removal_that_cannot_be_appended_removes_nothing() -> None:
    setup = Setup()
    setup.commit("g", 0, 1)
    setup.one_way("g", 1, 1)
    setup.journal.failure = StoreFull("no space left on device")
    with pytest.raises(StoreFull):
        setup.progress.delete_groups(["g"])
    assert (setup.offset("g", 0), setup.offset("g", 1)) == (1, 1)


def test_a_topics_deletion_takes_its_progress_along_in_every_group() -> None:
    setup = Setup()
    topics = Topics(setup.journal)
    setup.state = setup.journal.attach(topics, setup.progress)
    first, other = topics.create_many([NewTopic(name=name, queue_count=1) for name in ("a", "b")])
    for group in "gh":
        setup.progress.commit(group, [Commit(first.id, 0, 5), Commit(other.id, 0, 6)])
    setup.progress.commit("i", [Commit(first.id, 0, 7)], acknowledged=False)
    topics.delete([first])
    second = topics.create(NewTopic(name="a", queue_count=1))
    assert list(setup.progress.groups_of(first.id)) == []
    for found in (setup, setup.restarted()):
        assert found.offset("g", 0, first.id) is found.offset("g", 0, second.id) is None
        assert found.offset("g", 0, other.id) == 6
    setup.progress.flush()
    assert sorted(setup.progress.groups()) == ["g", "h"]


# Walking


def test_pages_cover_everything_and_may_be_far_apart() -> None:
    setup = Setup()
    for number in range(50):
        setup.progress.commit(f"g{number}", [Commit(A, q, number) for q in range(3)])
    place: int | None = 0
    seen: list[Key] = []
    while place is not None:
        place, found = setup.progress.page(place, 20)
        assert len(found) <= 20 + 3
        seen += [key for key, _ in found]
        setup.progress.delete_groups(["g49"])
        setup.commit("new", 0, 1)
    expected = {Key(f"g{number}", A, q) for number in range(49) for q in range(3)}
    assert expected <= set(seen)
    assert len(seen) == len(set(seen))


def test_a_page_over_empty_places_ends_too() -> None:
    setup = Setup()
    for number in range(100):
        setup.commit(f"g{number}", 0, 1)
    setup.progress.delete_groups(f"g{number}" for number in range(100))
    assert setup.progress.page(0, 20) == (20, [])


def test_a_slice_takes_some_thousand_records_and_no_more() -> None:
    setup = Setup()
    setup.progress.commit("large", [Commit(A, q, 1) for q in range(50_000)])
    for number in range(3_000):
        setup.progress.commit(f"g{number}", [Commit(A, 0, 1)])
    slices = list(setup.progress.snapshot())
    assert max(map(len, slices)) < 400_000
    restored = Progress(MemoryJournal(), ManualClock())
    restored.restore(slices)
    assert dict(restored.items()) == dict(setup.progress.items())
    setup.progress.delete_groups(f"g{number}" for number in range(3_000))
    slices = list(setup.progress.snapshot())
    assert len(slices) > 10


def test_a_slice_takes_no_more_than_five_hundred_groups_of_one_record() -> None:
    setup = Setup()
    for number in range(3_000):
        setup.commit(f"g{number}", 0, 1)
    counts = []
    for data in setup.progress.snapshot():
        restored = Progress(MemoryJournal(), ManualClock())
        restored.restore([data])
        counts.append(len(dict(restored.items())))
    assert sum(counts) == 3_000
    assert max(counts) <= 500, "of two microseconds each"


@pytest.mark.long
@pytest.mark.parametrize("queue_count", [16, 1])
def test_a_million_records_are_taken_in_slices_that_never_hold_the_loop(queue_count: int) -> None:
    """By the thread's own time, because on a busy machine the clock's says something else."""
    setup = Setup()
    for number in range(1_000_000 // queue_count):
        topic_id = (number // 100).to_bytes(16, "big")
        commits = [Commit(topic_id, queue_id, number) for queue_id in range(queue_count)]
        setup.progress.commit(f"group-{number % 100}", commits)
    slices, times = [], []
    taking = setup.progress.snapshot()
    while True:
        begun = time.thread_time()
        data = next(taking, None)
        times.append((time.thread_time() - begun) * 1000)
        if data is None:
            break
        slices.append(data)
    restored = Progress(MemoryJournal(), ManualClock())
    begun = time.thread_time()
    restored.restore(slices)
    took_s = time.thread_time() - begun
    sys.stdout.write(
        f"{len(slices)} slices, {sum(map(len, slices)) / 1e6:.0f} MB, longest {max(times):.2f} ms, "
        f"all {sum(times):.0f} ms, restore {took_s:.2f} s\n"
    )
    assert dict(restored.items()) == dict(setup.progress.items())
    assert max(times) < 8
    assert took_s < 8


# The model


class ProgressModel(RuleBasedStateMachine):
    """Any calls at any time, with stops and kills between, against two dicts."""

    groups = st.sampled_from("gh")
    topics = st.sampled_from([A, B])
    queues = st.integers(0, 2)
    offsets = st.integers(0, 4)

    def __init__(self) -> None:
        super().__init__()
        self.journal = MemoryJournal()
        self.clock = ManualClock()
        self.progress = self.start()
        self.appended: dict[Key, int] = {}
        """What a killed process would find again."""
        self.waiting: dict[Key, int] = {}
        self.last_ms: dict[Key, int] = {}
        """When a waiting commit of a key was last appended."""
        self.seen = 0

    def start(self) -> Progress:
        progress = Progress(self.journal, self.clock, slice_cost=1)
        self.state = self.journal.attach(progress)
        return progress

    @rule(group=groups, topic=topics, queue_ids=st.sets(queues, min_size=1), offset=offsets)
    def commit(self, group: str, topic: bytes, queue_ids: set[int], offset: int) -> None:
        commits = [Commit(topic, queue_id, offset) for queue_id in queue_ids]
        self.progress.commit(group, commits)
        for queue_id in queue_ids:
            key = Key(group, topic, queue_id)
            self.appended[key] = offset
            self.waiting.pop(key, None)
        self.seen = len(self.journal.changes)

    @rule(group=groups, topic=topics, queue_id=queues, offset=offsets)
    def commit_one_way(self, group: str, topic: bytes, queue_id: int, offset: int) -> None:
        self.progress.commit(group, [Commit(topic, queue_id, offset)], acknowledged=False)
        key = Key(group, topic, queue_id)
        if self.appended.get(key) == offset:
            self.waiting.pop(key, None)
        else:
            self.waiting[key] = offset

    @rule(passed_ms=st.sampled_from([1, 300, 999, 1000, 5000]))
    def step(self, passed_ms: int) -> None:
        self.clock.advance(passed_ms)
        self.progress.step(self.clock.monotonic_ms())
        now_ms = self.clock.monotonic_ms()
        for key, offset in self.new_records():
            assert offset != self.appended.get(key), "nothing unchanged is appended"
            assert now_ms - self.last_ms.get(key, -COALESCE_MS) >= COALESCE_MS
            assert self.waiting.pop(key) == offset
            self.appended[key] = offset
            self.last_ms[key] = now_ms

    @rule()
    def a_second_of_peace_leaves_nothing_waiting(self) -> None:
        self.step(COALESCE_MS)
        assert not self.waiting

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        self.progress.delete_groups([group])
        self.forget(key for key in self.all_keys() if key.group == group)

    @rule(group=groups, topic=topics)
    def delete_topic(self, group: str, topic: bytes) -> None:
        self.progress.delete_topic(group, topic)
        self.forget(key for key in self.all_keys() if key[:2] == (group, topic))

    @rule(keys=st.sets(st.tuples(groups, topics, queues), min_size=1))
    def remove(self, keys: set[tuple[str, bytes, int]]) -> None:
        self.progress.remove(itertools.starmap(Key, keys))
        self.forget(itertools.starmap(Key, keys))

    @rule()
    def stop_and_start(self) -> None:
        self.progress.flush()
        self.appended.update(self.waiting)
        self.replace_by_a_replay()

    @rule()
    def kill_and_start(self) -> None:
        self.replace_by_a_replay()

    @rule(earlier=st.integers(0, 5))
    def kill_and_start_from_a_snapshot(self, earlier: int) -> None:
        slices = list(self.progress.snapshot())
        changes = self.journal.changes
        replay_from = changes[-earlier].position if 0 < earlier <= len(changes) else 0
        self.progress = self.start()
        self.progress.restore(slices)
        self.journal.replay(self.state, replay_from)
        self.waiting = {}
        self.last_ms = {}

    def replace_by_a_replay(self) -> None:
        self.progress = self.start()
        self.journal.replay(self.state, 0)
        self.waiting = {}
        self.last_ms = {}
        self.seen = len(self.journal.changes)

    def new_records(self) -> list[tuple[Key, int]]:
        changes = self.journal.changes[self.seen :]
        self.seen = len(self.journal.changes)
        return [
            (Key(held.group, held.topic_id, queue_id), unpack_record(record, 0).offset)
            for change in changes
            if change.body[1] == ProgressRecordKind.COMMIT
            for held in decode(change)[1]
            for queue_id, record in held.queues.items()
        ]

    def all_keys(self) -> list[Key]:
        return [*self.appended, *self.waiting]

    def forget(self, keys: Iterable[Key]) -> None:
        for key in list(keys):
            self.appended.pop(key, None)
            self.waiting.pop(key, None)

    @invariant()
    def progress_is_as_the_model_says(self) -> None:
        shown = self.appended | self.waiting
        found = {
            Key(group, topic_id, queue_id): committed.offset
            for group in self.progress.groups()
            for topic_id, queue_id, committed in self.progress.fetch_group(group)
        }
        assert found == shown
        for key, offset in shown.items():
            committed = self.progress.fetch(*key)
            assert committed is not None and committed.offset == offset
        assert {key for key, _ in self.progress.items()} == set(self.appended)


TestProgressAgainstTheModel = ProgressModel.TestCase
TestProgressAgainstTheModel.settings = settings(
    max_examples=budget("property_examples"),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
