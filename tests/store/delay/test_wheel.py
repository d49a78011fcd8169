from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.store.delay.changes import MINUTE_MS
from rockgate.store.delay.units import Units
from rockgate.store.delay.wheel import LEAD_SECONDS, NEAR_MAX, SECONDS, Wheel
from rockgate.store.testing.memory_files import MemoryDisk

START_MS = 1_700_000_030_000
DAYS_MS = 86_400_000


class Turned:
    """A wheel, and a list that says what it must give out."""

    def __init__(self, minutes: int = 600) -> None:
        self.units = Units(MemoryDisk().root(), file_units=64)
        self.wheel = Wheel(self.units, START_MS, minutes)
        self.now_ms = START_MS
        self.waiting: list[tuple[int, int]] = []
        self.sequence = 0

    def put(self, due_ms: int) -> None:
        self.wheel.add(due_ms, self.sequence, 0, 0)
        self.waiting.append((due_ms, self.sequence))
        self.sequence += 1

    def pop_all(self, work: int) -> list[tuple[int, int]]:
        popped = []
        while True:
            more = self.wheel.turn(self.now_ms, work)
            while (unit := self.wheel.pop(self.now_ms)) is not None:
                popped.append(self.units.read(unit)[:2])
                self.units.free(unit)
            if not more:
                return popped

    def check(self, work: int) -> None:
        due = sorted(each for each in self.waiting if each[0] <= self.now_ms)
        assert self.pop_all(work) == due
        self.waiting = [each for each in self.waiting if each[0] > self.now_ms]
        assert self.units.used_count == len(self.waiting)
        if self.waiting:
            assert self.wheel.next_ms <= min(self.waiting)[0]


TIMES = st.one_of(
    st.integers(-5_000, 5_000),
    st.integers(-5_000, 5 * MINUTE_MS),
    st.integers(0, 3 * DAYS_MS),
    st.sampled_from([999, 1_000, MINUTE_MS, 29_999, 30_000, 700 * MINUTE_MS]),
)


@given(
    st.lists(
        st.one_of(st.tuples(st.just("put"), TIMES), st.tuples(st.just("pass"), TIMES)), max_size=40
    ),
    st.integers(1, 7),
)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_what_is_due_comes_out_in_order_and_nothing_else_does(
    steps: list[tuple[str, int]], work: int
) -> None:
    turned = Turned()
    for what, ms in steps:
        if what == "put":
            turned.put(turned.now_ms + ms)
        else:
            turned.now_ms += max(0, ms)
        turned.check(work)
    turned.now_ms += 4 * DAYS_MS
    turned.check(1_000)
    assert turned.waiting == []


def test_items_of_one_time_come_in_the_order_of_scheduling() -> None:
    turned = Turned()
    for _ in range(50):
        turned.put(START_MS + 90_000)
    turned.now_ms += 90_000
    assert [sequence for _, sequence in turned.pop_all(3)] == list(range(50))


def test_nothing_is_given_out_while_something_earlier_may_be_in_a_row() -> None:
    turned = Turned()
    turned.put(START_MS + 61_000)
    for _ in range(20):
        turned.put(START_MS + 60_500)
    turned.now_ms += 62_000
    # A row is read from its end, so the last one scheduled is the first that is found.
    while not turned.wheel._near:
        turned.wheel.turn(turned.now_ms, 1)
    assert turned.wheel.pop(turned.now_ms) is None
    turned.check(1)


def test_what_came_due_long_ago_comes_out_in_order_while_little_of_it_is_in_memory() -> None:
    """As after days without a server: minute by minute, and not all of it at once."""
    turned = Turned(minutes=10_000)
    for index in range(3 * NEAR_MAX):
        turned.put(START_MS + index * 977 % (4 * DAYS_MS))
    turned.now_ms += 5 * DAYS_MS
    came, near_max = [], 0
    while turned.wheel.turn(turned.now_ms, 500) or turned.units.used_count:
        near_max = max(near_max, len(turned.wheel._near))
        for _ in range(64):
            unit = turned.wheel.pop(turned.now_ms)
            if unit is not None:
                came.append(turned.units.read(unit)[:2])
                turned.units.free(unit)
    assert came == sorted(turned.waiting)
    assert near_max < NEAR_MAX + 500


@given(st.lists(TIMES, min_size=1, max_size=60), st.integers(0, 3 * DAYS_MS))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_many_at_once_lie_where_one_after_the_other_would(
    delays_ms: list[int], passes_ms: int
) -> None:
    one, many = Turned(), Turned()
    for delay_ms in delays_ms:
        one.put(START_MS + delay_ms)
    sequences = range(len(delays_ms))
    many.wheel.add_all(
        [START_MS + delay_ms for delay_ms in delays_ms],
        sequences,
        [0 for _ in sequences],
        [0 for _ in sequences],
    )
    many.waiting = list(one.waiting)
    for each in (one, many):
        each.now_ms += passes_ms
        each.check(5)
    assert one.waiting == many.waiting


def test_seconds_have_rows_of_their_own() -> None:
    assert 60 + LEAD_SECONDS + 2 < SECONDS
