"""The fold of messages in flight: windows by group and queue, and when to examine them."""

from __future__ import annotations

from tests.store.journals import MemoryJournal, change_at

from rockgate.store.inflight.changes import (
    INFLIGHT_TOPIC,
    Acquire,
    Drop,
    End,
    EndReason,
    Extend,
    Forget,
    Reset,
    Shift,
    encode,
)
from rockgate.store.inflight.fold import BUCKET_MS, MessagesInFlight
from rockgate.store.inflight.window import Window
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.state.topics import Topics


class Windows:
    """A fold beside topics a and b, fed change by change."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.topics = Topics(self.journal)
        self.journal.attach(self.topics)
        self.a, self.b = self.topics.create_many(
            [NewTopic(name=name, queue_count=4) for name in ("a", "b")]
        )
        self.fold = MessagesInFlight(self.topics)
        self.position = 1_000

    def apply(self, change: Acquire | End | Extend | Reset | Drop | Forget | Shift) -> None:
        self.position += 100
        self.fold.apply(change_at(self.position, INFLIGHT_TOPIC, encode(change)))

    def acquire(
        self, *offsets: int, group: str = "g", queue: int = 0, deadline: int = 1_000
    ) -> None:
        runs = [number for offset in offsets for number in (offset, 1)]
        end = max(offsets, default=0) + 1
        self.apply(Acquire(group, self.a.id, queue, 0, end, deadline, False, runs))

    def window(self, group: str = "g", queue: int = 0) -> Window:
        found = self.fold.find(group, self.a.id, queue)
        assert found is not None
        return found


def test_a_window_comes_with_the_first_acquisition() -> None:
    w = Windows()
    assert w.fold.find("g", w.a.id, 0) is None
    w.acquire(3, 4)
    assert (w.window().start, w.window().end, len(w.window()), w.fold.count) == (3, 5, 2, 2)


def test_groups_have_windows_of_their_own() -> None:
    w = Windows()
    w.acquire(3)
    w.acquire(3, group="h")
    w.apply(End("h", w.a.id, 0, EndReason.ACKNOWLEDGED, [3, 1]))
    assert len(w.window("g")) == 1
    assert len(w.window("h")) == 0
    assert w.fold.count == 1


def test_an_end_or_an_extension_without_a_window_is_ignored() -> None:
    w = Windows()
    w.apply(End("g", w.a.id, 0, EndReason.LOST, [3, 1]))
    w.apply(Extend("g", w.a.id, 0, 5, [3, 1]))
    assert len(w.fold) == 0


def test_an_acquisition_of_a_topic_that_is_gone_makes_no_window() -> None:
    w = Windows()
    w.topics.delete([w.a])
    w.acquire(3)
    assert len(w.fold) == 0


def test_a_deleted_topic_takes_its_windows_along() -> None:
    w = Windows()
    w.acquire(3)
    w.apply(Acquire("g", w.b.id, 1, 0, 5, 1_000, False, [2, 2]))
    w.topics.delete([w.a])
    assert w.fold.find("g", w.a.id, 0) is None
    assert w.fold.find("g", w.b.id, 1) is not None
    assert w.fold.count == 2


def test_a_dropped_group_has_no_windows() -> None:
    w = Windows()
    w.acquire(3)
    w.acquire(3, group="h")
    w.apply(Drop("g"))
    assert w.fold.of_group("g") == []
    assert [window.key[0] for window in w.fold.of_group("h")] == ["h"]
    assert w.fold.count == 1


def test_a_window_is_due_after_its_deadline_and_never_before() -> None:
    w = Windows()
    w.acquire(3, deadline=1_001)
    assert w.fold.due(1_000, 10) == []
    assert w.fold.due(1_001 + BUCKET_MS, 10) == [w.window()]
    assert w.fold.due(1_001 + BUCKET_MS, 10) == [], "it is handed out once"
    assert w.fold.next_due_ms is None


def test_a_window_is_due_again_at_its_next_deadline() -> None:
    w = Windows()
    w.acquire(3, deadline=1_000)
    w.acquire(4, deadline=5_000)
    assert w.fold.due(1_000, 10) == [w.window()]
    assert w.fold.due(4_999, 10) == []
    assert w.fold.due(5_000, 10) == [w.window()]
    assert w.fold.next_due_ms is None


def test_an_earlier_deadline_makes_a_window_due_earlier() -> None:
    w = Windows()
    w.acquire(3, deadline=5_000)
    w.apply(Extend("g", w.a.id, 0, 1_000, [3, 1]))
    assert w.fold.due(1_000, 10) == [w.window()]
    assert w.fold.due(9_000, 10) == [], "it was moved"


def test_a_window_with_many_deadlines_is_held_once() -> None:
    w = Windows()
    for number in range(1_000):
        w.acquire(number, deadline=60_000 + number * 1_000)
        w.apply(End("g", w.a.id, 0, EndReason.ACKNOWLEDGED, [number, 1]))
    assert w.fold.due(1 << 40, 10) == [w.window()]
    assert w.fold.due(1 << 40, 10) == []


def test_a_forgotten_window_is_gone_with_its_deadlines() -> None:
    w = Windows()
    w.acquire(3, deadline=1_000)
    w.apply(End("g", w.a.id, 0, EndReason.ACKNOWLEDGED, [3, 1]))
    w.apply(Forget("g", w.a.id, 0))
    w.apply(Forget("g", w.a.id, 0))
    assert (len(w.fold), w.fold.groups(), w.fold.due(9_000, 10)) == (0, [], [])
    w.acquire(3)
    assert w.window().end == 4


def test_all_deadlines_of_a_window_are_shifted() -> None:
    w = Windows()
    w.acquire(3, deadline=500_000)
    w.acquire(4, deadline=600_000)
    w.acquire(3, queue=1, deadline=500_000)
    w.apply(Shift("g", w.a.id, 0, -499_000))
    assert [each.deadline_ms for each in w.window().all()] == [1_000, 101_000]
    assert [each.deadline_ms for each in w.window(queue=1).all()] == [500_000]
    assert w.fold.due(1_000, 10) == [w.window()]
    w.apply(Shift("g", w.a.id, 0, -200_000))
    assert [each.deadline_ms for each in w.window().all()] == [0, 0], "times are never negative"
    assert [each.deliveries for each in w.window().all()] == [1, 1]


def test_windows_that_are_due_together_come_in_parts() -> None:
    w = Windows()
    for queue in range(4):
        w.acquire(3, queue=queue, deadline=100)
    first, rest = w.fold.due(1_000, 3), w.fold.due(1_000, 3)
    assert {window.key[2] for window in first + rest} == {0, 1, 2, 3}
    assert (len(first), len(rest)) == (3, 1)


def test_a_window_that_is_gone_is_not_due() -> None:
    w = Windows()
    w.acquire(3, deadline=100)
    w.apply(Drop("g"))
    assert w.fold.due(1_000, 3) == []


def test_buckets_do_not_grow_with_what_is_acquired() -> None:
    w = Windows()
    for offset in range(500):
        w.acquire(offset, deadline=1_000 + offset % 10)
        w.apply(End("g", w.a.id, 0, EndReason.ACKNOWLEDGED, [offset, 1]))
    assert len(w.fold.due(10_000, 1_000)) == 1


def test_a_restored_window_is_due_as_before() -> None:
    w = Windows()
    w.acquire(3, 7, deadline=2_000)
    slices = list(w.fold.snapshot())
    again = MessagesInFlight(w.topics)
    again.restore(slices)
    [window] = again.due(3_000, 10)
    assert [(each.offset, each.deadline_ms, each.deliveries) for each in window.all()] == [
        (3, 2_000, 1),
        (7, 2_000, 1),
    ]
    assert again.count == 2


def test_a_change_that_a_window_has_is_not_applied_again() -> None:
    w = Windows()
    w.acquire(3)
    w.position -= 100
    w.acquire(3)
    found = w.window().find(3)
    assert found is not None and found.deliveries == 1
