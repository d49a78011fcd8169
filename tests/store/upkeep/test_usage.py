"""Which bytes of a segment are live, and which segments that makes worth emptying."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.store.keeping import HOUR_MS, SEGMENT, Keeping

from rockgate.store.log.segments import Segment
from rockgate.store.upkeep.usage import prefix_to_empty

# Choosing


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ([], 0),
        ([(10, 0)], 1),
        ([(10, 5)], 1),
        ([(10, 6)], 0),
        ([(10, 10), (10, 0)], 2),
        ([(10, 10), (10, 1), (10, 4)], 3),
        ([(10, 10), (10, 10), (10, 10)], 0),
        ([(10, 2), (10, 0)], 1),
    ],
)
def test_the_shortest_row_of_which_at_most_half_is_live_is_emptied(
    sizes: list[tuple[int, int]], count: int
) -> None:
    assert prefix_to_empty(sizes) == count


@settings(max_examples=budget("property_examples"), deadline=None)
@given(st.lists(st.tuples(st.just(100), st.integers(0, 100)), max_size=12))
def test_emptying_row_after_row_appends_no_more_than_it_frees(
    sizes: list[tuple[int, int]],
) -> None:
    freed = appended = 0
    while count := prefix_to_empty(sizes):
        freed += sum(size for size, _ in sizes[:count])
        appended += sum(live for _, live in sizes[:count])
        sizes = sizes[count:]
    assert appended * 2 <= freed
    # What is left is mostly live, however it is cut.
    for end in range(1, len(sizes) + 1):
        assert sum(live for _, live in sizes[:end]) * 2 > end * 100


# Weighing


def sealed(keeping: Keeping) -> list[Segment]:
    keeping.store.checkpointer.take()
    return keeping.store.retention.sealed()


def weigh(keeping: Keeping) -> list[int | None]:
    usage = keeping.store.retention.usage
    segments = sealed(keeping)
    for _ in usage.weigh(segments):
        pass
    return [usage.live_bytes(segment) for segment in segments]


def size_of(keeping: Keeping, name: str) -> int:
    queue = keeping.queue(name)
    return sum(unit[2] for unit in queue.walk(queue.log_start))


def test_all_messages_of_a_segment_are_live_at_first_and_nothing_else_is() -> None:
    keeping = Keeping()
    keeping.topic("orders")
    keeping.fill_segment("orders")
    [live] = weigh(keeping)
    last = keeping.queue("orders").find(keeping.queue("orders").next_offset - 1)
    assert last is not None
    assert last.position >= SEGMENT
    assert live == size_of(keeping, "orders") - last.size


def test_what_lies_below_the_log_start_is_dead() -> None:
    keeping = Keeping()
    topic = keeping.topic("orders")
    held = keeping.fill_segment("orders")["orders"]
    [before] = weigh(keeping)
    batch = next(item for item in held if item[1] > 1)
    # In the middle of a batch: the whole of it is still needed.
    keeping.store.topics.advance_log_starts({topic: {0: batch[0] + 1}})
    gone = sum(unit[2] for unit in keeping.queue("orders").walk(0) if unit[0] < batch[0])
    [after] = weigh(keeping)
    assert before is not None
    assert after == before - gone


def test_only_segments_that_were_touched_are_weighed_again() -> None:
    keeping = Keeping()
    topic = keeping.topic("orders")
    for _ in range(3):
        held = keeping.fill_segment("orders")["orders"]
    usage = keeping.store.retention.usage
    assert len(list(usage.weigh(sealed(keeping)))) >= 3
    assert list(usage.weigh(sealed(keeping))) == []
    keeping.store.topics.advance_log_starts({topic: {0: 2}})
    assert len(list(usage.weigh(sealed(keeping)))) == 1
    keeping.store.topics.advance_log_starts({topic: {0: held[0][0]}})
    assert len(list(usage.weigh(sealed(keeping)))) >= 2


def test_nothing_of_a_deleted_topic_is_live() -> None:
    keeping = Keeping()
    keeping.topic("orders")
    topic = keeping.topic("gone")
    keeping.fill_segment("orders", "gone")
    [before] = weigh(keeping)
    assert before is not None
    keeping.store.topics.delete([topic])
    [after] = weigh(keeping)
    assert after is not None
    assert 0.3 * before < after < 0.7 * before
    keeping.topic("gone")
    assert weigh(keeping) == [after]


def test_what_was_moved_is_dead_where_it_was_also_after_a_kill() -> None:
    keeping = Keeping(retention_ms=HOUR_MS)
    keeping.topic("short")
    keeping.topic("long", retention_ms="-1")
    keeping.fill_segment("short", "short", "short", "long")
    keeping.fill_segment("short")
    keeping.store.checkpointer.take()
    first, *_ = sealed(keeping)
    for _ in keeping.store.retention.mover.empty(first):
        pass
    moved = keeping.store.retention.mover.moved_count
    assert moved > 5
    keeping.store.checkpointer.take()
    keeping.kill()
    first, *_ = sealed(keeping)
    index = keeping.store.queues.index(first.start)
    live = [
        unit
        for run in index.runs()
        for some in keeping.store.retention.usage.live(index, run)
        for unit in some.units
    ]
    assert live == []
    # So what a killed process had moved is not moved a second time.
    for _ in keeping.store.retention.mover.empty(first):
        pass
    assert keeping.store.retention.mover.moved_count == 0


def test_weighing_a_large_segment_takes_many_slices() -> None:
    keeping = Keeping(segment_bytes=1 << 20)
    keeping.topic("orders", 3)
    before = keeping.row()
    while keeping.row() == before:
        keeping.fill("orders", 50, size=10, queue_id=keeping.serial % 3)
    usage = keeping.store.retention.usage
    [segment] = sealed(keeping)
    assert len(list(usage.weigh([segment]))) > 5
    live = usage.live_bytes(segment)
    assert live is not None
    assert 0.9 * segment.size < live <= segment.size
