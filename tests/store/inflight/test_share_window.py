"""The window of a share group: runs that are what single offsets would be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rockgate.store.inflight import share_window
from rockgate.store.inflight.changes import Acquire, runs_of
from rockgate.store.inflight.share_window import FEW, SHARE_IN_FLIGHT_MAX, ShareWindow

KEY = ("g", bytes(16), 0)
OFFSETS = 24


def acquire(window: ShareWindow, offsets: Iterable[int], end: int = 0) -> None:
    window.acquired(Acquire(*KEY, 0, end, 0, True, runs_of(sorted(offsets))))


def seen(window: ShareWindow) -> list[tuple[int, int, int, str | None]]:
    return [(run.first, run.end, run.deliveries, run.holder) for run in window.runs()]


def test_an_acquisition_is_one_run_however_many_records_it_has() -> None:
    window = ShareWindow(KEY, 0, 0)
    acquire(window, range(5_000), end=5_000)
    assert (window.run_count, len(window), window.start, window.end) == (1, 5_000, 0, 5_000)
    window.ended([0, 4_999])
    assert (window.run_count, len(window), window.start) == (1, 1, 4_999)
    window.ended([4_999, 1])
    assert (window.run_count, len(window), window.start) == (0, 0, 5_000)


def test_neighbours_that_are_alike_become_one_run_again() -> None:
    window = ShareWindow(KEY, 0, 0)
    acquire(window, range(10), end=10)
    window.lock(0, 10, "a", 100)
    for offset in range(0, 10, 2):
        window.lock(offset, offset + 1, None, 0)
    assert window.run_count == 10
    window.lock(0, 10, None, 0)
    assert seen(window) == [(0, 10, 1, None)]


def test_a_range_is_held_only_if_all_of_it_is_in_time_by_the_one_member() -> None:
    window = ShareWindow(KEY, 0, 0)
    acquire(window, (*range(4), *range(5, 9)), end=9)
    window.lock(0, 9, "a", 100)
    assert window.is_held_by("a", [(0, 4)], 99)
    assert not window.is_held_by("a", [(0, 4)], 100), "the deadline has come"
    assert not window.is_held_by("b", [(0, 4)], 99)
    assert not window.is_held_by("a", [(3, 6)], 99), "there is a gap"
    assert not window.is_held_by("a", [(8, 10)], 99), "it ends before"
    window.lock(6, 7, "b", 100)
    assert not window.is_held_by("a", [(5, 9)], 99)
    assert window.is_held_by("a", [(0, 2), (3, 4), (7, 9)], 99)
    assert not window.is_held_by("a", [(0, 2), (6, 7), (7, 9)], 99), "one of them is not"
    assert [(run.first, run.end) for run in window.held_by("a", 99)] == [(0, 4), (5, 6), (7, 9)]


def test_a_snapshot_has_counts_but_no_locks() -> None:
    window = ShareWindow(KEY, 0, 0)
    acquire(window, range(6), end=6)
    acquire(window, (1, 2))
    window.lock(0, 3, "a", 100)
    again = ShareWindow(KEY, 6, 0)
    again.unpack(window.packed())
    assert seen(again) == [(0, 1, 1, None), (1, 3, 2, None), (3, 6, 1, None)]
    assert len(again) == 6
    assert len(again.available(0)) == 3


@pytest.mark.parametrize("count", [0, SHARE_IN_FLIGHT_MAX + 1, 1 << 31])
def test_a_snapshot_with_too_many_offsets_is_refused(count: int) -> None:
    data = (7).to_bytes(8, "big") + count.to_bytes(4, "big") + b"\0\1"
    with pytest.raises(ValueError):
        ShareWindow(KEY, 0, 0).unpack(data)


@dataclass(frozen=True)
class Offset:
    deliveries: int = 1
    holder: str | None = None
    deadline_ms: int = 0


_SOME = st.sets(st.integers(0, OFFSETS - 1), max_size=8)
_RANGE = st.tuples(st.integers(0, OFFSETS), st.integers(0, OFFSETS)).map(sorted)
_STEPS = st.one_of(
    st.tuples(st.just("acquire"), _SOME),
    st.tuples(st.just("end"), _SOME),
    st.tuples(st.just("lock"), _RANGE, st.sampled_from("ab"), st.integers(1, 9)),
    st.tuples(st.just("release"), _RANGE),
    st.tuples(st.just("release all"), _SOME),
    st.tuples(st.just("lock all"), _SOME, st.sampled_from("ab"), st.integers(1, 9)),
    st.tuples(st.just("reset"), st.integers(0, OFFSETS)),
)


@pytest.mark.parametrize("few", [0, FEW], ids=["in one pass", "one by one"])
@given(steps=st.lists(_STEPS, max_size=25), now_ms=st.integers(0, 9))
def test_runs_are_what_single_offsets_would_be(
    few: int, steps: list[tuple[Any, ...]], now_ms: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(share_window, "FEW", few)
        compare_with_offsets(steps, now_ms)


def compare_with_offsets(steps: list[tuple[Any, ...]], now_ms: int) -> None:
    window, model = ShareWindow(KEY, 0, 0), dict[int, Offset]()
    for what, *values in steps:
        if what == "acquire":
            acquire(window, values[0])
            for offset in values[0]:
                known = model.get(offset)
                model[offset] = Offset(known.deliveries + 1 if known else 1)
        elif what == "end":
            window.ended(runs_of(sorted(values[0])))
            for offset in values[0]:
                model.pop(offset, None)
        elif what == "reset":
            window.reset(values[0])
            model.clear()
        elif what.endswith("all"):
            holder, deadline_ms = values[1:] or (None, 0)
            window.lock_all([(o, o + 1) for o in sorted(values[0])], holder, deadline_ms)
            for offset in model.keys() & values[0]:
                model[offset] = replace(model[offset], holder=holder, deadline_ms=deadline_ms)
        else:
            first, end = values[0]
            holder, deadline_ms = values[1:] or (None, 0)
            window.lock(first, end, holder, deadline_ms)
            for offset in model.keys() & set(range(first, end)):
                model[offset] = replace(model[offset], holder=holder, deadline_ms=deadline_ms)
    found = {
        offset: Offset(run.deliveries, run.holder, run.deadline_ms)
        for run in window.runs()
        for offset in range(run.first, run.end)
    }
    assert found == model
    assert len(window) == len(model)
    ends = [run.end for run in window.runs()]
    assert all(end <= run.first for end, run in zip(ends, list(window.runs())[1:], strict=False))
    free = {o for o, each in model.items() if not (each.holder and each.deadline_ms > now_ms)}
    assert {o for run in window.available(now_ms) for o in range(run.first, run.end)} == free
    asked = [(o, o + 2) for o in range(0, OFFSETS, 3)]
    parts = [o for first, end, _ in window.parts(asked) for o in range(first, end)]
    assert parts == sorted(model.keys() & {o for pair in asked for o in range(*pair)})
    late = {o for o, each in model.items() if each.holder and each.deadline_ms <= now_ms}
    assert {o for run in window.expired(now_ms) for o in range(run.first, run.end)} == late
    again = ShareWindow(KEY, 0, 0)
    again.unpack(window.packed())
    assert [(run.first, run.end) for run in again.runs() if run.first >= run.end] == []
    assert sum(run.end - run.first for run in again.runs()) == len(model)
