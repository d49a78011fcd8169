"""A member of a streams group: what it says about itself, and the tasks that it has.

Members are values: an event replaces a member, after the change was written. A task is a
subtopology and a partition. An active one computes; a standby has a copy of its state; a warm-up
copies the state in order to become active.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from rockgate.gateway.kafka.groups.consumer.member import JOIN_EPOCH, MemberState

TaskIds: TypeAlias = Mapping[str, frozenset[int]]
"""Tasks of one kind: partitions by subtopology; a subtopology without any is left out."""
HeldIds: TypeAlias = Mapping[str, Mapping[int, int]]
"""Tasks of one kind, each with the epoch in which it was assigned."""
_NONE: Final[Mapping[str, frozenset[int]]] = MappingProxyType({})
_NONE_HELD: Final[HeldIds] = MappingProxyType({})


class StreamsTasks(NamedTuple):
    """Tasks of each kind."""

    active: TaskIds = _NONE
    standby: TaskIds = _NONE
    warmup: TaskIds = _NONE

    def __bool__(self) -> bool:
        return any(self)


class HeldTasks(NamedTuple):
    """Tasks of each kind that a member has, or gives up."""

    active: HeldIds = _NONE_HELD
    standby: HeldIds = _NONE_HELD
    warmup: HeldIds = _NONE_HELD

    def __bool__(self) -> bool:
        return any(self)

    def without_epochs(self) -> StreamsTasks:
        """The tasks alone."""
        return StreamsTasks(*(_ids(held) for held in self))

    def each(self) -> Iterator[tuple[int, str, int]]:
        """Every task: the place of its kind, its subtopology, its partition."""
        for kind, held in enumerate(self):
            for subtopology, parts in held.items():
                for partition in parts:
                    yield kind, subtopology, partition

    def has_any(self, other: StreamsTasks) -> bool:
        """Whether any of these is among other tasks, of the same kind."""
        return any(
            not given[subtopology].isdisjoint(parts)
            for held, given in zip(self, other, strict=True)
            for subtopology, parts in held.items()
            if subtopology in given
        )

    def has_all(self, other: StreamsTasks) -> bool:
        """Whether these are all of other tasks."""
        return all(
            parts <= held.get(subtopology, {}).keys()
            for held, given in zip(self, other, strict=True)
            for subtopology, parts in given.items()
        )


NO_TASKS: Final = StreamsTasks()
NONE_HELD: Final = HeldTasks()


def _ids(held: HeldIds) -> dict[str, frozenset[int]]:
    return {subtopology: frozenset(parts) for subtopology, parts in held.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What a member says about itself and the process that it is in."""

    id: str = ""
    """Members of one process share what is on its disk."""
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_ms: int = -1
    topology_epoch: int = -1
    endpoint: tuple[str, int] | None = None
    """The host and port at which the process can be asked for its state."""
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMember:
    """One member."""

    id: str
    process: Process = Process()
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: HeldTasks = NONE_HELD
    """What it may compute."""
    revoking: HeldTasks = NONE_HELD
    """What it has to give up, and still owns until it says that it has."""

    def is_at(self, epoch: int) -> bool:
        """Whether it has reached a target."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def owned_epoch(self, subtopology: str, partition: int) -> int | None:
        """The epoch in which an active task was assigned to it; None if it does not own it."""
        for owned in (self.assigned, self.revoking):
            epoch = owned.active.get(subtopology, {}).get(partition)
            if epoch is not None:
                return epoch
        return None
