"""The state of one streams group: what its records say, and what follows from them.

It changes by `apply` alone, after the change was written, and is restored by the same call.

Invariant: an active task has at most one owner.
"""

from __future__ import annotations

from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.streams.member import NO_TASKS, StreamsMember, StreamsTasks
from rockgate.gateway.kafka.groups.streams.records import StreamsChanges, StreamsHead
from rockgate.gateway.kafka.groups.streams.topology import StreamsTopology

ACTIVE = 0
"""The place of active tasks among the kinds."""


class StreamsGroup:
    """One group."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.head = StreamsHead()
        self.topology: StreamsTopology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.targets: dict[str, StreamsTasks] = {}
        self._owners: dict[tuple[str, int], dict[str, int]] = {}
        """Who has a task or gives it up, and as which kind."""

    @property
    def state(self) -> GroupState:
        """The state, as clients see it."""
        head = self.head
        if not self.members:
            return GroupState.EMPTY
        if self.topology is None or self.topology.epoch != head.validated_epoch:
            return GroupState.NOT_READY
        if head.epoch > head.assignment_epoch:
            return GroupState.ASSIGNING
        if all(member.is_at(head.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def target(self, member_id: str) -> StreamsTasks:
        """What a member should have."""
        return self.targets.get(member_id, NO_TASKS)

    def read(self) -> frozenset[str]:
        """The topics that tasks read."""
        return frozenset() if self.topology is None else frozenset(self.topology.read())

    def is_free(self, member: StreamsMember, kind: int, subtopology: str, partition: int) -> bool:
        """Whether a member can get a task; what it has of it itself does not matter."""
        owners = self._owners.get((subtopology, partition))
        if not owners:
            return True
        for member_id, held in owners.items():
            if member_id == member.id:
                continue
            if kind == ACTIVE and held == ACTIVE:
                return False
            if self.members[member_id].process.id == member.process.id:
                return False
        return True

    def owner(self, subtopology: str, partition: int) -> str | None:
        """Who has an active task, or gives it up."""
        owners = self._owners.get((subtopology, partition), {})
        return next((each for each, kind in owners.items() if kind == ACTIVE), None)

    def apply(self, changes: StreamsChanges) -> None:
        """Make a change that was written."""
        known = {each: self.members.get(each) for each in changes.members}
        for member_id, member in changes.members.items():
            if not _is_unmoved(known[member_id], member):
                self._release(known[member_id])
        for member_id, member in changes.members.items():
            if member is None:
                self.members.pop(member_id, None)
                continue
            self.members[member_id] = member
            if not _is_unmoved(known[member_id], member):
                self._own(member)
        for member_id, target in changes.targets.items():
            if target:
                self.targets[member_id] = target
            else:
                self.targets.pop(member_id, None)
        if changes.topology is not None:
            self.topology = changes.topology
        if changes.head is not None:
            self.head = changes.head

    def _release(self, member: StreamsMember | None) -> None:
        if member is None:
            return
        for held in (member.assigned, member.revoking):
            for _, subtopology, partition in held.each():
                owners = self._owners[subtopology, partition]
                del owners[member.id]
                if not owners:
                    del self._owners[subtopology, partition]

    def _own(self, member: StreamsMember) -> None:
        for held in (member.assigned, member.revoking):
            for kind, subtopology, partition in held.each():
                owners = self._owners.setdefault((subtopology, partition), {})
                assert kind != ACTIVE or ACTIVE not in owners.values(), (
                    "an active task has one owner"
                )
                assert member.id not in owners, "a member has a task once"
                owners[member.id] = kind


def _is_unmoved(known: StreamsMember | None, member: StreamsMember | None) -> bool:
    """Whether a member has what it had, as the same objects."""
    if known is None or member is None:
        return False
    return known.assigned is member.assigned and known.revoking is member.revoking
