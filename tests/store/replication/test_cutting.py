"""Where two logs part, and a replica that is cut there."""

from __future__ import annotations

import pytest
from tests.budget import budget
from tests.crash.workload import CONFIG
from tests.seeds import seeded
from tests.store.replication.pair import Primary, Replica, assert_same

from rockgate.store.errors import CannotRepair
from rockgate.store.replication.cutting import NOWHERE, cut, find_cut
from rockgate.store.state.epochs import Epoch

A, B = b"a" * 16, b"b" * 16


def epochs(*places: int, directory: bytes = A) -> list[Epoch]:
    return [Epoch(n, place, directory, bytes(8)) for n, place in enumerate(places, 1)]


@pytest.mark.parametrize(
    ("ours", "our_end", "theirs", "their_end", "expected"),
    [
        (epochs(0), 900, [], 0, 0),
        (epochs(0), 900, epochs(0), 500, 500),
        (epochs(0), 500, epochs(0), 900, 500),
        (epochs(0, 400), 900, epochs(0), 300, 300),
        (epochs(0, 400), 900, epochs(0), 600, 400),
        (epochs(0, 400), 900, epochs(0, 600), 800, 400),
        (epochs(0, 600), 900, epochs(0, 400), 800, 400),
        (epochs(0, 400, 500), 900, [*epochs(0), *epochs(0, 400, directory=B)[1:]], 800, 400),
        (epochs(0, 400)[1:], 900, epochs(0, 400), 700, 700),
        (epochs(0), 900, epochs(0, directory=B), 500, NOWHERE),
        (epochs(0, 400)[1:], 900, epochs(0), 300, NOWHERE),
    ],
)
def test_the_cut_is_the_lower_end_of_the_last_common_epoch(
    ours: list[Epoch], our_end: int, theirs: list[Epoch], their_end: int, expected: int
) -> None:
    assert find_cut(ours, our_end, theirs, their_end) == expected


def test_a_replica_with_more_than_its_primary_is_cut_and_goes_on() -> None:
    random = seeded()
    cuts = 0
    for _ in range(budget("replication_rounds")):
        primary, replica = Primary(random), Replica(random)
        for _ in range(6):
            primary.workload.run(random.randint(1, 20))
            primary.workload.create_topic()
            primary.workload.append_batch()
            replica.connect(primary.store)
            replica.follow(primary.store)
            replica.tick()
            if random.random() < 0.6:
                # The replica has what the primary had not flushed, and loses in a power cut.
                before = primary.store.log.end
                primary.restart_from(primary.disk.power_cut(random))
                cuts += primary.store.found.end < before
        primary.workload.run(5)
        replica.connect(primary.store)
        replica.follow(primary.store)
        assert_same(primary.store, replica.store)
        replica.close()
        replica.open()
        assert_same(primary.store, replica.store)


def test_a_replica_behind_a_primary_that_counts_on_from_a_backup_is_cut_where_they_part() -> None:
    random = seeded()
    primary, replica = Primary(random), Replica(random)
    for _ in range(8):
        primary.workload.create_topic()
        primary.workload.append_batch()
    primary.store.flush()
    backup = primary.disk.killed()
    replica.connect(primary.store)
    replica.follow(primary.store)
    primary.restart_from(primary.disk.killed())
    primary.workload.append_batch()
    replica.connect(primary.store)
    replica.follow(primary.store)
    assert replica.cut_count == 0
    # The backup begins an epoch with the same number, at the same position.
    primary.restart_from(backup)
    assert primary.store.epochs.all[-1][:2] == replica.store.epochs.all[-1][:2]
    primary.workload.append_message()
    replica.connect(primary.store)
    assert replica.cut_count == 1
    assert replica.store.log.end == primary.store.epochs.all[-1].position
    replica.follow(primary.store)
    assert_same(primary.store, replica.store)


def test_what_was_cut_is_set_aside() -> None:
    random = seeded()
    primary = Primary(random)
    primary.workload.create_topic()
    primary.store.flush()
    end = primary.store.log.end
    for _ in range(3):
        primary.workload.append_batch()
    size = primary.store.log.end - end
    primary.store.close()
    after = primary.store.log.end
    assert cut(primary.disk.root(), end, CONFIG.segment_bytes) >= size
    lost = primary.disk.root().child("lost")
    [name] = lost.names()
    assert name == f"{end:020d}-{after - end}"
    primary.open()
    assert primary.store.found.end == end
    assert primary.store.found.set_aside_bytes == 0


@pytest.mark.parametrize("position", [-1, 1, 1 << 40])
def test_no_log_is_cut_within_an_entry_or_where_it_does_not_reach(position: int) -> None:
    primary = Primary(seeded())
    primary.workload.create_topic()
    primary.store.close()
    end = primary.store.log.end
    with pytest.raises(CannotRepair):
        cut(primary.disk.root(), position, CONFIG.segment_bytes)
    primary.open()
    assert primary.store.found.end == end
