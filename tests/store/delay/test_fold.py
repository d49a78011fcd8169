from __future__ import annotations

import pytest
from tests.store.journals import MemoryJournal

from rockgate.store.clock import ManualClock, SteadyClock
from rockgate.store.delay.changes import DELAY_TOPIC, encode_schedule
from rockgate.store.delay.fold import Delay
from rockgate.store.errors import StoreCorrupt
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.state.topics import Topics
from rockgate.store.testing.memory_files import MemoryDisk

NOW_MS = 1_700_000_000_000


class Folded:
    """The fold, and the topics it asks."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.topics = Topics(self.journal)
        clock = SteadyClock(ManualClock(NOW_MS))
        directory = MemoryDisk().root()
        self.delay = Delay(self.journal, self.topics, directory, clock, file_units=16)
        self.journal.attach(self.topics, self.delay)
        self.topic = self.topics.create(NewTopic(name="later", queue_count=1))

    def schedule(self, *waits: tuple[int, int]) -> None:
        [body] = encode_schedule(self.topic.id, 0, waits)
        self.journal.append_state(DELAY_TOPIC, body)

    def take(self) -> list[int]:
        while self.delay.turn(NOW_MS, 1_000):
            pass
        found = []
        while (due := self.delay.take(NOW_MS)) is not None:
            found.append(due.waiting.offset)
            self.delay.units.free(due.unit)
        return found


def test_what_is_due_is_taken_in_order_and_still_waits() -> None:
    folded = Folded()
    folded.schedule((0, NOW_MS), (1, NOW_MS - 5), (2, NOW_MS + 1))
    assert folded.take() == [1, 0]
    assert folded.delay.is_waiting(folded.topic.id, 0, 1)


def test_a_unit_of_what_was_recalled_is_freed_when_it_comes_up() -> None:
    folded = Folded()
    folded.schedule((0, NOW_MS), (1, NOW_MS))
    assert folded.delay.recall(folded.topic.id, 0, 0)
    assert folded.delay.units.used_count == 2
    assert folded.take() == [1]
    assert folded.delay.units.used_count == 0


def test_it_keeps_what_waits_from_retention_and_nothing_else() -> None:
    folded = Folded()
    folded.schedule((5, NOW_MS))
    wants = folded.delay.wants
    assert wants(b"later", 0, 5, 6) and wants(b"later", 0, 0, 9)
    assert not wants(b"later", 0, 6, 9)
    assert not wants(b"later", 1, 0, 9)
    assert not wants(b"other", 0, 0, 9)


def test_counts_are_by_queue() -> None:
    folded = Folded()
    folded.schedule((0, NOW_MS), (1, NOW_MS))
    assert folded.delay.counts() == {(folded.topic.id, 0): 2}
    folded.delay.recall(folded.topic.id, 0, 0)
    folded.delay.recall(folded.topic.id, 0, 1)
    assert folded.delay.counts() == {}


def test_order_survives_a_snapshot() -> None:
    folded = Folded()
    folded.schedule(*[(offset, NOW_MS) for offset in range(40)])
    for offset in range(0, 40, 2):
        folded.delay.recall(folded.topic.id, 0, offset)
    again = Folded()
    again.delay.restore(folded.delay.snapshot())
    again.journal.append_state(
        DELAY_TOPIC, next(encode_schedule(folded.topic.id, 0, [(99, NOW_MS)]))
    )
    assert again.take() == [*range(1, 40, 2), 99]


def test_a_snapshot_ends_though_as_many_are_scheduled_as_it_takes() -> None:
    folded = Folded()
    folded.schedule(*[(offset, NOW_MS) for offset in range(50)])
    taken = 0
    for _ in folded.delay.snapshot():
        taken += 1
        folded.schedule(*[(50 * taken + offset, NOW_MS) for offset in range(50)])
        assert taken < 10
    assert taken == 4, "of sixteen units a file"


def test_of_several_queues_each_gets_its_own_back() -> None:
    folded = Folded()
    for queue_id in (0, 1, 2):
        waits = [(offset, NOW_MS + offset % 7) for offset in range(queue_id, 60, 3)]
        [body] = encode_schedule(folded.topic.id, queue_id, waits)
        folded.journal.append_state(DELAY_TOPIC, body)
    again = Folded()
    again.delay.restore(folded.delay.snapshot())
    assert again.delay.counts() == folded.delay.counts()
    assert sorted(again.delay.all()) == sorted(folded.delay.all())


def test_a_snapshot_in_which_something_waits_twice_is_damage() -> None:
    folded = Folded()
    folded.schedule((7, NOW_MS))
    [piece] = folded.delay.snapshot()
    with pytest.raises(StoreCorrupt, match="duplicate delayed message"):
        Folded().delay.restore([piece, piece])


def test_it_says_when_something_is_due_before_the_next_look() -> None:
    folded = Folded()
    told: list[int] = []
    folded.delay.on_sooner = lambda: told.append(folded.delay.waiting_count)
    folded.delay.looks_at_ms = NOW_MS + 100
    folded.schedule((0, NOW_MS + 100), (1, NOW_MS + 5_000))
    assert told == []
    folded.schedule((2, NOW_MS + 200), (3, NOW_MS + 99))
    assert told == [4]


@pytest.mark.parametrize(
    "piece", [b"", b"\x01", b"\x01\x92\x90\xc4\x01x", b"\x01\x92\x90\xc4\x1c" + bytes(28)]
)
def test_a_slice_that_is_none_is_damage(piece: bytes) -> None:
    with pytest.raises(StoreCorrupt):
        Folded().delay.restore([piece])


def test_parts_have_everything_that_waits_once_and_say_where_they_continue() -> None:
    folded = Folded()
    folded.schedule(*((offset, NOW_MS + offset) for offset in range(40)))
    folded.delay.recall(folded.topic.id, 0, 7)
    found, at, counts = [], 0, []
    while at >= 0:
        part, at = folded.delay.part(at, 10)
        counts.append(len(part))
        found += [(each.offset, each.due_ms) for each in part]
    assert sorted(found) == [(n, NOW_MS + n) for n in range(40) if n != 7]
    assert max(counts) <= 10
    assert [each.offset for each in folded.delay.part(0, 16, 9)[0]] == [9]
    assert folded.delay.part(1 << 40, 10) == ([], -1)
