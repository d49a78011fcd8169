"""The next step of a member toward its target: revoke first, then take what no one owns.

    state      the member says              next
    STABLE     anything                     at the target's epoch: stays; else a step
    REVOKING   owns some of what it must    stays
               give up, or does not say
    REVOKING   owns none of it              it has left its epoch; a step
    WAITING    anything                     a step

A step keeps what is assigned and still in the target, and revokes the rest. While something is to
be revoked, the member stays in its epoch. Otherwise it moves to the target's epoch with what is
free of the target, and waits for the rest if others still own some of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from rockgate.gateway.kafka.groups.consumer.member import (
    NOTHING,
    Member,
    MemberState,
    Owned,
    Partitions,
    TopicId,
)

IsFree: TypeAlias = Callable[[TopicId, int], bool]
"""Whether no member owns a partition."""
Reported: TypeAlias = Mapping[TopicId, frozenset[int]] | None
"""What a member says it owns; None if it does not say."""


def step(
    member: Member,
    *,
    target_epoch: int,
    target: Partitions,
    is_free: IsFree,
    reported: Reported,
    subscribed: frozenset[TopicId] | None = None,
) -> Member:
    """The member after its next step, itself if there is none.

    With `subscribed` topics, what is assigned of others is revoked whatever the target says.
    """
    if subscribed is not None:
        target = {each: held for each, held in target.items() if each in subscribed}
    epoch = member.epoch
    if member.state is MemberState.STABLE and epoch == target_epoch:
        if subscribed is None or subscribed.issuperset(member.assigned):
            return member
    elif member.state is MemberState.REVOKING:
        if _owns_any(reported, member.revoking):
            return member
        epoch += 1
    return _next(member, epoch, target_epoch, target, is_free, reported)


def _next(
    member: Member,
    epoch: int,
    target_epoch: int,
    target: Partitions,
    is_free: IsFree,
    reported: Reported,
) -> Member:
    retained: dict[TopicId, dict[int, int]] = {}
    revoked: dict[TopicId, dict[int, int]] = {}
    for topic_id, held in member.assigned.items():
        wanted = target.get(topic_id, frozenset())
        for partition, since in held.items():
            into = retained if partition in wanted else revoked
            into.setdefault(topic_id, {})[partition] = since
    if revoked and _owns_any(reported, revoked):
        return _moved(member, epoch, MemberState.REVOKING, retained, revoked)
    # What was only known here as owned is given up at once, so it is free for others now.
    is_waiting = False
    for topic_id, wanted in target.items():
        held = retained.get(topic_id, {})
        missing = [partition for partition in wanted if partition not in held]
        free = [
            partition
            for partition in missing
            if is_free(topic_id, partition) or member.owned_epoch(topic_id, partition) is not None
        ]
        is_waiting |= len(free) < len(missing)
        if free:
            retained.setdefault(topic_id, {}).update(dict.fromkeys(free, target_epoch))
    state = MemberState.WAITING if is_waiting else MemberState.STABLE
    return _moved(member, target_epoch, state, retained, NOTHING)


def _moved(
    member: Member, epoch: int, state: MemberState, assigned: Owned, revoking: Owned
) -> Member:
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


def _owns_any(reported: Reported, revoking: Owned) -> bool:
    if reported is None:
        return True
    return any(
        not reported[topic_id].isdisjoint(held)
        for topic_id, held in revoking.items()
        if topic_id in reported
    )
