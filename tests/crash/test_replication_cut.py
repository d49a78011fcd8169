"""The power is cut, or the process killed, at any write of following, cutting and copying."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from tests.budget import budget
from tests.seeds import seeded
from tests.store.replication.pair import Primary, Replica, assert_same
from tests.store.replication.test_copying import aged

from rockgate.store.testing.memory_files import MemoryDisk, PowerCut

Work = Callable[[Replica, Primary], None]


def follow(replica: Replica, primary: Primary) -> None:
    replica.connect(primary.store)
    replica.follow(primary.store)
    replica.tick()
    replica.close()


def ahead(random: Random) -> tuple[Primary, MemoryDisk]:
    """A primary that lost its tail in a power cut, and a replica's disk that has it yet."""
    primary, replica = Primary(random), Replica(random)
    for _ in range(3):
        primary.workload.run(10)
        primary.workload.create_topic()
    primary.store.flush()
    kept = primary.disk.killed()
    for _ in range(30):
        primary.workload.append_batch()
        primary.workload.append_group()
    replica.connect(primary.store)
    replica.follow(primary.store)
    replica.tick()
    replica.close()
    primary.restart_from(kept)
    return primary, replica.disk


def new(random: Random) -> tuple[Primary, MemoryDisk]:
    primary = Primary(random)
    primary.workload.run(120)
    primary.store.flush()
    return primary, MemoryDisk()


def late(random: Random) -> tuple[Primary, MemoryDisk]:
    """A primary whose log begins later, and a replica's disk with something of its own."""
    other = Replica(random)
    other.close()
    return aged(random), other.disk


@pytest.mark.parametrize("death", ["power", "kill"])
@pytest.mark.parametrize("begin", [new, ahead, late])
def test_whatever_a_crash_interrupts_the_replica_has_the_same_in_the_end(
    begin: Callable[[Random], tuple[Primary, MemoryDisk]], death: str
) -> None:
    random = seeded()
    primary, disk = begin(random)
    rehearsal = disk.killed()
    follow(Replica(random, rehearsal), primary)
    total = rehearsal.operation_count
    every = max(1, total // budget("replication_cuts"))
    for crash_at in range(1 + random.randrange(every), total, every):
        victim = disk.killed()
        victim.crash_at, victim.crash_keeps = crash_at, random.choice((0, 50, 400))
        with pytest.raises(PowerCut):
            follow(Replica(random, victim), primary)
            follow(Replica(random, victim), primary)
        survivor = victim.power_cut(random) if death == "power" else victim.killed()
        replica = Replica(random, survivor)
        replica.connect(primary.store)
        replica.follow(primary.store)
        assert_same(primary.store, replica.store)
        replica.close()
        again = Replica(random, survivor)
        assert_same(primary.store, again.store)
        again.close()
