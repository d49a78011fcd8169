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
from rockgate.sdk.consumer.settings import ConsumerSettings
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


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("AVG", marks=pytest.mark.row("ALLOC-2")),
        pytest.param("AVG_BY_CIRCLE", marks=pytest.mark.row("ALLOC-3")),
        "CONFIG",
        pytest.param("MACHINE_ROOM", marks=pytest.mark.row("ALLOC-5")),
        pytest.param("MACHINE_ROOM_NEARBY-AVG", marks=pytest.mark.row("ALLOC-6")),
        pytest.param("CONSISTENT_HASH", marks=pytest.mark.row("ALLOC-7")),
    ],
)
def test_each_strategy_splits_queues_as_apaches_does(name: str) -> None:
    case_count = 0
    for (of, brokers, each, member_count), expected in cases().items():
        if of != name:
            continue
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
        case_count += 1
    assert case_count


@pytest.mark.row("U-02")
def test_the_table_has_all_six_strategies() -> None:
    assert {name for name, *_ in cases()} == {each.name for each in strategies(queues_of(1, 1))}


@pytest.mark.row("ALLOC-1")
@pytest.mark.parametrize("index", range(6))
def test_the_same_lists_give_the_same_split_in_every_member(index: int) -> None:
    queues, members = queues_of(3, 5), members_of(4)
    before = list(queues), list(members)
    here, there = strategies(queues)[index], strategies(queues)[index]
    expected = _split(here, queues, members)
    # What was allocated before, and by which instance, is of no consequence.
    here.allocate("g", members[0], queues[:3], members[:1])
    assert _split(here, queues, members) == expected
    assert _split(there, list(queues), list(members)) == expected
    assert (queues, members) == before


