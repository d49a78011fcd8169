from __future__ import annotations

import pytest
from tests.world import World

from rockgate.protocol import entry as envelope
from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreCorrupt
from rockgate.store.log.commitlog import Draft
from rockgate.store.log.page_residency import Place
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit
from rockgate.store.read import reader as module
from rockgate.store.testing.memory_files import MemoryDisk

CONFIG = StoreConfig(segment_bytes=16 << 10, populate_ahead_bytes=4096)
ALL = 1 << 62


class OneQueue:
    """One queue, batches of known sizes."""

    def __init__(self, disk: MemoryDisk | None = None, config: StoreConfig = CONFIG) -> None:
        world = World(config, disk)
        world.ensure("orders", 2)
        self.disk, self.store = world.disk, world.store
        self.queue = world.queue("orders", 1)

    def batch(self, size: int, *, from_v6: bool = False) -> None:
        """A batch of two records."""
        self.store.appender.batch(
            self.queue,
            bytes(size),
            count=2,
            record_ms=0,
            sys_flag=envelope.BORN_HOST_V6 if from_v6 else 0,
            born_host=bytes(20 if from_v6 else 8),
        )

    def message(self, body: bytes = b"m") -> None:
        self.store.appender.message(self.queue, Draft(b"", 0, 0, body))

    def sizes(
        self,
        offset: int,
        size_max: int = ALL,
        *,
        end: int = ALL,
        at_least_one: bool = True,
        cold: list[Place] | None = None,
    ) -> tuple[list[int], int, bool]:
        found = self.store.reader.batches(
            self.queue, offset, end, size_max, at_least_one=at_least_one, cold=cold
        )
        assert found.size == sum(map(len, found.bodies)) + sum(size for _, size in cold or ())
        return [len(body) for body in found.bodies], found.next_offset, found.is_at_message


@pytest.mark.parametrize(
    ("offset", "size_max", "end", "at_least_one", "sizes", "next_offset"),
    [
        (0, ALL, ALL, True, [100, 200, 300], 6),
        (1, ALL, ALL, True, [100, 200, 300], 6),
        (2, ALL, ALL, True, [200, 300], 6),
        (6, ALL, ALL, True, [], 6),
        (0, 300, ALL, True, [100, 200], 4),
        (0, 299, ALL, True, [100], 2),
        (0, 99, ALL, True, [100], 2),
        (0, 0, ALL, True, [100], 2),
        (0, 100, ALL, False, [100], 2),
        (0, 99, ALL, False, [], 0),
        (0, ALL, 4, True, [100, 200], 4),
        (2, ALL, 2, True, [], 2),
    ],
)
def test_whole_bodies_are_returned_by_size_and_up_to_an_offset(
    offset: int, size_max: int, end: int, at_least_one: bool, sizes: list[int], next_offset: int
) -> None:
    world = OneQueue()
    for size in (100, 200, 300):
        world.batch(size)
    found = world.sizes(offset, size_max, end=end, at_least_one=at_least_one)
    assert found == (sizes, next_offset, False)


def test_bodies_are_found_in_every_segment_and_behind_a_host_of_any_width() -> None:
    world = OneQueue()
    for number in range(100):
        world.batch(500 + number, from_v6=number % 2 == 1)
    assert len({world.store.log.segment_at(unit.position) for unit in units(world.queue)}) > 3
    sizes, next_offset, _ = world.sizes(0)
    assert sizes == [500 + number for number in range(100)] and next_offset == 200


def units(queue: Queue) -> list[Unit]:
    return [Unit._make(fields) for fields in queue.walk(0)]


def test_a_body_is_a_slice_of_the_log_and_no_copy() -> None:
    world = OneQueue()
    world.batch(100)
    [body] = world.store.reader.batches(
        world.queue, 0, ALL, ALL, at_least_one=True, cold=None
    ).bodies
    segment = world.store.log.segment_at(0)
    assert segment is not None and body.obj is segment.mapping.view.obj


