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
from rockgate.store.log.commitlog import Draft
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

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
        for number in range(budget("delay_cut_messages")):
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
            world.pass_time(700)
        world.pass_time(3_000)
        world.store.flush()


def logged(world: WaitingStore) -> set[bytes]:
    """The messages whose entries are there."""
    queue = world.queue("later")
    found = set()
    for offset in range(queue.next_offset):
        unit = queue.find(offset)
        if unit is not None and unit.base == offset:
            body = bytes(envelope.body_of(world.store.reader.entry(queue, unit).entry))
            if len(body) == 4:
                found.add(body)
    return found


def operations(seed: int) -> int:
    disk = MemoryDisk()
    Run(disk, Random(seed)).go()
    return disk.operation_count


@pytest.mark.row("Y-02")
@pytest.mark.parametrize("how", ["kill", "power"])
def test_after_a_cut_at_every_write_everything_comes_once(how: str) -> None:
    """At each operation of the disk in turn, with none or some of what it was to write there."""
    random = seeded()
    seed = random.randrange(1 << 32)
    total = operations(seed)
    assert total > 100
    for crash_at in range(1, total + 1):
        for keeps in random.sample((0, 1, 50, 400), budget("delay_cut_keeps")):
            disk = MemoryDisk(crash_at=crash_at, crash_keeps=keeps)
            run = Run(disk, Random(seed))
            run.go()
            left = disk.killed() if how == "kill" else disk.power_cut(random)
            check(run, left, f"cut at {crash_at} of {total}, keeping {keeps}")


def check(run: Run, left: MemoryDisk, where: str) -> None:
    world = WaitingStore(left, run.clock)
    world.pass_time(0)
    there = logged(world)
    world.pass_time(3 * DAY_MS)
    world.kill()
    world.pass_time(DAY_MS)
    delivered = Counter(world.delivered())
    assert max(delivered.values(), default=1) == 1, f"something came twice: {where}"
    assert run.acknowledged - run.in_doubt <= delivered.keys(), f"something is lost: {where}"
    assert not run.recalled & delivered.keys(), f"something came that was recalled: {where}"
    assert there - delivered.keys() <= run.acknowledged, f"something waits for ever: {where}"
    assert world.store.delay.waiting_count == 0, where
    world.store.close()
