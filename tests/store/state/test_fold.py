"""The contract of every fold, and how folds are fed and restored."""

import re
from collections.abc import Iterable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.seeds import seeded
from tests.store.folds import FOLDS, Body, FoldCase
from tests.store.journals import ENVELOPE_SIZE, change_at

from rockgate.protocol.entry import MOVED
from rockgate.store.clock import ManualClock
from rockgate.store.errors import FormatTooNew, StoreCorrupt
from rockgate.store.files.interface import Directory
from rockgate.store.state.fold import Change, Fold, State
from rockgate.store.state.snapshots import Snapshots
from rockgate.store.state.snapshotter import SnapshotConfig, SnapshotTaker, SnapshotWriter
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

every_fold = pytest.mark.parametrize("case", FOLDS, ids=lambda case: case.name)
examples = settings(max_examples=budget("property_examples"), deadline=None)


def log_of(bodies: Sequence[Body]) -> list[Change]:
    changes, end = [], 0
    for topic, body in bodies:
        changes.append(change_at(end, topic, body))
        end += ENVELOPE_SIZE + len(body)
    return changes


def feed(fold: Fold, changes: Iterable[Change]) -> None:
    for change in changes:
        fold.apply(change)


def live(case: FoldCase, changes: Sequence[Change]) -> Fold:
    fold = case.make()
    feed(fold, changes)
    return fold


# What every fold keeps


@every_fold
@examples
@given(data=st.data())
def test_replaying_any_prefix_twice_is_replaying_it_once(
    case: FoldCase, data: st.DataObject
) -> None:
    changes = log_of(data.draw(case.changes))
    prefix = changes[: data.draw(st.integers(0, len(changes)))]
    fold = live(case, prefix)
    feed(fold, prefix)
    assert case.view(fold) == case.view(live(case, prefix))


@every_fold
@examples
@given(data=st.data())
def test_replaying_the_log_from_anywhere_to_its_end_changes_nothing(
    case: FoldCase, data: st.DataObject
) -> None:
    changes = log_of(data.draw(case.changes))
    fold = live(case, changes)
    feed(fold, changes[data.draw(st.integers(0, len(changes))) :])
    assert case.view(fold) == case.view(live(case, changes))


@every_fold
@examples
@given(data=st.data())
def test_no_item_that_is_there_is_set_back_by_a_change_that_it_has_seen(
    case: FoldCase, data: st.DataObject
) -> None:
    changes = log_of(data.draw(case.changes))
    fold = live(case, changes)
    before = dict(case.view(fold))
    for change in changes:
        fold = live(case, changes)
        fold.apply(change)
        after = case.view(fold)
        assert {key: after.get(key) for key in before} == before


@every_fold
@examples
@given(data=st.data())
def test_a_snapshot_taken_while_the_fold_changes_and_a_replay_come_to_the_live_state(
    case: FoldCase, data: st.DataObject
) -> None:
    changes = log_of(data.draw(case.changes))
    begun = data.draw(st.integers(0, len(changes)))
    fold = live(case, changes[:begun])
    slices = []
    taking = fold.snapshot()
    coming = iter(changes[begun:])
    for takes_slice in data.draw(st.lists(st.booleans(), max_size=60)):
        if not takes_slice:
            feed(fold, [change for change in [next(coming, None)] if change])
        elif (data_slice := next(taking, None)) is not None:
            slices.append(data_slice)
    slices += taking
    feed(fold, coming)

    restored = live(case, changes[: data.draw(st.integers(0, len(changes)))])
    restored.restore(iter(slices))
    feed(restored, changes[begun:])
    assert case.view(restored) == case.view(fold)


@every_fold
@examples
@given(data=st.data())
def test_a_snapshot_at_rest_restores_to_the_same_state_without_a_replay(
    case: FoldCase, data: st.DataObject
) -> None:
    fold = live(case, log_of(data.draw(case.changes)))
    restored = case.make()
    restored.restore(fold.snapshot())
    assert case.view(restored) == case.view(fold)


@every_fold
@examples
@given(data=st.data())
def test_a_cleared_fold_is_as_new(case: FoldCase, data: st.DataObject) -> None:
    fold = live(case, log_of(data.draw(case.changes)))
    fold.clear()
    assert case.view(fold) == case.view(case.make())
    assert [*fold.snapshot()] == [*case.make().snapshot()]


@every_fold
def test_a_change_of_a_later_format_is_refused_and_not_skipped(case: FoldCase) -> None:
    with pytest.raises(FormatTooNew, match="has format 9"):
        case.make().apply(change_at(0, case.topic, b"\x09\x01\x90"))


@every_fold
@pytest.mark.parametrize("body", [b"", b"\x01", b"\x00\x01\x90", b"\x01\xff\x90", b"\x01\x01\xc1"])
def test_a_change_that_cannot_be_read_is_reported_by_its_position(
    case: FoldCase, body: bytes
) -> None:
    with pytest.raises(StoreCorrupt) as caught:
        case.make().apply(change_at(4711, case.topic, body))
    assert caught.value.position == 4711