def test_a_message_entry_ends_a_run_of_batches_and_a_batch_one_of_messages() -> None:
    world = OneQueue()
    world.batch(100)
    for body in (b"a", b"b"):
        world.message(body)
    world.batch(300)
    assert world.sizes(0) == ([100], 2, True)
    assert world.sizes(2) == ([], 2, True)
    run = world.store.reader.messages(world.queue, 2, ALL, ALL, at_least_one=True, cold=None)
    assert [(unit.base, bytes(envelope.body_of(view))) for unit, view in run] == [
        (2, b"a"),
        (3, b"b"),
    ]
    assert world.sizes(4) == ([300], 6, False)


@pytest.mark.parametrize(
    ("sizes", "at_least_one", "count"), [(0, True, 1), (0, False, 0), (1, False, 1), (2, True, 2)]
)
def test_message_entries_are_counted_by_their_own_sizes(
    sizes: int, at_least_one: bool, count: int
) -> None:
    world = OneQueue()
    for _ in range(3):
        world.message()
    size_max = sizes * units(world.queue)[0].size
    run = world.store.reader.messages(
        world.queue, 0, ALL, size_max, at_least_one=at_least_one, cold=None
    )
    assert len(run) == count


def test_small_entries_end_a_run_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCHES_MAX", 3)
    monkeypatch.setattr(module, "MESSAGES_MAX", 2)
    world = OneQueue()
    for _ in range(5):
        world.batch(61)
    assert world.sizes(0) == ([61] * 3, 6, False)
    for _ in range(5):
        world.message()
    run = world.store.reader.messages(world.queue, 10, ALL, ALL, at_least_one=True, cold=None)
    assert len(run) == 2


def test_cold_entries_are_noted_and_counted_but_not_touched() -> None:
    world = OneQueue(config=StoreConfig(segment_bytes=16 << 10, cold_bytes=4_000))
    for _ in range(20):
        world.batch(500)
    there = units(world.queue)
    cold: list[Place] = []
    sizes, next_offset, _ = world.sizes(0, cold=cold)
    assert [position for position, _ in cold] == [u.position for u in there[: len(cold)]]
    assert 0 < len(cold) < 20 and len(sizes) == 20 - len(cold) and next_offset == 40
    limited: list[Place] = []
    assert world.sizes(0, 3 * there[0].size, cold=limited) == ([], 6, False)
    assert len(limited) == 3
    world.store.residency.note(world.store.residency.plan(cold, world.store.log.end))
    again: list[Place] = []
    assert world.sizes(0, cold=again)[0] == [500] * 20 and again == []


def test_what_was_written_before_the_start_is_cold() -> None:
    first = OneQueue()
    first.batch(100)
    first.message()
    first.store.close()
    world = OneQueue(first.disk)
    world.batch(200)
    cold: list[Place] = []
    assert world.sizes(0, cold=cold) == ([200], 5, False)
    assert len(cold) == 2
    messages: list[Place] = []
    world.store.reader.messages(world.queue, 2, ALL, ALL, at_least_one=True, cold=messages)
    assert messages == cold[1:]


@pytest.mark.parametrize("place", [0, 12, 20])
def test_an_index_that_points_to_another_entry_is_corrupt(place: int) -> None:
    world = OneQueue()
    world.batch(100)
    world.message()
    for unit in units(world.queue):
        view = world.store.log.slice(unit.position, unit.size)
        assert view is not None
        view[place + 3] ^= 1
        if place == 20:
            view[place + 7] ^= 1
    with pytest.raises(StoreCorrupt, match="remove queueindex/ and restart"):
        world.sizes(0)
    with pytest.raises(StoreCorrupt, match="no entry for offset 2;"):
        world.store.reader.messages(world.queue, 2, ALL, ALL, at_least_one=True, cold=None)
