"""A member of a consumer group: what it subscribes to, and how far it has followed its target.

Members are values: an event replaces a member, after the change was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final, TypeAlias

TopicId: TypeAlias = bytes
Partitions: TypeAlias = Mapping[TopicId, frozenset[int]]
"""Partitions by the id of their topic; a topic without any is left out."""
Owned: TypeAlias = Mapping[TopicId, Mapping[int, int]]
"""Partitions that a member may read, each with the epoch in which it was assigned."""

NOTHING: Final[Owned] = MappingProxyType({})
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2
"""The epoch of a static member that is away for a while."""


class MemberState(IntEnum):
    """How far a member has followed its target. Part of the format on disk."""

    STABLE = 0
    """It has what the target gave it when it last moved to an epoch."""
    REVOKING = 1
    """It has to give up partitions before it moves on."""
    WAITING = 2
    """It waits for partitions that others have not given up yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classic:
    """What a member of the classic protocol is known by."""

    session_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a member says about itself."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_ms: int = -1
    names: frozenset[str] = frozenset()
    regex: str = ""
    """A pattern for further topics; empty for none."""
    assignor: str | None = None
    classic: Classic | None = None
    """Of a member that uses JoinGroup and SyncGroup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member."""

    id: str
    subscription: Subscription = field(default_factory=Subscription)
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    """What it may read."""
    revoking: Owned = field(default_factory=dict)
    """What it has to give up, and still owns until it says that it has."""

    @property
    def is_classic(self) -> bool:
        """Whether it uses the classic protocol."""
        return self.subscription.classic is not None

    def is_at(self, epoch: int) -> bool:
        """Whether it has reached a target."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def owned_epoch(self, topic_id: TopicId, partition: int) -> int | None:
        """The epoch in which a partition was assigned to it; None if it does not own it."""
        for owned in (self.assigned, self.revoking):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def owned(self) -> Partitions:
        """All that it owns, with what it is giving up."""
        found = partitions_of(self.assigned)
        for topic_id, held in self.revoking.items():
            found[topic_id] = found.get(topic_id, frozenset()) | frozenset(held)
        return found


def partitions_of(owned: Owned) -> dict[TopicId, frozenset[int]]:
    """Partitions without their epochs."""
    return {topic_id: frozenset(held) for topic_id, held in owned.items()}


def is_same(one: Owned, other: Owned) -> bool:
    """Whether the partitions are the same, whatever their epochs."""
    return one is other or (
        len(one) == len(other)
        and all(
            topic_id in other and held.keys() == other[topic_id].keys()
            for topic_id, held in one.items()
        )
    )
