"""The power is cut, or the process killed, at every write of a server whose consumers fail.

Whatever is left: each message that was sent back, and acknowledged, is there again once, as another
try or as a dead letter; none is there twice, and none that was not sent back.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tests.budget import budget
from tests.gateway.remoting.retryworld import BORN_MS, RetryWorld
from tests.seeds import seeded

from rockgate.protocol.kafka.records.record import Record
from rockgate.protocol.remoting.system_topics import LEVELS_TOPIC
from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

CONFIG = StoreConfig(
    segment_bytes=16 << 10,
    populate_ahead_bytes=8192,
    checkpoint_bytes=6000,
    checkpoint_interval_ms=3_000,
    upkeep_gap_ms=0,
    snapshot_bytes=9000,
    snapshot_interval_ms=7_000,
    key_index=False,
    retention_interval_ms=1_000,
)
DAY_MS = 86_400_000
LEVELS = (0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, -1, -1, -1)
"""With what level the messages are given back, in any order: each run buries at least three."""

Try = tuple[bytes, int]
"""A message's body, and how often it was given back."""


class Run:
    """One life of a server, from its start until it dies or is done."""

    def __init__(self, disk: MemoryDisk, random: Random) -> None:
        self.disk = disk
        self.random = random
        self.clock = ManualClock()
        self.answered: set[Try] = set()
        self.begun: set[Try] = set()

    def go(self) -> None:
        try:
            world = RetryWorld(self.disk, self.clock, CONFIG)
            self._work(world)
            world.store.close()
        except PowerCut:
            pass

    def _work(self, world: RetryWorld) -> None:
        values = [b"%02d" % number for number in range(10)]
        world.batch([Record(at, BORN_MS, b"k", value) for at, value in enumerate(values)])
        for number in range(10, 16):
            world.published(b"%02d" % number)
        world.store.flush()
        levels = self.random.sample(LEVELS, len(LEVELS))
        for _ in range(20):
            lying = world.consumed("orders") + world.consumed("%RETRY%g")
            open_ = [
                message
                for message in lying
                if (bytes(message.body), message.reconsume_times + 1) not in self.begun
            ]
            if open_:
                message = self.random.choice(open_)
                what = (bytes(message.body), message.reconsume_times + 1)
                self.begun.add(what)
                level = levels.pop() if levels else self.random.choice(LEVELS)
                world.give_back(message, level=level, times_max=2)
                if self.random.random() < 0.7:
                    world.store.flush()
                    self.answered |= self.begun
            world.pass_time(self.random.choice((0, 400, 1_000, 6_000)))
        world.store.flush()


def test_a_whole_run_gives_back_on_both_sides_and_buries_some() -> None:
    disk = MemoryDisk()
    run = Run(disk, seeded())
    run.go()
    world = RetryWorld(disk, run.clock, CONFIG)
    world.pass_time(DAY_MS)
    assert len(world.consumed("%RETRY%g")) > 5
    assert len(world.consumed("%DLQ%g")) > 1


@pytest.mark.row("RTY-2")
@pytest.mark.parametrize("how", ["kill", "power"])
def test_after_a_cut_at_any_write_what_was_given_back_is_there_once(how: str) -> None:
    random = seeded()
    seed = random.randrange(1 << 32)
    disk = MemoryDisk()
    Run(disk, Random(seed)).go()
    total = disk.operation_count
    for crash_at in random.sample(range(1, total + 1), min(total, budget("retry_cuts"))):
        keeps = random.choice((0, 1, 50, 400))
        disk = MemoryDisk(crash_at=crash_at, crash_keeps=keeps)
        run = Run(disk, Random(seed))
        run.go()
        left = disk.killed() if how == "kill" else disk.power_cut(random)
        world = RetryWorld(left, run.clock, CONFIG)
        world.pass_time(0)
        world.pass_time(DAY_MS)
        world.kill()
        world.pass_time(DAY_MS)
        lying = world.consumed("%RETRY%g") + world.consumed("%DLQ%g")
        waited = [each for level in range(18) for each in world.consumed(LEVELS_TOPIC, level)]
        found = Counter((bytes(message.body), message.reconsume_times) for message in lying)
        assert max(found.values(), default=1) == 1, "something is there twice"
        assert run.answered <= found.keys(), "something is lost"
        assert found.keys() <= run.begun, "something is there that nobody gave back"
        tried = {(bytes(message.body), message.reconsume_times) for message in waited}
        assert tried <= found.keys(), "something waits for ever"
        assert world.store.delay.waiting_count == 0
        world.store.close()