@pytest.mark.row("ALLOC-2", "REB-18", "U-02")
@pytest.mark.parametrize(
    ("queue_count", "member_count", "expected"),
    [
        (5, 1, [[0, 1, 2, 3, 4]]),
        (5, 2, [[0, 1, 2], [3, 4]]),
        (8, 3, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (2, 3, [[0], [1], []]),
    ],
)
def test_the_average_strategy_gives_blocks_and_the_first_members_one_more(
    queue_count: int, member_count: int, expected: list[list[int]]
) -> None:
    strategy = ConsumerSettings().allocation
    assert strategy.name == "AVG"
    assert _ids(_split(strategy, queues_of(1, queue_count), members_of(member_count))) == expected


@pytest.mark.row("ALLOC-3")
def test_in_circles_queues_are_dealt_in_turn() -> None:
    split = _split(InCircles(), queues_of(1, 5), members_of(2))
    assert _ids(split) == [[0, 2, 4], [1, 3]]


@pytest.mark.row("ALLOC-4")
def test_configured_queues_are_those_that_were_named_or_none() -> None:
    queues, members = queues_of(2, 3), members_of(2)
    chosen = [queues[4], queues[1]]
    assert _split(Configured(chosen), queues, members) == [chosen, chosen]
    assert _split(Configured([]), queues, members) == [[], []]


@pytest.mark.row("ALLOC-5", "U-02")
def test_only_queues_of_allowed_rooms_are_spread_and_evenly() -> None:
    # west@b is not allowed, and a broker without a room is in none.
    queues = sorted([*queues_of(3, 4), Queue("orders", "east", 0), Queue("orders", "east@a@b", 0)])
    split = _split(ByMachineRoom({"east", "north"}), queues, members_of(3))
    assert {queue.broker for found in split for queue in found} == {"east@a", "north@c"}
    assert [len(found) for found in split] == [3, 3, 2]
    assert sorted(queue for found in split for queue in found) == [
        queue for queue in queues_of(3, 4) if queue.broker != "west@b"
    ]


@pytest.mark.row("ALLOC-6")
def test_a_room_s_queues_go_to_its_members_and_those_of_an_empty_room_to_all() -> None:
    queues, members = queues_of(3, 4), members_of(4)
    split = dict(zip(members, _split(strategies(queues)[4], queues, members), strict=True))
    for member, found in split.items():
        near = [queue for queue in found if queue.broker != "north@c"]
        assert {room_of(queue.broker) for queue in near} == {room_of(member)}
        assert len(near) == 2
        assert len(found) - len(near) == 1, "nobody is in the north: everybody has one of its four"


@pytest.mark.row("ALLOC-7")
def test_a_ring_has_ten_places_of_each_member() -> None:
    queues, members = queues_of(3, 30), members_of(8)
    assert _split(ConsistentHash(), queues, members) == _split(ConsistentHash(10), queues, members)
    assert _split(ConsistentHash(), queues, members) != _split(ConsistentHash(9), queues, members)


@pytest.mark.parametrize("strategy", [Averagely(), InCircles(), ConsistentHash()])
def test_every_queue_is_read_by_one_member(strategy: Allocation) -> None:
    queues, members = queues_of(3, 7), members_of(5)
    found = [
        queue for member in members for queue in strategy.allocate("g", member, queues, members)
    ]
    assert sorted(found) == queues


@pytest.mark.row("ALLOC-2", "U-02")
@pytest.mark.parametrize("strategy", strategies(queues_of(2, 2)), ids=lambda each: each.name)
def test_who_is_not_listed_yet_reads_nothing(strategy: Allocation) -> None:
    found = strategy.allocate("g", "east@new", queues_of(2, 2), members_of(2))
    # What was named by hand does not depend on who else there is.
    assert found == (queues_of(2, 2)[:1] if strategy.name == "CONFIG" else [])


@pytest.mark.row("ALLOC-2")
@pytest.mark.parametrize("strategy", [Averagely(), InCircles(), ConsistentHash()])
def test_missing_arguments_are_refused(strategy: Allocation) -> None:
    queues, members = queues_of(1, 2), members_of(1)
    with pytest.raises(ValueError, match="no id"):
        strategy.allocate("g", "", queues, members)
    with pytest.raises(ValueError, match="no queues"):
        strategy.allocate("g", members[0], [], members)
    with pytest.raises(ValueError, match="no members"):
        strategy.allocate("g", members[0], queues, [])


@pytest.mark.row("ALLOC-7")
def test_few_queues_move_when_a_member_of_a_consistent_hash_comes() -> None:
    queues, members = queues_of(3, 30), members_of(8)
    before = _owners(ConsistentHash(), queues, members)
    after = _owners(ConsistentHash(), queues, [*members, "zzz"])
    moved = {queue for queue in queues if before[queue] != after[queue]}
    assert {after[queue] for queue in moved} == {"zzz"}
    assert len(moved) < len(queues) / 4


@pytest.mark.row("ALLOC-6")
def test_a_room_that_is_not_known_is_refused() -> None:
    nowhere = Nearby(Averagely(), room_of_broker=lambda _: "", room_of_member=room_of)
    with pytest.raises(ValueError, match="machine room of broker east@a"):
        nowhere.allocate("g", members_of(1)[0], queues_of(1, 1), members_of(1))
    homeless = Nearby(Averagely(), room_of_broker=lambda _: "east", room_of_member=lambda _: "")
    with pytest.raises(ValueError, match=r"machine room of member east@10\.0\.0\.0"):
        homeless.allocate("g", members_of(1)[0], queues_of(1, 1), members_of(1))


def test_a_negative_count_of_virtual_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        ConsistentHash(-1)


def _owners(strategy: Allocation, queues: list[Queue], members: list[str]) -> dict[Queue, str]:
    return {
        queue: member
        for member in members
        for queue in strategy.allocate("g", member, queues, members)
    }


def _split(strategy: Allocation, queues: list[Queue], members: list[str]) -> list[list[Queue]]:
    return [strategy.allocate("g", member, queues, members) for member in members]


def _ids(split: list[list[Queue]]) -> list[list[int]]:
    return [[queue.id for queue in found] for found in split]
