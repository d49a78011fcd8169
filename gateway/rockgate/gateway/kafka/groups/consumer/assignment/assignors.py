"""The server's assignors: pure functions from subscriptions to a target for every member.

    uniform   as even as subscriptions allow, and nothing moves that need not
    range     of each topic a run of partitions, so that equal topics go to equal members

Both yield between pieces of work, so that a large group does not hold the event loop, and return
the target. Racks of members are known and not used: there is one server.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from rockgate.gateway.kafka.groups.consumer.member import Partitions, TopicId

PIECE: Final = 500
"""Partitions, or members, between two yields."""
PASSES_MAX: Final = 100
"""How often a group with unequal subscriptions is gone through to even it out."""


class Subscriber(NamedTuple):
    """A member, as an assignor sees it."""

    topics: frozenset[TopicId]
    instance_id: str | None = None
    rack_id: str | None = None
    previous: Partitions = MappingProxyType({})
    """Its previous target."""


Subscribers: TypeAlias = Mapping[str, Subscriber]
Topics: TypeAlias = Mapping[TopicId, int]
"""Topics and their numbers of partitions."""
Target: TypeAlias = dict[str, dict[TopicId, frozenset[int]]]
Work: TypeAlias = Generator[None, None, Target]
Assignor: TypeAlias = Callable[[Topics, Subscribers], Work]
_Held: TypeAlias = dict[str, dict[TopicId, set[int]]]


def uniform(topics: Topics, members: Subscribers) -> Work:
    """Assign as evenly as possible, and move as little as possible."""
    if not members:
        return {}
    held, free = yield from _retained(topics, members)
    wanted = {each.intersection(topics) for each in {member.topics for member in members.values()}}
    if len(wanted) == 1:
        yield from _fill_quotas(members, held, free)
    else:
        yield from _even_out(topics, members, held, free)
    target: Target = {}
    for at, (member_id, retained) in enumerate(held.items()):
        target[member_id] = {topic_id: frozenset(parts) for topic_id, parts in retained.items()}
        if at % PIECE == PIECE - 1:
            yield
    return target


def range_(topics: Topics, members: Subscribers) -> Work:
    """Assign runs of each topic, in the order of static members, then of dynamic ones."""
    order = sorted(
        members,
        key=lambda each: (members[each].instance_id is None, members[each].instance_id or each),
    )
    target: Target = {member_id: {} for member_id in members}
    for topic_id, count in topics.items():
        readers = [each for each in order if topic_id in members[each].topics]
        if not readers:
            continue
        share, more = divmod(count, len(readers))
        begin = 0
        for at, member_id in enumerate(readers):
            end = begin + share + (at < more)
            if end > begin:
                target[member_id][topic_id] = frozenset(range(begin, end))
            begin = end
            if at % PIECE == PIECE - 1:
                yield
        yield
    return target


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform, "range": range_}
"""By the names that clients ask for; the first is the default."""


def _retained(
    topics: Topics, members: Subscribers
) -> Generator[None, None, tuple[_Held, dict[TopicId, list[int]]]]:
    """What every member may keep, and what no one has, by topic."""
    held: _Held = {}
    taken: dict[TopicId, set[int]] = {}
    steps = 0
    for member_id, member in members.items():
        retained: dict[TopicId, set[int]] = {}
        for topic_id, previous in member.previous.items():
            count = topics.get(topic_id, 0)
            if topic_id not in member.topics or not count:
                continue
            known = taken.setdefault(topic_id, set())
            mine = {each for each in previous if each < count and each not in known}
            steps += len(previous)
            if mine:
                retained[topic_id] = mine
                known |= mine
        held[member_id] = retained
        steps += 1
        if steps >= PIECE:
            steps = 0
            yield
    read = frozenset[TopicId]().union(*{member.topics for member in members.values()})
    free = {}
    for topic_id, count in topics.items():
        if topic_id in read:
            known = taken.get(topic_id, set())
            if len(known) < count:
                free[topic_id] = [each for each in range(count) if each not in known]
            yield
    return held, free


def _fill_quotas(
    members: Subscribers, held: _Held, free: dict[TopicId, list[int]]
) -> Generator[None, None, None]:
    """All read the same topics: everyone gets the same number, some one more."""
    counts = {member_id: _count(retained) for member_id, retained in held.items()}
    total = sum(counts.values()) + sum(map(len, free.values()))
    share, more = divmod(total, len(members))
    # Those who have most keep one more, so that least is moved.
    order = sorted(members, key=lambda each: -counts[each])
    quotas = {member_id: share + (at < more) for at, member_id in enumerate(order)}
    spare = [(topic_id, each) for topic_id, parts in free.items() for each in parts]
    yield
    for at, member_id in enumerate(order):
        retained = held[member_id]
        over = counts[member_id] - quotas[member_id]
        while over > 0:
            topic_id = max(retained, key=lambda each: len(retained[each]))
            partition = max(retained[topic_id])
            _drop(retained, topic_id, partition)
            spare.append((topic_id, partition))
            over -= 1
            if not over % PIECE:
                yield
        if not at % PIECE:
            yield
    spare.reverse()
    for at, member_id in enumerate(order):
        retained = held[member_id]
        for _ in range(quotas[member_id] - min(counts[member_id], quotas[member_id])):
            topic_id, partition = spare.pop()
            retained.setdefault(topic_id, set()).add(partition)
        if not at % (PIECE // 10):
            yield


def _even_out(
    topics: Topics, members: Subscribers, held: _Held, free: dict[TopicId, list[int]]
) -> Generator[None, None, None]:
    """Members read different topics: the least loaded reader takes, the most loaded gives."""
    readers: dict[TopicId, list[str]] = {}
    for member_id, member in members.items():
        for topic_id in member.topics & topics.keys():
            readers.setdefault(topic_id, []).append(member_id)
        yield
    loads = {member_id: _count(retained) for member_id, retained in held.items()}
    order = sorted(readers, key=lambda each: (len(readers[each]), each))
    for topic_id in order:
        heap = [(loads[each], each) for each in readers[topic_id]]
        heapq.heapify(heap)
        for at, partition in enumerate(free.get(topic_id, ())):
            load, member_id = heap[0]
            heapq.heapreplace(heap, (load + 1, member_id))
            loads[member_id] = load + 1
            held[member_id].setdefault(topic_id, set()).add(partition)
            if at % PIECE == PIECE - 1:
                yield
        yield
    for _ in range(PASSES_MAX):
        has_moved = False
        for topic_id in order:
            has_moved |= yield from _even_topic(topic_id, readers[topic_id], held, loads)
        if not has_moved:
            return


def _even_topic(
    topic_id: TopicId, readers: list[str], held: _Held, loads: dict[str, int]
) -> Generator[None, None, bool]:
    """Move partitions of one topic from its most to its least loaded readers."""
    takers = [(loads[each], each) for each in readers]
    givers = [(-loads[each], each) for each in readers if held[each].get(topic_id)]
    heapq.heapify(takers)
    heapq.heapify(givers)
    has_moved = False
    steps = 0
    while givers:
        steps += 1
        if not steps % PIECE:
            yield
        load, giver = givers[0]
        if -load != loads[giver] or not held[giver].get(topic_id):
            heapq.heappop(givers)
            if held[giver].get(topic_id):
                heapq.heappush(givers, (-loads[giver], giver))
            continue
        least, taker = takers[0]
        if least != loads[taker]:
            heapq.heapreplace(takers, (loads[taker], taker))
            continue
        if -load - least <= 1:
            break
        partition = max(held[giver][topic_id])
        _drop(held[giver], topic_id, partition)
        held[taker].setdefault(topic_id, set()).add(partition)
        loads[giver] -= 1
        loads[taker] += 1
        has_moved = True
    yield
    return has_moved


def _drop(retained: dict[TopicId, set[int]], topic_id: TopicId, partition: int) -> None:
    retained[topic_id].discard(partition)
    if not retained[topic_id]:
        del retained[topic_id]


def _count(retained: Mapping[TopicId, set[int]]) -> int:
    return sum(map(len, retained.values()))
