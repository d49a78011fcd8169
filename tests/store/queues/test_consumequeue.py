"""Consume queues: every lookup, in memory, sealed, mixed and moved, against a plain list."""

from __future__ import annotations

import sys
import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.budget import budget

from rockgate.store.errors import StoreCorrupt
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import UNIT, Unit
from rockgate.store.queues.queueruns import Indexes
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.testing.memory_files import MemoryDisk

SEGMENT = 1_000
ID = b"a topic's own id"
ALL = 1 << 40


def queue_of(*entries: tuple[int, int], step: int = 100) -> Queue:
    """A queue in memory of (count, record ms) entries, a hundred bytes each."""
    queue = Queue(b"orders", ID, 0, Indexes())
    for index, (count, record_ms) in enumerate(entries):
        queue.add(index * step, 100, count, 1_000 + index, record_ms)
    return queue


def bases(units: list[Unit]) -> list[int]:
    return [unit.base for unit in units]


# In memory


def test_an_empty_queue_has_nothing() -> None:
    queue = queue_of()
    assert queue.units(0, ALL, ALL) == []
    assert queue.find(0) is None
    assert queue.first_at_record_time(0) is None
    assert queue.first_at_store_time(0) is None
    assert queue.end_before(0) == queue.next_offset == 0


@pytest.mark.row("I-04")
def test_the_unit_that_holds_an_offset_comes_first() -> None:
    queue = queue_of((1, 0), (5, 0), (1, 0), (10, 0))
    assert queue.next_offset == 17
    holders = [0, 1, 1, 1, 1, 1, 6] + [7] * 10
    for offset, base in enumerate(holders):
        found = queue.find(offset)
        assert found is not None
        assert found.base == base
        assert queue.units(offset, ALL, ALL)[0] == found
    assert queue.find(17) is None


@pytest.mark.row("I-04")
def test_where_every_count_is_one_offset_n_is_the_nth_entry() -> None:
    queue = queue_of(*[(1, 0)] * 300)
    for offset in range(300):
        found = queue.find(offset)
        assert found is not None
        assert found.position == offset * 100


def test_the_first_unit_is_returned_whatever_its_size() -> None:
    queue = queue_of((1, 0), (1, 0))
    assert bases(queue.units(0, 0, ALL)) == [0]
    assert bases(queue.units(0, 1, ALL)) == [0]


def test_units_are_returned_as_long_as_they_fit() -> None:
    queue = queue_of(*[(1, 0)] * 5)
    assert bases(queue.units(1, 299, ALL)) == [1, 2]
    assert bases(queue.units(1, 300, ALL)) == [1, 2, 3]
    assert bases(queue.units(1, 301, ALL)) == [1, 2, 3]


def test_no_unit_at_or_behind_the_position_bound_is_returned() -> None:
    queue = queue_of(*[(1, 0)] * 5)
    assert bases(queue.units(0, ALL, 300)) == [0, 1, 2]
    assert bases(queue.units(0, ALL, 301)) == [0, 1, 2, 3]
    assert queue.units(0, ALL, 0) == []


def test_the_high_watermark_is_the_end_of_what_lies_wholly_before_a_position() -> None:
    queue = queue_of((2, 0), (3, 0), (4, 0))
    expected = {0: 0, 99: 0, 100: 2, 199: 2, 200: 5, 299: 5, 300: 9, 10_000: 9}
    assert {position: queue.end_before(position) for position in expected} == expected


def test_a_queue_need_not_begin_at_zero() -> None:
    queue = queue_of()
    queue.next_offset = 1_000
    queue.add(0, 100, 5, 1, 1)
    queue.add(100, 100, 5, 2, 2)
    assert bases(queue.units(0, ALL, ALL)) == [1_000, 1_005]
    assert bases(queue.units(1_004, ALL, ALL)) == [1_000, 1_005]
    assert bases(queue.units(1_005, ALL, ALL)) == [1_005]
    assert queue.end_before(0) == 1_000


