"""The key index after kill -9 and power cuts: every key before the log's end, none after it.

The log is a model. What it loses in a power cut is anything behind its last flush; the index may
have been flushed further than the log, so both sides of that are tried.
"""

from collections.abc import Callable, Iterator
from random import Random

import pytest
from tests.budget import budget
from tests.seeds import seeded
from tests.store.keymodel import (
    ModelLog,
    every_answer,
    every_query,
    indexed_positions,
    put_from,
)

from rockgate.store.keys.keyfile import Shape
from rockgate.store.keys.keyindex import KeyIndex
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

SHAPE = Shape(5, 12)
Death = Callable[[MemoryDisk, ModelLog, Random], MemoryDisk]


class Life:
    """One process: its index and the log it feeds from, under a random load."""

    def __init__(self, disk: MemoryDisk, log: ModelLog) -> None:
        self.log = log
        self.flushed = log.end
        self.index = KeyIndex(disk.root(), SHAPE)

    def start(self) -> int:
        return self.index.recover(log_end=self.log.end, rebuild_from=self.log.start)

    def run(self, random: Random, count: int) -> None:
        index, log = self.index, self.log
        for _ in range(count):
            index.put(*log.entry(log.append_random(random)))
            chance = random.random()
            if chance < 0.1:
                index.flush()
            elif chance < 0.2:
                index.prepare()
            elif chance < 0.25:
                index.reached(log.end)
            elif chance < 0.3:
                self.flushed = log.end
            elif chance < 0.33:
                log.start = random.choice(log.positions()[:5])
                index.expire(log.start)


def kill(disk: MemoryDisk, log: ModelLog, random: Random) -> MemoryDisk:
    return disk.killed()


def cut_power(disk: MemoryDisk, log: ModelLog, random: Random) -> MemoryDisk:
    """Lose unsynced bytes in pieces of any size: entries, slots and headers are torn."""
    return disk.power_cut(random, page_size=random.choice((16, 64, 512, 4096)))


def kill_then_cut_power(disk: MemoryDisk, log: ModelLog, random: Random) -> MemoryDisk:
    return cut_power(disk.killed(), log, random)


def lose_tail(log: ModelLog, flushed: int, random: Random) -> None:
    """End the log at any entry behind its last flush."""
    ends = [position for position in log.positions() if position >= flushed]
    log.truncate(random.choice([*ends, log.end]))


def check_recovered(disk: MemoryDisk, log: ModelLog) -> Life:
    """Start on what a crash left; compare with the log before and after the rest was put again."""
    life = Life(disk, log)
    resume = life.start()
    assert log.start <= resume <= max(log.end, log.start)
    assert all(position < log.end for position in indexed_positions(life.index))
    put_from(life.index, log, resume)
    assert every_query(life.index, log) == every_answer(log)
    return life


def crashed(random: Random, crash_at: int | None) -> Iterator[tuple[MemoryDisk, ModelLog, int]]:
    """Run a life until its end or its crash, and yield what there is then."""
    disk, log = MemoryDisk(), ModelLog()
    life = Life(disk, log)
    disk.crash_at = crash_at
    disk.crash_keeps = random.randint(0, 40)
    try:
        life.start()
        life.run(random, 60)
    except PowerCut:
        pass
    yield disk, log, life.flushed


@pytest.mark.row("S-09")
@pytest.mark.row("D-01")
@pytest.mark.parametrize("death", [kill, cut_power, kill_then_cut_power])
def test_after_a_crash_at_every_operation_no_key_is_lost_and_none_leads_behind_the_log(
    death: Death,
) -> None:
    random = seeded()
    for _ in range(budget("keyindex_crash_rounds")):
        seed = random.random()
        [(whole, _, _)] = crashed(Random(seed), None)
        for crash_at in range(1, whole.operation_count + 2):
            [(disk, log, flushed)] = crashed(Random(seed), crash_at)
            after = death(disk, log, random)
            if death is not kill:
                lose_tail(log, flushed, random)
            life = check_recovered(after, log)
            # What was cut off must not shine through in what comes after it.
            life.run(random, 15)
            assert every_query(life.index, log) == every_answer(log)


@pytest.mark.row("S-09")
def test_after_a_crash_at_every_operation_of_a_recovery_the_next_one_is_right() -> None:
    random = seeded()
    for _ in range(budget("keyindex_crash_rounds")):
        [(disk, log, flushed)] = crashed(random, random.randint(5, 60))
        first = cut_power(disk, log, random)
        lose_tail(log, flushed, random)
        crash_at = 0
        while True:
            crash_at += 1
            second = first.killed()
            second.crash_at = crash_at
            try:
                life = Life(second, log)
                put_from(life.index, log, life.start())
                life.index.flush()
            except PowerCut:
                death = random.choice((kill, cut_power))
                check_recovered(death(second, log, random), log)
            else:
                break


def test_a_kernel_that_writes_back_at_any_time_changes_nothing() -> None:
    random = seeded()
    for _ in range(budget("keyindex_crash_rounds") * 5):
        disk, log = MemoryDisk(), ModelLog()
        life = Life(disk, log)
        life.start()
        for _ in range(random.randint(1, 10)):
            life.run(random, 6)
            disk.write_back(random)
        after = cut_power(disk, log, random)
        lose_tail(log, life.flushed, random)
        check_recovered(after, log)


def flipped(disk: MemoryDisk, random: Random) -> MemoryDisk:
    """The same disk with a few bits of its files the other way round."""
    after = disk.killed()
    root = after.root()
    for _ in range(random.randint(1, 3)):
        mapping = root.map(random.choice(root.names()), writable=True)
        bit = random.randrange(mapping.size * 8)
        mapping.view[bit // 8] ^= 1 << bit % 8
    return after


def test_a_damaged_index_never_gives_a_wrong_answer() -> None:
    random = seeded()
    disk, log = MemoryDisk(), ModelLog()
    life = Life(disk, log)
    life.start()
    life.run(random, 60)
    life.index.reached(log.end)
    life.index.flush()
    answers = every_answer(log)
    for _ in range(budget("keyindex_damages")):
        again = Life(flipped(disk, random), log)
        put_from(again.index, log, again.start())
        for question, found in every_query(again.index, log).items():
            expected = answers[question]
            assert sorted(set(found) & set(expected), reverse=True) == found, question


def test_damage_to_a_header_costs_a_rebuild_and_no_key() -> None:
    random = seeded()
    disk, log = MemoryDisk(), ModelLog()
    life = Life(disk, log)
    life.start()
    life.run(random, 60)
    life.index.reached(log.end)
    life.index.flush()
    for name in disk.root().names():
        if name == "next":
            continue
        for bit in range(0, 40 * 8, 7):
            after = disk.killed()
            mapping = after.root().map(name, writable=True)
            mapping.view[bit // 8] ^= 1 << bit % 8
            check_recovered(after, log)
