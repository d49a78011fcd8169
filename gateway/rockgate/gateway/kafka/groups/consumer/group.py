"""The state of one consumer group: what its records say, and what follows from them.

It changes by `apply` alone, after the change was written, and is restored by the same call. Time
and requests are not its business: the other modules of this package decide from it what changes.

Invariant: a partition has at most one owner.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.consumer.member import Member, Owned, Partitions, TopicId
from rockgate.gateway.kafka.groups.consumer.records import Changes, Head

_EMPTY: Partitions = {}


class TopicShape(Protocol):
    """What a group needs to know of a topic."""

    @property
    def id(self) -> bytes:
        """The 16 bytes of its id."""
        ...

    @property
    def queue_count(self) -> int:
        """The number of its partitions."""
        ...


class ConsumerGroup:
    """One group."""

    def __init__(self, name: str, epoch: int = 0) -> None:
        self.name = name
        # An epoch of 0 means that a member joins, so the first one of a group is 1.
        self.head = Head(epoch=max(1, epoch), assignment_epoch=max(1, epoch))
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Partitions] = {}
        self.resolved: dict[str, frozenset[str]] = {}
        """The topics of each pattern, once they are known."""
        self._instances: dict[str, str] = {}
        self._owners: dict[TopicId, dict[int, str]] = {}
        self._readers: dict[str, int] = {}
        self._patterns: dict[str, int] = {}
        self._classic_count = 0

    # Reading

    @property
    def state(self) -> GroupState:
        """The state, as clients read it."""
        if not self.members:
            return GroupState.EMPTY
        if self.head.epoch > self.head.assignment_epoch:
            return GroupState.ASSIGNING
        epoch = self.head.assignment_epoch
        if all(member.is_at(epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def classic_count(self) -> int:
        """How many members use the classic protocol."""
        return self._classic_count

    def target(self, member_id: str) -> Partitions:
        """What a member should have."""
        return self.targets.get(member_id, _EMPTY)

    def static(self, instance_id: str) -> Member | None:
        """The member of an instance id."""
        member_id = self._instances.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def is_free(self, topic_id: TopicId, partition: int) -> bool:
        """Whether no one owns a partition."""
        return partition not in self._owners.get(topic_id, ())

    def owner(self, topic_id: TopicId, partition: int) -> str | None:
        """Who owns a partition."""
        return self._owners.get(topic_id, {}).get(partition)

    def names(self) -> Iterable[str]:
        """The topics that members name."""
        return self._readers

    def subscribed(self) -> frozenset[str]:
        """All topics that members read, by name or by pattern."""
        found = set(self._readers)
        for regex in self._patterns:
            found |= self.resolved.get(regex, frozenset())
        return frozenset(found)

    @property
    def patterns(self) -> Collection[str]:
        """The patterns of the members, each once."""
        return self._patterns.keys()

    @property
    def is_resolved(self) -> bool:
        """Whether the topics of every pattern are known."""
        return self.resolved.keys() >= self._patterns.keys()

    def assignor(self, default: str) -> str:
        """The assignor that most members ask for."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.subscription.assignor
            if name is not None:
                votes[name] = votes.get(name, 0) + 1
        return max(votes, key=lambda name: votes[name]) if votes else default

    def protocols(self) -> set[str]:
        """The protocols that every classic member supports."""
        found: set[str] | None = None
        for member in self.members.values():
            classic = member.subscription.classic
            if classic is not None:
                mine = {name for name, _ in classic.protocols}
                found = mine if found is None else found & mine
        return found or set()

    # Changing

    def apply(self, changes: Changes) -> None:
        """Make a change that was written."""
        moves = [
            (self.members.get(member_id), member) for member_id, member in changes.members.items()
        ]
        # What is given up comes first: a successor takes over what its predecessor had.
        for known, member in moves:
            if known is not None:
                self._forget(known, member)
        for known, member in moves:
            if member is not None:
                self._remember(known, member)
        for member_id, target in changes.targets.items():
            if target:
                self.targets[member_id] = target
            else:
                self.targets.pop(member_id, None)
        if changes.head is not None:
            self.head = changes.head

    def _forget(self, known: Member, successor: Member | None) -> None:
        if successor is None:
            del self.members[known.id]
        said = known.subscription
        if successor is None or successor.subscription is not said:
            if said.instance_id is not None and self._instances.get(said.instance_id) == known.id:
                del self._instances[said.instance_id]
            self._classic_count -= known.is_classic
            _count(self._readers, said.names, -1)
            _count(self._patterns, (said.regex,) if said.regex else (), -1)
        for topic_id, partition in _each(known.assigned, known.revoking):
            owners = self._owners[topic_id]
            del owners[partition]
            if not owners:
                del self._owners[topic_id]

    def _remember(self, known: Member | None, member: Member) -> None:
        said = member.subscription
        self.members[member.id] = member
        if known is None or known.subscription is not said:
            if said.instance_id is not None:
                self._instances[said.instance_id] = member.id
            self._classic_count += member.is_classic
            _count(self._readers, said.names, 1)
            _count(self._patterns, (said.regex,) if said.regex else (), 1)
        for topic_id, partition in _each(member.assigned, member.revoking):
            owners = self._owners.setdefault(topic_id, {})
            assert partition not in owners, "a partition has one owner"
            owners[partition] = member.id


def _count(counts: dict[str, int], names: Iterable[str], by: int) -> None:
    for name in names:
        counts[name] = counts.get(name, 0) + by
        if not counts[name]:
            del counts[name]


def digest_of(topics: Mapping[str, TopicShape]) -> bytes:
    """What differs when one of these topics is created, deleted or extended."""
    found = hashlib.blake2b(digest_size=16)
    for name in sorted(topics):
        topic = topics[name]
        found.update(topic.id)
        found.update(topic.queue_count.to_bytes(4, "big"))
    return found.digest()


def _each(*owned: Owned) -> Iterator[tuple[TopicId, int]]:
    return (
        (topic_id, each) for held in owned for topic_id, parts in held.items() for each in parts
    )
