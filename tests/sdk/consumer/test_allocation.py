"""Queues are split as Apache's own classes split them, so that a group may mix both clients.

allocations.txt is what compat-tests/rocketmq-java/src/Allocations.java prints: strategy, brokers,
queues of each, members, the member, and its queues.
"""

from collections import defaultdict
from pathlib import Path

import pytest

from rockgate.sdk.consumer.allocation import (
    Allocation,
    Averagely,
    ByMachineRoom,
    Configured,
    ConsistentHash,
    InCircles,
    Nearby,
)
from rockgate.sdk.results import Queue

TABLE = Path(__file__).with_name("allocations.txt")
BROKERS = ["east@a", "west@b", "north@c"]


def queues_of(brokers: int, each: int) -> list[Queue]:
    return sorted(
        Queue("orders", broker, number) for broker in BROKERS[:brokers] for number in range(each)
    )


def members_of(count: int) -> list[str]:
    return sorted(f"{['east', 'west'][number % 2]}@10.0.0.{number}" for number in range(count))


def room_of(name: str) -> str:
    return name.split("@")[0]


def strategies(queues: list[Queue]) -> list[Allocation]:
    return [
        Averagely(),
        InCircles(),
        Configured(queues[:1]),
        ByMachineRoom({"east", "north"}),
        Nearby(
            Averagely(), room_of_broker=lambda queue: room_of(queue.broker), room_of_member=room_of
        ),
        ConsistentHash(),
    ]


def cases() -> dict[tuple[str, int, int, int], dict[str, list[str]]]:
    found: dict[tuple[str, int, int, int], dict[str, list[str]]] = defaultdict(dict)
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        words, _, queues = line.partition(":")
        name, brokers, each, members, member = words.split()
        found[name, int(brokers), int(each), int(members)][member] = queues.split()
    return found


def test_each_strategy_splits_queues_as_apaches_does() -> None:
    for (name, brokers, each, member_count), expected in cases().items():
        queues, members = queues_of(brokers, each), members_of(member_count)
        (strategy,) = (found for found in strategies(queues) if found.name == name)
        split = {
            member: [
                f"{queue.broker}/{queue.id}"
                for queue in strategy.allocate("g", member, queues, members)
            ]
            for member in members
        }
        assert split == expected, (name, brokers, each, member_count)


def test_the_table_has_all_six_strategies() -> None:
    assert {name for name, *_ in cases()} == {each.name for each in strategies(queues_of(1, 1))}


@pytest.mark.parametrize("strategy", [Averagely(), InCircles(), ConsistentHash()])
def test_every_queue_is_read_by_one_member(strategy: Allocation) -> None:
    queues, members = queues_of(3, 7), members_of(5)
    found = [
        queue for member in members for queue in strategy.allocate("g", member, queues, members)
    ]
    assert sorted(found) == queues


@pytest.mark.parametrize("strategy", strategies(queues_of(2, 2)), ids=lambda each: each.name)
def test_who_is_not_listed_yet_reads_nothing(strategy: Allocation) -> None:
    found = strategy.allocate("g", "east@new", queues_of(2, 2), members_of(2))
    # What was named by hand does not depend on who else there is.
    assert found == (queues_of(2, 2)[:1] if strategy.name == "CONFIG" else [])


@pytest.mark.parametrize("strategy", [Averagely(), InCircles(), ConsistentHash()])
def test_missing_arguments_are_refused(strategy: Allocation) -> None:
    queues, members = queues_of(1, 2), members_of(1)
    with pytest.raises(ValueError, match="no id"):
        strategy.allocate("g", "", queues, members)
    with pytest.raises(ValueError, match="no queues"):
        strategy.allocate("g", members[0], [], members)
    with pytest.raises(ValueError, match="no members"):
        strategy.allocate("g", members[0], queues, [])


def test_few_queues_move_when_a_member_of_a_consistent_hash_comes() -> None:
    queues, members = queues_of(3, 30), members_of(8)
    before = _owners(ConsistentHash(), queues, members)
    after = _owners(ConsistentHash(), queues, [*members, "zzz"])
    moved = {queue for queue in queues if before[queue] != after[queue]}
    assert {after[queue] for queue in moved} <= {"zzz"}


def test_a_room_that_is_not_known_is_refused() -> None:
    nowhere = Nearby(Averagely(), room_of_broker=lambda _: "", room_of_member=room_of)
    with pytest.raises(ValueError, match="machine room of broker east@a"):
        nowhere.allocate("g", members_of(1)[0], queues_of(1, 1), members_of(1))


def test_a_negative_count_of_virtual_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        ConsistentHash(-1)


def _owners(strategy: Allocation, queues: list[Queue], members: list[str]) -> dict[Queue, str]:
    return {
        queue: member
        for member in members
        for queue in strategy.allocate("g", member, queues, members)
    }
