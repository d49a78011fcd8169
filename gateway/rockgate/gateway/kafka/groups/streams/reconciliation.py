"""The step of a member toward its target. docs/internals/groups-streams.md has the states.

What a member is to give up comes first: it moves on once it says that it does not own that. Then it
gets what is free: an active task that no member owns, and of any kind only what no other member of
its process owns in another, for they share a directory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from rockgate.gateway.kafka.groups.consumer.member import MemberState
from rockgate.gateway.kafka.groups.streams.member import (
    NONE_HELD,
    HeldTasks,
    StreamsMember,
    StreamsTasks,
)

Reported: TypeAlias = StreamsTasks | None
"""The tasks that a member says it owns; None if it does not say."""
IsFree: TypeAlias = Callable[[StreamsMember, int, str, int], bool]
"""Whether a member can get a task, of the kind at a place."""


def step(
    member: StreamsMember,
    *,
    target_epoch: int,
    target: StreamsTasks,
    is_free: IsFree,
    reported: Reported,
) -> StreamsMember:
    """The member after its next step, itself if there is none."""
    epoch = member.epoch
    if member.is_at(target_epoch):
        return member
    if member.state is MemberState.REVOKING:
        if reported is None or member.revoking.has_any(reported):
            return member
        epoch += 1
    stays, leaves = _split(member.assigned, target)
    if leaves and (reported is None or leaves.has_any(reported)):
        return _moved(member, epoch, MemberState.REVOKING, stays, leaves)
    has_all = True
    found: list[Mapping[str, Mapping[int, int]]] = []
    for kind, wanted in enumerate(target):
        held = {subtopology: dict(parts) for subtopology, parts in stays[kind].items()}
        for subtopology, parts in wanted.items():
            mine = held.get(subtopology, {})
            missing = [each for each in parts if each not in mine]
            free = [each for each in missing if is_free(member, kind, subtopology, each)]
            has_all &= len(free) == len(missing)
            if free:
                held.setdefault(subtopology, {}).update(dict.fromkeys(free, target_epoch))
        found.append(held)
    state = MemberState.STABLE if has_all else MemberState.WAITING
    return _moved(member, target_epoch, state, HeldTasks(*found), NONE_HELD)


def _split(assigned: HeldTasks, target: StreamsTasks) -> tuple[HeldTasks, HeldTasks]:
    """What is in the target, and what is not."""
    stays: list[dict[str, dict[int, int]]] = []
    leaves: list[dict[str, dict[int, int]]] = []
    for held, wanted in zip(assigned, target, strict=True):
        in_target: dict[str, dict[int, int]] = {}
        beyond: dict[str, dict[int, int]] = {}
        for subtopology, parts in held.items():
            keeps = wanted.get(subtopology, frozenset())
            for partition, since in parts.items():
                into = in_target if partition in keeps else beyond
                into.setdefault(subtopology, {})[partition] = since
        stays.append(in_target)
        leaves.append(beyond)
    return HeldTasks(*stays), HeldTasks(*leaves)


def _moved(
    member: StreamsMember,
    epoch: int,
    state: MemberState,
    assigned: HeldTasks,
    revoking: HeldTasks,
) -> StreamsMember:
    previous = member.previous_epoch if epoch == member.epoch else member.epoch
    moved = replace(
        member,
        epoch=epoch,
        previous_epoch=previous,
        state=state,
        assigned=assigned,
        revoking=revoking,
    )
    return member if moved == member else moved
