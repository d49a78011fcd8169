"""The power is cut, or the process killed, at every write of a store in which messages wait.

Whatever is left: each message that is in the log was delivered once, or recalled, or still waits
and is delivered later; never two of these, and never twice.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tests.budget import budget
from tests.seeds import seeded
from tests.store.waiting_store import WaitingStore

from rockgate.protocol import entry as envelope
from rockgate.store.clock import ManualClock
from rockgate.store.commitlog import Draft
from rockgate.store.memoryfiles import MemoryDisk, PowerCut

DAY_MS = 86_400_000


class Run:
    """One life of a server, from its start until it dies or is done."""

    def __init__(self, disk: MemoryDisk, random: Random) -> None:
        self.disk = disk
        self.random = random
        self.clock = ManualClock()
        self.acknowledged: set[bytes] = set()
        self.recalled: set[bytes] = set()
        self.in_doubt: set[bytes] = set()
        """Those whose recall was begun: the process may have died before it knew."""

    def go(self) -> None:
        try:
            world = WaitingStore(self.disk, self.clock)
            self._work(world)
            world.store.close()
        except PowerCut:
            pass

    def _work(self, world: WaitingStore) -> None:
        offsets: dict[int, bytes] = {}
        for number in range(24):
            body = b"%04d" % number
            due_ms = self.clock.now_ms() + self.random.choice((0, 500, 3_000, 3_000, DAY_MS))
            offset = world.schedule(body, due_ms)
            world.store.flush()
            self.acknowledged.add(body)
            offsets[offset] = body
            if number % 3 == 0:
                world.store.appender.message(world.queue("later"), Draft(b"", 0, 0, b"x" * 400))
            if number % 5 == 4:
                offset = self.random.choice(list(offsets))
                self.in_doubt.add(offsets[offset])
                if world.recall(offset):
                    world.store.flush()
                    self.recalled.add(offsets[offset])
            world.ripen(700)
        world.store.flush()


def logged(world: WaitingStore) -> set[bytes]:
    """The messages whose entries are there."""
    queue = world.queue("later")
    found = set()
    for offset in range(queue.next_offset):
        unit = queue.find(offset)
        if unit is not None and unit.base == offset:
            body = bytes(envelope.body_of(world.store.bodies.entry(queue, unit).entry))
            if len(body) == 4:
                found.add(body)
    return found


def operations(seed: int) -> int:
    disk = MemoryDisk()
    Run(disk, Random(seed)).go()
    return disk.operation_count


@pytest.mark.row("Y-02")
@pytest.mark.parametrize("how", ["kill", "power"])
def test_after_a_cut_at_any_write_everything_comes_once(how: str) -> None:
    random = seeded()
    seed = random.randrange(1 << 32)
    total = operations(seed)
    for _ in range(budget("delay_cuts")):
        keeps = random.choice((0, 1, 50, 400))
        disk = MemoryDisk(crash_at=random.randint(1, total), crash_keeps=keeps)
        run = Run(disk, Random(seed))
        run.go()
        left = disk.killed() if how == "kill" else disk.power_cut(random)
        world = WaitingStore(left, run.clock)
        world.ripen(0)
        there = logged(world)
        world.ripen(3 * DAY_MS)
        world.kill()
        world.ripen(DAY_MS)
        delivered = Counter(world.delivered())
        assert max(delivered.values(), default=1) == 1, "something came twice"
        assert run.acknowledged - run.in_doubt <= delivered.keys(), "something is lost"
        assert not run.recalled & delivered.keys(), "something came although it was recalled"
        assert there - delivered.keys() <= run.acknowledged, "something waits for ever"
        assert world.store.delay.waiting_count == 0
        world.store.close()