@every_fold
def test_a_slice_that_cannot_be_read_is_reported(case: FoldCase) -> None:
    for data in (b"", b"\x00", b"\x01\xc1"):
        with pytest.raises(StoreCorrupt):
            case.make().restore([data])
    with pytest.raises(FormatTooNew):
        case.make().restore([b"\x09\x90"])


# Feeding


class Notes:
    """A fold that notes what it gets, last position first."""

    def __init__(self, name: str, *topics: bytes) -> None:
        self.name = name
        self.topics = frozenset(topics)
        self.seen: list[bytes] = []

    def apply(self, change: Change) -> None:
        if bytes(change.body) not in self.seen:
            self.seen.append(bytes(change.body))

    def snapshot(self) -> Iterator[bytes]:
        at = 0
        while at < len(self.seen):
            yield self.seen[at]
            at += 1

    def restore(self, slices: Iterable[bytes]) -> None:
        self.seen = list(slices)

    def clear(self) -> None:
        self.seen = []


def notes_state(directory: Directory, *folds: Fold) -> State:
    return State(folds, Snapshots(directory))


def test_a_change_goes_to_every_fold_that_wants_its_topic_and_to_no_other() -> None:
    one, two = Notes("one", b"x"), Notes("two", b"x", b"y")
    state = notes_state(MemoryDisk().root(), one, two)
    for position, topic in enumerate((b"x", b"y", b"z")):
        state.apply(change_at(position, topic, topic))
    assert (one.seen, two.seen) == ([b"x"], [b"x", b"y"])
    assert [state.wants(topic) for topic in (b"x", b"y", b"z")] == [True, True, False]


def test_a_moved_entry_is_no_change() -> None:
    notes = Notes("notes", b"x")
    state = notes_state(MemoryDisk().root(), notes)
    state.apply(change_at(0, b"x", b"moved", sys_flag=MOVED))
    assert notes.seen == []


def test_two_folds_of_one_name_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="two folds are called notes"):
        notes_state(MemoryDisk().root(), Notes("notes"), Notes("notes"))


# Restoring


CHANGES = [change_at(at, b"x", b"at %d" % at) for at in (0, 100, 200, 300, 400)]


