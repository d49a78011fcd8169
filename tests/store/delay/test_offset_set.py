from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.store.delay.offset_set import CHUNK_BITS, OffsetSet

OFFSETS = st.one_of(
    st.integers(0, 20), st.integers(CHUNK_BITS - 5, CHUNK_BITS + 5), st.just(1 << 50)
)


@given(
    st.lists(st.tuples(st.booleans(), OFFSETS)),
    st.lists(st.tuples(OFFSETS, st.integers(0, 3 * CHUNK_BITS)), max_size=5),
)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_it_is_a_set(operations: list[tuple[bool, int]], ranges: list[tuple[int, int]]) -> None:
    offsets, model = OffsetSet(), set[int]()
    for is_add, offset in operations:
        if is_add:
            assert offsets.add(offset) is (offset not in model)
            model.add(offset)
        else:
            assert offsets.discard(offset) is (offset in model)
            model.discard(offset)
        assert (offset in offsets) is (offset in model)
        assert len(offsets) == len(model)
    for first, length in ranges:
        found = any(first <= offset < first + length for offset in model)
        assert offsets.has_any(first, first + length) is found


@given(st.lists(OFFSETS), st.lists(OFFSETS))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_many_are_taken_in_as_one_after_the_other(first: list[int], then: list[int]) -> None:
    offsets = OffsetSet()
    for offset in first:
        offsets.add(offset)
    offsets.add_all(then)
    model = {*first, *then}
    assert len(offsets) == len(model)
    assert all(offset in offsets for offset in model)
    assert all(offsets.discard(offset) for offset in model)
    assert len(offsets) == 0


@given(st.lists(OFFSETS), OFFSETS, st.integers(1, 3 * CHUNK_BITS))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_row_of_offsets_is_taken_in_as_one_after_the_other(
    before: list[int], first: int, count: int
) -> None:
    offsets = OffsetSet()
    for offset in before:
        offsets.add(offset)
    offsets.add_all(range(first, first + count))
    model = {*before, *range(first, first + count)}
    assert len(offsets) == len(model)
    asked = [*before, first - 1, first, first + count - 1, first + count, *range(0, 9000, 7)]
    asked = [offset for offset in asked if offset >= 0]
    assert offsets.which(asked) == [offset in model for offset in asked]
    assert offsets.which(range(first, first + count)) == [True] * count
