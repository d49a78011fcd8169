"""The power is cut, or the process killed, at any write while transactions are under way.

Each transaction writes the same number to two or three of four partitions and commits it as a
group's offset. Whenever the process dies, a start must find each of them whole: what was answered
is as it was answered, and what was not is committed everywhere or nowhere.
"""

from __future__ import annotations

from random import Random

import pytest
from tests.budget import budget
from tests.gateway.kafka.transactions.ledger import Ledger
from tests.seeds import seeded
from tests.world import CONFIG

from rockgate.gateway.kafka.transactions import coordinator
from rockgate.store.errors import StoreError
from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

PARTITIONS = 4
ROUNDS = 12
CLIENTS = ("one", "two")


class Promises:
    """What was answered to clients, and what they wanted."""

    def __init__(self) -> None:
        self.wanted: dict[int, list[int]] = {}
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.durable: set[int] = set()
        """Answered, and flushed since."""


def run(ledger: Ledger, promises: Promises, random: Random) -> None:
    """Run transactions of two clients, in turns, until they are through or the process dies."""
    producers = {id_: ledger.init(id_).producer for id_ in CLIENTS}
    for number in range(ROUNDS):
        id_ = random.choice(CLIENTS)
        producer = producers[id_]
        partitions = random.sample(range(PARTITIONS), random.choice((2, 3)))
        promises.wanted[number] = partitions
        for partition in partitions:
            value = b"%d" % number
            assert ledger.write(producer, 0, value, id_=id_, partition=partition) == 0
        assert ledger.commit_offset(producer, number, group=id_, id_=id_) == 0
        is_commit = random.random() < 0.7
        ended = ledger.end(producer, commit=is_commit, id_=id_)
        assert ended.code == 0
        while ledger.coordinator.step():
            pass
        producers[id_] = ended.producer
        (promises.committed if is_commit else promises.aborted).add(number)
        if random.random() < 0.5:
            ledger.store.flush()
            promises.durable = promises.committed | promises.aborted
        if random.random() < 0.2:
            ledger.clock.advance(120_000)
            ledger.store.tick()


def check(ledger: Ledger, promises: Promises, answered: set[int]) -> None:
    for id_ in CLIENTS:
        ledger.init(id_)  # what is still open is aborted, as its next producer would do
    while ledger.coordinator.step():
        pass
    shown = [ledger.read(partition) for partition in range(PARTITIONS)]
    for partition in range(PARTITIONS):
        stable, high_watermark = ledger.bounds(partition)
        assert stable == high_watermark, "nothing hangs"
        assert len(set(shown[partition])) == len(shown[partition]), "nothing is there twice"
        assert shown[partition] == sorted(shown[partition], key=int), "nothing is out of order"
    for number, partitions in promises.wanted.items():
        there = [b"%d" % number in shown[partition] for partition in partitions]
        assert all(there) or not any(there), f"transaction {number} is torn"
        if number in answered:
            assert all(there) == (number in promises.committed), f"transaction {number}"
    for id_ in CLIENTS:
        code, offset = ledger.committed_offset(group=id_)
        assert code == 0
        if offset >= 0:
            assert all(b"%d" % offset in shown[at] for at in promises.wanted[offset])


def dying(disk: MemoryDisk, promises: Promises, seed: int) -> None:
    """Run until the disk dies, or to the end."""
    try:
        ledger = Ledger(CONFIG, disk)
        ledger.topic(partitions=PARTITIONS)
        ledger.store.flush()
        run(ledger, promises, Random(seed))
        ledger.store.close()
    except PowerCut:
        pass


@pytest.mark.parametrize("markers_at_once", [200, 1])
def test_a_power_cut_leaves_each_transaction_whole(
    markers_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "MARKERS_PER_GROUP", markers_at_once)
    random = seeded()
    died = 0
    for _ in range(budget("transaction_cuts")):
        seed = random.randrange(1 << 32)
        disk = MemoryDisk(crash_at=random.randint(10, 330), crash_keeps=random.choice((0, 1, 50)))
        promises = Promises()
        dying(disk, promises, seed)
        died += disk.is_dead
        try:
            ledger = Ledger(CONFIG, disk.power_cut(random))
            ledger.store.topics.get("orders")
        except StoreError as error:  # the topic itself was lost
            assert not promises.wanted, error
            continue
        check(ledger, promises, promises.durable)
        ledger.store.close()
    assert died, "no workload died"


@pytest.mark.parametrize("markers_at_once", [200, 1])
def test_a_kill_leaves_each_transaction_whole_and_loses_no_answer(
    markers_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "MARKERS_PER_GROUP", markers_at_once)
    random = seeded()
    died = 0
    for _ in range(budget("transaction_cuts")):
        seed = random.randrange(1 << 32)
        disk = MemoryDisk(crash_at=random.randint(60, 330), crash_keeps=random.choice((0, 1, 50)))
        promises = Promises()
        dying(disk, promises, seed)
        died += disk.is_dead
        if not promises.wanted:
            continue
        ledger = Ledger(CONFIG, disk.killed())
        check(ledger, promises, promises.committed | promises.aborted)
        ledger.store.close()
    assert died, "no workload died"