class Run:
    """A process that takes a snapshot after every change, and keeps as little log as it may."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._snapshots = Snapshots(directory)
        self._state = State([Notes("notes", b"x")], self._snapshots)
        self.synced = 0

    def go(self, count: int) -> None:
        for change in CHANGES[:count]:
            self._state.apply(change)
            self.take(change.position + 100)

    def take(self, position: int) -> None:
        writer = SnapshotWriter(self._directory, self._snapshots, self._sync_log)
        taker = SnapshotTaker(
            lambda: self._state.folds,
            writer,
            self._snapshots,
            ManualClock(),
            lambda: position,
            SnapshotConfig(),
        )
        taker.begin(position)
        while taker.step():
            pass
        while writer.step():
            pass

    def _sync_log(self, needs: int) -> None:
        self.synced = needs

    @property
    def log_start(self) -> int:
        return self._snapshots.oldest_needed()


def three_snapshots(directory: Directory) -> None:
    """Take one after each of three changes, of which the two newest are retained."""
    Run(directory).go(3)


def restored(directory: Directory, log_start: int, log_end: int) -> tuple[list[bytes], int]:
    notes = Notes("notes", b"x")
    replay_from = notes_state(directory, notes).restore_newest(log_start, log_end)
    return notes.seen, replay_from


def damage(directory: Directory, name: str, at: int) -> None:
    file = directory.open(name)
    file.write(at, bytes((file.read(at, 1)[0] ^ 0xFF,)))
    file.close()


def test_the_newest_snapshot_is_restored_and_replayed_from_where_it_began() -> None:
    directory = MemoryDisk().root()
    three_snapshots(directory)
    assert restored(directory, 0, 300) == ([b"at 0", b"at 100", b"at 200"], 300)


@pytest.mark.row("S-02")
def test_a_damaged_snapshot_is_set_aside_and_the_older_one_used() -> None:
    directory = MemoryDisk().root()
    three_snapshots(directory)
    newest = directory.names()[-1]
    damage(directory, newest, 90)
    assert restored(directory, 150, 300) == ([b"at 0", b"at 100"], 200)
    assert directory.names()[-1] == f"{newest}.damaged"


def test_any_flipped_byte_of_a_snapshot_is_seen() -> None:
    directory = MemoryDisk().root()
    three_snapshots(directory)
    newest = directory.names()[-1]
    file = directory.open(newest)
    data = file.read(0, file.size())
    for at in range(len(data)):
        for bit in (0x01, 0x80):
            file = directory.create(newest)
            file.write(0, data[:at] + bytes((data[at] ^ bit,)) + data[at + 1 :])
            assert restored(directory, 150, 300) == ([b"at 0", b"at 100"], 200), f"byte {at}"
            directory.remove(f"{newest}.damaged")


def test_a_snapshot_cut_short_or_longer_than_written_is_seen() -> None:
    directory = MemoryDisk().root()
    three_snapshots(directory)
    newest = directory.names()[-1]
    file = directory.open(newest)
    data = file.read(0, file.size())
    for changed in [data[:size] for size in range(len(data))] + [data + b"\0"]:
        file = directory.create(newest)
        file.write(0, changed)
        assert restored(directory, 150, 300) == ([b"at 0", b"at 100"], 200)
        directory.remove(f"{newest}.damaged")


def test_slices_in_another_order_are_seen_although_each_is_whole() -> None:
    directory = MemoryDisk().root()
    three_snapshots(directory)
    newest = directory.names()[-1]
    file = directory.open(newest)
    data = file.read(0, file.size())
    frames = [re.escape(frame) for frame in (b"at 100", b"at 200")]
    first, second = (next(re.finditer(frame, data)) for frame in frames)
    swapped = bytearray(data)
    swapped[first.start() - 8 : first.end()] = data[second.start() - 8 : second.end()]
    swapped[second.start() - 8 : second.end()] = data[first.start() - 8 : first.end()]
    file.write(0, swapped)
    assert restored(directory, 150, 300) == ([b"at 0", b"at 100"], 200)


def test_a_snapshot_that_needs_log_beyond_the_end_is_removed_for_good() -> None:
    directory = MemoryDisk().root()
    three_snapshots(directory)
    assert restored(directory, 0, 299) == ([b"at 0", b"at 100"], 200)
    # The log grows past that place again, with another history.
    assert restored(directory, 0, 400) == ([b"at 0", b"at 100"], 200)


def test_without_a_snapshot_a_log_from_0_is_replayed_whole() -> None:
    assert restored(MemoryDisk().root(), 0, 300) == ([], 0)


@pytest.mark.row("S-02")
def test_without_a_whole_snapshot_a_log_that_starts_later_is_refused() -> None:
    directory = MemoryDisk().root()
    three_snapshots(directory)
    for name in directory.names():
        damage(directory, name, 90)
    with pytest.raises(
        StoreCorrupt, match="there is no valid snapshot, and the log does not start at 0"
    ):
        restored(directory, 150, 300)


def test_a_snapshot_from_before_the_logs_start_is_not_used() -> None:
    directory = MemoryDisk().root()
    three_snapshots(directory)
    damage(directory, directory.names()[-1], 90)
    with pytest.raises(StoreCorrupt):
        restored(directory, 201, 300)


def test_a_fold_that_the_snapshot_does_not_know_gets_all_the_log_there_is() -> None:
    directory = MemoryDisk().root()
    three_snapshots(directory)
    old, new = Notes("notes", b"x"), Notes("new", b"x")
    assert notes_state(directory, old, new).restore_newest(50, 300) == 50
    assert (len(old.seen), new.seen) == (3, [])


def test_a_snapshot_of_a_fold_unknown_here_is_refused_before_its_state_is_lost() -> None:
    directory = MemoryDisk().root()
    three_snapshots(directory)
    with pytest.raises(FormatTooNew, match="contains unknown fold 'notes'"):
        notes_state(directory, Notes("other", b"x")).restore_newest(0, 300)
    assert len(directory.names()) == 2


@pytest.mark.row("S-01")
def test_a_power_cut_anywhere_in_a_snapshot_leaves_a_start_with_the_whole_state() -> None:
    """Cut at every operation of five snapshots, under many fates of what was not synced.

    The log survives as far as it was synced, and retention has deleted all that it may.
    """
    random = seeded()
    crash_at = 0
    is_cut = True
    while is_cut:
        crash_at += 1
        disk = MemoryDisk(crash_at=crash_at)
        run = Run(disk.root())
        try:
            run.go(len(CHANGES))
            is_cut = False
        except PowerCut:
            pass
        expected = [b"at %d" % at for at in range(0, run.synced, 100)]
        for _ in range(budget("power_cuts") // 10):
            after = disk.power_cut(random).root()
            found = state_after(after, run.log_start, run.synced)
            assert found == expected, f"cut at operation {crash_at}"
    assert crash_at > 25, "the snapshots take some operations"


def state_after(directory: Directory, log_start: int, log_end: int) -> list[bytes]:
    notes = Notes("notes", b"x")
    snapshots = Snapshots(directory)
    replay_from = State([notes], snapshots).restore_newest(log_start, log_end)
    assert not snapshots.damaged_count, "a snapshot that is in place is whole"
    feed(notes, [change for change in CHANGES if replay_from <= change.position < log_end])
    return notes.seen
