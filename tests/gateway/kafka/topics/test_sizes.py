import pytest
from tests.gateway.kafka.world import KafkaWorld
from tests.seeds import seeded

from rockgate.gateway.kafka.topics import sizes as queuesizes
from rockgate.gateway.kafka.topics.sizes import QueueSizes
from rockgate.store.queues.consumequeue import Queue


def measured(sizes: QueueSizes, queue: Queue) -> tuple[int, int]:
    """The size, and how many steps it took to know it."""
    steps = sum(1 for _ in sizes.measure(queue))
    return sizes.size(queue), steps


def true_size(queue: Queue) -> int:
    return sum(unit[2] for unit in queue.walk(queue.log_start))


def test_a_queue_takes_what_its_entries_take() -> None:
    world, sizes = KafkaWorld(), QueueSizes()
    topic = world.topic()
    assert measured(sizes, world.queue()) == (0, 0)
    for _ in range(5):
        world.append(times=(1, 2, 3))
    assert measured(sizes, world.queue()) == (true_size(world.queue()), 1)
    # What was counted is not counted again.
    assert measured(sizes, world.queue()) == (true_size(world.queue()), 0)
    sizes.forget(topic)
    assert sizes.size(world.queue()) == 0


def test_sizes_follow_appends_and_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queuesizes, "PIECE_UNITS", 4)
    monkeypatch.setattr(queuesizes, "_DEAD_MARKS_MAX", 3)
    rng = seeded()
    world, sizes = KafkaWorld(), QueueSizes()
    world.topic()
    queue = world.queue()
    for _ in range(100):
        for _ in range(rng.randrange(8)):
            world.append(times=[1] * rng.randint(1, 5), value=b"x" * rng.randrange(100))
        if rng.random() < 0.3:
            world.delete_records(rng.randint(queue.log_start, queue.next_offset))
        if rng.random() < 0.7:
            assert measured(sizes, queue)[0] == true_size(queue)