def test_where_offsets_are_missing_the_next_unit_comes_first() -> None:
    queue = queue_of((5, 10))
    queue.next_offset = 50
    queue.add(100, 100, 5, 1_001, 20)
    assert bases(queue.units(4, ALL, ALL)) == [0, 50]
    for offset in (5, 49, 50, 54):
        assert bases(queue.units(offset, ALL, ALL)) == [50]
    assert queue.units(55, ALL, ALL) == []


# By time


def test_the_record_time_of_a_unit_is_a_running_maximum() -> None:
    queue = queue_of((1, 10), (1, 30), (1, 20), (1, 40))
    assert [unit.max_ms for unit in queue.units(0, ALL, ALL)] == [10, 30, 30, 40]
    expected = {0: 0, 10: 0, 11: 1, 20: 1, 30: 1, 31: 3, 40: 3}
    for timestamp_ms, base in expected.items():
        found = queue.first_at_record_time(timestamp_ms)
        assert found is not None
        assert found.base == base
    assert queue.first_at_record_time(41) is None


def test_the_first_entry_stored_at_a_time_or_later_is_found() -> None:
    queue = queue_of(*[(2, 0)] * 4)
    for timestamp_ms, base in {0: 0, 1_000: 0, 1_001: 2, 1_003: 6}.items():
        found = queue.first_at_store_time(timestamp_ms)
        assert found is not None
        assert found.base == base
    assert queue.first_at_store_time(1_004) is None


def test_what_lies_below_the_log_start_is_not_found_by_time() -> None:
    queue = queue_of((1, 10), (2, 20), (1, 30), (1, 40))
    queue.log_start = 2
    for timestamp_ms, base in {0: 1, 20: 1, 21: 3, 40: 4}.items():
        found = queue.first_at_record_time(timestamp_ms)
        assert found is not None
        assert found.base == base
    queue.log_start = 5
    assert queue.first_at_record_time(0) is None


# Threads


def test_units_can_be_taken_for_an_index_while_others_are_added() -> None:
    """An add changes two arrays: whoever looks in between must see neither too few nor too many."""
    queue = queue_of()
    stop = threading.Event()
    problems: list[Exception] = []

    def take() -> None:
        try:
            while not stop.is_set():
                end = queue.tail_count * 100
                [run] = queue.packed_between(0, end)
                assert len(run.units) // UNIT.size * 100 in (end, end - 100)
        except Exception as problem:  # noqa: BLE001  # raised below
            problems.append(problem)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=take)
    thread.start()
    try:
        for index in range(20_000):
            queue.add(index * 100, 100, 1, 1, 1)
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert problems == []


def test_a_queue_can_grow_while_it_is_read() -> None:
    queue = queue_of(*[(1, 0)] * 200)
    seen = 0
    for _ in queue.walk(0):
        seen += 1
        if seen < 300:
            queue.add(20_000 + seen, 100, 1, 1, 1)
    assert seen > 200


# Against a model: memory, sealed runs, moved units, restarts


