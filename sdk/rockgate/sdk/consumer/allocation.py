"""Which queues of a topic a member of a group reads: RocketMQ's six strategies.

Every member computes its own share from the same two sorted lists, so a strategy must depend on
nothing else. A group may mix our clients with Apache's: names and results are theirs
(tests/sdk/consumer/allocations.json was made by Apache's own classes).

    Averagely           AVG                       contiguous blocks, the first members one more
    InCircles           AVG_BY_CIRCLE             one by one around the members
    Configured          CONFIG                    the queues that were named, whatever the members
    ByMachineRoom       MACHINE_ROOM              brokers called room@name, of the rooms named
    Nearby              MACHINE_ROOM_NEARBY-…     a room's queues to its members; the rest to all
    ConsistentHash      CONSISTENT_HASH           few queues move when a member joins or leaves
"""

from __future__ import annotations

import bisect
import hashlib
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from rockgate.sdk.results import Queue

VIRTUAL_NODES: Final = 10

_log: Final = logging.getLogger(__name__)


class Allocation(Protocol):
    """Which of a topic's queues a member of a group reads."""

    @property
    def name(self) -> str:
        """Its name; members of a group should use the same strategy."""

    def allocate(
        self, group: str, member: str, queues: Sequence[Queue], members: Sequence[str]
    ) -> list[Queue]:
        """The queues of one member, of all queues and all members, both sorted."""


class Averagely:
    """Contiguous blocks; where it does not divide, the first members read one queue more."""

    name = "AVG"

    def allocate(
        self, group: str, member: str, queues: Sequence[Queue], members: Sequence[str]
    ) -> list[Queue]:
        """The queues of one member."""
        index = _index(group, member, queues, members)
        if index is None:
            return []
        least, more = divmod(len(queues), len(members))
        begin = index * least + min(index, more)
        return list(queues[begin : begin + least + (index < more)])


class InCircles:
    """One queue to each member in turn."""

    name = "AVG_BY_CIRCLE"

    def allocate(
        self, group: str, member: str, queues: Sequence[Queue], members: Sequence[str]
    ) -> list[Queue]:
        """The queues of one member."""
        index = _index(group, member, queues, members)
        return [] if index is None else list(queues[index :: len(members)])


class Configured:
    """The queues that were named. Members must agree on them among themselves."""

    name = "CONFIG"

    def __init__(self, queues: Collection[Queue]) -> None:
        self._queues = list(queues)

    def allocate(
        self, group: str, member: str, queues: Sequence[Queue], members: Sequence[str]
    ) -> list[Queue]:
        """The queues of one member."""
        return list(self._queues)


class ByMachineRoom:
    """Queues of brokers called `room@name` in the rooms named; what is left over goes one each."""

    name = "MACHINE_ROOM"

    def __init__(self, rooms: Collection[str]) -> None:
        self._rooms = frozenset(rooms)

    def allocate(
        self, group: str, member: str, queues: Sequence[Queue], members: Sequence[str]
    ) -> list[Queue]:
        """The queues of one member."""
        index = _index(group, member, queues, members)
        if index is None:
            return []
        near = [queue for queue in queues if self._is_near(queue)]
        each, left_count = divmod(len(near), len(members))
        found = near[each * index : each * (index + 1)]
        if index < left_count:
            found.append(near[each * len(members) + index])
        return found

    def _is_near(self, queue: Queue) -> bool:
        parts = queue.broker.split("@")
        return len(parts) == 2 and parts[0] in self._rooms


class Nearby:
    """A room's queues are split among its members by another strategy; where a room has no member,
    its queues are split among all."""

    def __init__(
        self,
        inner: Allocation,
        *,
        room_of_broker: Callable[[Queue], str],
        room_of_member: Callable[[str], str],
    ) -> None:
        self.name = f"MACHINE_ROOM_NEARBY-{inner.name}"
        self._inner = inner
        self._room_of_broker = room_of_broker
        self._room_of_member = room_of_member

    def allocate(
        self, group: str, member: str, queues: Sequence[Queue], members: Sequence[str]
    ) -> list[Queue]:
        """The queues of one member."""
        if _index(group, member, queues, members) is None:
            return []
        queues_by_room: dict[str, list[Queue]] = {}
        for queue in queues:
            room = _room(self._room_of_broker(queue), f"broker {queue.broker}")
            queues_by_room.setdefault(room, []).append(queue)
        members_by_room: dict[str, list[str]] = {}
        for each in members:
            room = _room(self._room_of_member(each), f"member {each}")
            members_by_room.setdefault(room, []).append(each)
        own = self._room_of_member(member)
        found: list[Queue] = []
        near = queues_by_room.pop(own, [])
        if near:
            found += self._inner.allocate(group, member, near, members_by_room[own])
        for room, far in sorted(queues_by_room.items()):
            if room not in members_by_room:
                found += self._inner.allocate(group, member, far, members)
        return found


class ConsistentHash:
    """Members are on a hash ring, several times each; a queue goes to the next one on it."""

    name = "CONSISTENT_HASH"

    def __init__(self, virtual_nodes: int = VIRTUAL_NODES) -> None:
        if virtual_nodes < 0:
            raise ValueError(f"The number of virtual nodes cannot be negative: {virtual_nodes}.")
        self._virtual_nodes = virtual_nodes

    def allocate(
        self, group: str, member: str, queues: Sequence[Queue], members: Sequence[str]
    ) -> list[Queue]:
        """The queues of one member."""
        if _index(group, member, queues, members) is None:
            return []
        ring = {
            _ring_hash(f"{each}-{number}"): each
            for each in members
            for number in range(self._virtual_nodes)
        }
        if not ring:
            return []
        places = sorted(ring)
        found = []
        for queue in queues:
            at = bisect.bisect_left(places, _ring_hash(_java_text(queue))) % len(places)
            if ring[places[at]] == member:
                found.append(queue)
        return found


def _index(group: str, member: str, queues: Sequence[Queue], members: Sequence[str]) -> int | None:
    """A member's index among all; None if a broker does not list it, or not yet."""
    if not member:
        raise ValueError("The member has no id.")
    if not queues:
        raise ValueError("There are no queues to allocate.")
    if not members:
        raise ValueError("The group has no members.")
    try:
        return members.index(member)
    except ValueError:
        _log.info("group %s does not list %s among its %d members", group, member, len(members))
        return None


def _room(name: str, of_what: str) -> str:
    if not name:
        raise ValueError(f"The machine room of {of_what} is not known.")
    return name


def _ring_hash(text: str) -> int:
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:4], "big")


def _java_text(queue: Queue) -> str:
    """How Apache's client writes a queue, by which it hashes it."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, queueId={queue.id}]"
