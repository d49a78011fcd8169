"""Consumers of two groups fail at random, the server is killed now and then; a model says what is
where at every moment of a clock by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.budget import budget
from tests.gateway.remoting.retryworld import BORN_MS, RetryWorld
from tests.seeds import seeded
from tests.world import SECOND

from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.record import Record
from rockgate.protocol.remoting.message import Message

LEVELS_S = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
GROUPS = ("g", "h")
Try = tuple[bytes, int]
"""A message's body, and how often it was given back."""


@dataclass
class Model:
    """What must be where."""

    waiting: list[tuple[int, str, Try]] = field(default_factory=list)
    """When, for whom, what; in the order of giving back."""
    retries: dict[str, list[Try]] = field(default_factory=lambda: {group: [] for group in GROUPS})
    dead: dict[str, list[Try]] = field(default_factory=lambda: {group: [] for group in GROUPS})

    def give_back(self, group: str, what: Try, level: int, times_max: int, now_ms: int) -> None:
        body, times = what
        if level < 0 or times >= times_max:
            self.dead[group].append((body, times + 1))
            return
        seconds = LEVELS_S[min(level or 3 + times, 18) - 1]
        self.waiting.append((now_ms + seconds * SECOND, group, (body, times + 1)))

    def pass_time(self, now_ms: int) -> None:
        due = sorted((each for each in self.waiting if each[0] <= now_ms), key=lambda each: each[0])
        self.waiting = [each for each in self.waiting if each[0] > now_ms]
        for _, group, what in due:
            self.retries[group].append(what)


def tries(world: RetryWorld, topic: str) -> list[Try]:
    return [(message.body, message.reconsume_times) for message in world.consumed(topic)]


def compare(world: RetryWorld, model: Model) -> None:
    for group in GROUPS:
        assert tries(world, f"%RETRY%{group}") == model.retries[group]
        assert tries(world, f"%DLQ%{group}") == model.dead[group]
    assert world.store.delay.waiting_count == len(model.waiting)


def produce(world: RetryWorld, random: Random, number: int) -> int:
    """Produce on either side; returns the next number."""
    if random.random() < 0.5:
        world.published(b"%04d" % number, KEYS="k")
        return number + 1
    count = random.randint(1, 12)
    records = [Record(index, BORN_MS, b"k", b"%04d" % (number + index)) for index in range(count)]
    world.batch(records, compression=random.choice(list(Compression)))
    return number + count


def choose(world: RetryWorld, random: Random, group: str) -> Message | None:
    """A message that the group may be consuming: of the topic itself, or one of its retries."""
    topic = random.choice(("orders", f"%RETRY%{group}"))
    found = world.consumed(topic)
    return random.choice(found[-20:]) if found else None


def test_what_is_where_agrees_with_the_model_at_every_moment() -> None:
    random = seeded()
    for _ in range(budget("retry_models")):
        world, model = RetryWorld(), Model()
        world.set_group("h", retry_max_times=3)
        number = produce(world, random, 0)
        for _ in range(60):
            what = random.random()
            if what < 0.15:
                number = produce(world, random, number)
            elif what < 0.7:
                group = random.choice(GROUPS)
                message = choose(world, random, group)
                if message is None:
                    continue
                level = random.choice((0, 0, 0, 1, 2, 17, 40, -1))
                asked = random.choice((None, None, 2, 0))
                world.give_back(message, group=group, level=level, times_max=asked)
                limit = asked if asked is not None else (16 if group == "g" else 3)
                tried = (message.body, message.reconsume_times)
                model.give_back(group, tried, level, limit, world.clock.now_ms())
            elif what < 0.95:
                world.pass_time(random.choice((1, 400, SECOND, 9 * SECOND, 45 * SECOND, 3600_000)))
                model.pass_time(world.clock.now_ms())
            else:
                world.kill()
            compare(world, model)
        world.pass_time(3 * 3600_000)
        model.pass_time(world.clock.now_ms())
        compare(world, model)
        assert not model.waiting
        world.store.close()