class QueueModel(RuleBasedStateMachine):
    """Two queues over a log of small segments, beside two dictionaries of what must be found."""

    @initialize()
    def begin(self) -> None:
        self.disk = MemoryDisk()
        self.table = QueueTable(self.disk.root(), SEGMENT)
        self.queues = self.table.create(b"orders", ID, 2)
        self.model: list[dict[int, Unit]] = [{}, {}]
        self.first_appends: list[list[tuple[int, int, int]]] = [[], []]
        self.next_offset = [0, 0]
        self.max_ms = [-1, -1]
        self.start = 0
        self.end = 0
        self.store_ms = 0

    def place(self, size: int) -> int:
        if self.end // SEGMENT != (self.end + size) // SEGMENT:
            self.end = (self.end // SEGMENT + 1) * SEGMENT
        position = self.end
        self.end += size
        return position

    @rule(
        number=st.integers(0, 1),
        counts=st.lists(st.sampled_from([1, 1, 1, 2, 7]), min_size=1, max_size=8),
        size=st.integers(50, 400),
        record_ms=st.integers(0, 1_000),
    )
    def append(self, number: int, counts: list[int], size: int, record_ms: int) -> None:
        queue = self.queues[number]
        for count in counts:
            position = self.place(size)
            self.store_ms += record_ms % 3
            queue.add(position, size, count, self.store_ms, record_ms)
            if not queue.is_dirty:
                self.table.note(queue)
            self.max_ms[number] = max(self.max_ms[number], record_ms)
            base = self.next_offset[number]
            fields = (base, position, size, count, self.store_ms, self.max_ms[number], 0)
            self.model[number][base] = Unit(*fields)
            self.next_offset[number] = base + count
            self.first_appends[number].append((base, position, size))

    @rule(behind=st.integers(0, 300))
    def index(self, behind: int) -> None:
        """Write index files up to somewhere near the end."""
        ends = [unit.position + unit.size for model in self.model for unit in model.values()]
        flushed = max([end for end in ends if end <= self.end - behind], default=0)
        while (stretch := self.table.plan(flushed)) is not None:
            self.table.write(stretch)
            while self.table.adopt(stretch):
                pass
        self.table.clean()

    @precondition(lambda self: self.start + SEGMENT <= self.table.sealed)
    @rule(keep=st.integers(0, 3))
    def drop_oldest_segment(self, keep: int) -> None:
        """Move every n-th of its entries to the end, then release it."""
        for number, model in enumerate(self.model):
            queue = self.queues[number]
            oldest = [u for u in model.values() if u.position < self.start + SEGMENT]
            for index, unit in enumerate(sorted(oldest)):
                if keep and index % keep == 0:
                    moved = unit._replace(position=self.place(unit.size))
                    queue.add_moved(moved)
                    if not queue.is_dirty:
                        self.table.note(queue)
                    model[unit.base] = moved
                    # Both copies are there for a while.
                    self.compare(number, [unit.base, unit.base + unit.offset_count - 1])
                else:
                    del model[unit.base]
                    # Retention advances the log start instead of leaving such a hole; the queue
                    # still copes with holes, as soon as the segment is deleted.
        self.table.drop_segment(self.start)
        self.start += SEGMENT
        self.table.clean()

    @rule()
    def restart(self) -> None:
        """Load what the index files have; the units behind them are fed again from the model."""
        self.disk = self.disk.killed()
        self.table = QueueTable(self.disk.root(), SEGMENT)
        self.queues = self.table.create(b"orders", ID, 2)
        scan_from = self.table.load(self.start, self.end)
        entries = sorted(
            (unit.position, number, unit)
            for number, model in enumerate(self.model)
            for unit in model.values()
            if unit.position >= scan_from
        )
        first_places = [{at for _, at, _ in firsts} for firsts in self.first_appends]
        for _, number, unit in entries:
            queue = self.queues[number]
            if unit.position not in first_places[number]:
                queue.add_moved(unit)
            else:
                queue.next_offset = unit.base
                queue.add(*unit[1:5], unit.max_ms)
            if not queue.is_dirty:
                self.table.note(queue)
        for number, queue in enumerate(self.queues):
            # The log start, a fold's business, remembers this when every unit is gone.
            queue.next_offset = max(queue.next_offset, self.next_offset[number])
            queue.max_ms = self.max_ms[number]

    @invariant()
    def every_lookup_agrees(self) -> None:
        for number, model in enumerate(self.model):
            edges = {0, self.next_offset[number]}
            for unit in list(model.values())[:: max(1, len(model) // 12)]:
                edges |= {unit.base, unit.base + unit.offset_count - 1, unit.base - 1}
            self.compare(number, sorted(edges))

    def compare(self, number: int, offsets: list[int]) -> None:
        queue = self.queues[number]
        ordered = sorted(self.model[number].values())
        assert queue.next_offset == self.next_offset[number]
        for offset in offsets:
            expected = [unit for unit in ordered if unit.base + unit.offset_count > offset]
            found = queue.units(offset, ALL, ALL)
            # While a dropped entry's segment is still there its unit may be seen.
            live = [unit for unit in found if unit in expected]
            assert live == expected
            if self.is_settled(number):
                assert found == expected
                assert queue.find(offset) == (expected[0] if expected else None)
        if self.is_settled(number):
            self.compare_times(queue, ordered)

    def is_settled(self, number: int) -> bool:
        """Whether no unit was taken out of the model whose segment is still there."""
        return all(
            unit in self.model[number].values() for unit in self.queues[number].units(0, ALL, ALL)
        )

    def compare_times(self, queue: Queue, ordered: list[Unit]) -> None:
        times = {unit.max_ms for unit in ordered[:: max(1, len(ordered) // 8)]} | {0, 500, 2_000}
        for wanted in times:
            expected = next((unit for unit in ordered if unit.max_ms >= wanted), None)
            assert queue.first_at_record_time(wanted) == expected
        for wanted in {unit.store_ms + 1 for unit in ordered[:: max(1, len(ordered) // 8)]}:
            expected = next((unit for unit in ordered if unit.store_ms >= wanted), None)
            assert queue.first_at_store_time(wanted) == expected

    @invariant()
    def the_high_watermark_agrees(self) -> None:
        """A moved copy behind a position does not take its offset back from readers."""
        for queue, firsts in zip(self.queues, self.first_appends, strict=True):
            for position in {self.table.sealed, self.end} | {at for _, at, _ in firsts[-9:]}:
                if position >= self.table.sealed:
                    behind = [base for base, at, size in firsts if at + size > position]
                    assert queue.end_before(position) == min([*behind, queue.next_offset])


QueueModel.TestCase.settings = settings(
    deadline=None, max_examples=budget("queue_model_examples"), stateful_step_count=30
)
TestQueueAgainstAList = QueueModel.TestCase


# Sealed runs


def sealed_queue(counts: list[int]) -> tuple[Queue, QueueTable]:
    """A queue whose units all lie in index files of one segment each."""
    table = QueueTable(MemoryDisk().root(), SEGMENT)
    [queue] = table.create(b"orders", ID, 1)
    for index, count in enumerate(counts):
        queue.add(index * 100, 100, count, 1_000 + index, 2_000 + index)
        if not queue.is_dirty:
            table.note(queue)
    while (stretch := table.plan(len(counts) * 100)) is not None and stretch.is_segment:
        table.write(stretch)
        while table.adopt(stretch):
            pass
    return queue, table


def test_sealing_lets_go_of_the_memory() -> None:
    queue, _ = sealed_queue([1] * 40)
    assert queue.tail_count == 0
    assert bases(queue.units(0, ALL, ALL)) == list(range(40))
    assert queue.end_before(0) == 40


def test_a_damaged_block_is_refused_and_other_segments_are_read() -> None:
    queue, table = sealed_queue([3] * 40)
    index = table._indexes[1_000]
    index._mapping.view = memoryview(bytearray(index._view))
    index._view = index._mapping.view
    index._view[120] ^= 1
    assert bases(queue.units(0, 900, ALL)) == list(range(0, 27, 3))
    with pytest.raises(StoreCorrupt, match="rebuilt by the next start"):
        queue.units(30, ALL, ALL)
    assert bases(queue.units(60, 900, ALL)) == list(range(60, 87, 3))


def test_a_moved_unit_replaces_the_one_it_came_from() -> None:
    queue, table = sealed_queue([1] * 20)
    original = queue.find(3)
    assert original is not None
    moved = original._replace(position=5_000)
    queue.add_moved(moved)
    assert queue.find(3) == moved
    assert bases(queue.units(0, ALL, ALL)) == list(range(20))
    table.drop_segment(0)
    assert bases(queue.units(0, ALL, ALL)) == [3, *range(10, 20)]


def test_reading_with_very_many_moved_units_looks_at_few_of_them() -> None:
    queue, _ = sealed_queue([1] * 20)
    for base in range(20, 50_000):
        queue.next_offset = base
        queue.add_moved(Unit(base, 10_000 + base, 100, 1, 5_000, 5_000, 0))
    looked = 0
    moved = queue._moved
    assert moved is not None
    unit_of = moved.unit

    def counted(index: int) -> Unit:
        nonlocal looked
        looked += 1
        return unit_of(index)

    moved.unit = counted  # type: ignore[method-assign]
    assert bases(queue.units(25_000, 1_000, ALL)) == list(range(25_000, 25_010))
    assert looked < 100
