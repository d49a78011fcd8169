"""Heartbeats of members: what is asked, whether it may be, and what it changes at once.

A refusal is a RequestError with Kafka's own message, which clients log and tools search for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from rockgate.gateway.kafka.groups.consumer.assignment.assignors import ASSIGNORS
from rockgate.gateway.kafka.groups.consumer.group import ConsumerGroup
from rockgate.gateway.kafka.groups.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    NOTHING,
    Member,
    Owned,
    Partitions,
    Subscription,
)
from rockgate.gateway.kafka.groups.consumer.records import Changes, Head
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.patterns import compile_pattern
from rockgate.protocol.kafka.errors import ErrorCode

_INVALID: Final = ErrorCode.INVALID_REQUEST
_ABANDON: Final = "The member must abandon all its partitions and rejoin."


def sees_all(name: str) -> bool:
    """A client that may describe every topic."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A heartbeat. None means that something is as it was."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_ms: int = -1
    names: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""
    sees: Callable[[str], bool] = sees_all
    """Which topics a pattern may find for this client."""

    @property
    def is_leaving(self) -> bool:
        """Whether it is the member's last one, perhaps only for a while."""
        return self.epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH)

    @property
    def is_full(self) -> bool:
        """Whether the member says everything, as after an error: it gets its assignment."""
        says_all = self.rebalance_ms != -1 and self.names is not None and self.owned is not None
        return self.epoch == JOIN_EPOCH or says_all


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatOutcome:
    """The answer to a heartbeat."""

    member_id: str
    epoch: int
    interval_ms: int = 0
    assigned: Owned | None = None
    """What the member may read, if it needs to know."""


def check(beat: Beat) -> None:
    """Refuse a heartbeat that no group could take."""
    if beat.instance_id == "":
        raise RequestError(_INVALID, "InstanceId can't be empty.")
    if beat.rack_id == "":
        raise RequestError(_INVALID, "RackId can't be empty.")
    if not beat.member_id:
        raise RequestError(_INVALID, "MemberId can't be empty.")
    if beat.epoch == JOIN_EPOCH:
        if beat.rebalance_ms == -1:
            raise RequestError(_INVALID, "RebalanceTimeoutMs must be provided in first request.")
        if beat.owned is None or beat.owned:
            raise RequestError(_INVALID, "TopicPartitions must be empty when (re-)joining.")
        if beat.names is None and beat.regex is None:
            raise RequestError(
                _INVALID,
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining.",
            )
    elif beat.epoch == LEAVE_STATIC_EPOCH:
        if beat.instance_id is None:
            raise RequestError(_INVALID, "InstanceId can't be null.")
    elif beat.epoch < LEAVE_EPOCH:
        raise RequestError(_INVALID, "MemberEpoch is invalid.")
    if beat.assignor is not None and beat.assignor not in ASSIGNORS:
        raise RequestError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {beat.assignor} is not supported. Supported assignors: "
            f"{', '.join(ASSIGNORS)}.",
        )
    if beat.regex:
        _check_pattern(beat.regex)


def _check_pattern(pattern: str) -> None:
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise RequestError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern[:200]}` is not a valid regular expression: {error}.",
        ) from error


def admit(group: ConsumerGroup, beat: Beat, members_max: int) -> Changes:
    """Add or update the member of a heartbeat; the group's epoch grows if that matters."""
    if beat.member_id not in group.members and len(group.members) >= members_max:
        raise RequestError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {members_max} members.",
        )
    changes = Changes()
    if beat.instance_id is not None:
        member = _static(group, beat, changes)
    else:
        if beat.member_id not in group.members and beat.epoch != JOIN_EPOCH:
            raise unknown(group.name, beat.member_id)
        member = group.members.get(beat.member_id) or Member(id=beat.member_id)
        _check_epoch(member, beat)
    said = restated(member.subscription, beat)
    if said is not member.subscription:
        changes.members[member.id] = replace(member, subscription=said)
        if _matters(group, member.subscription, said):
            changes.head = grown(group.head)
    elif member.id not in group.members:
        changes.members[member.id] = member
    return changes


def restated(said: Subscription, beat: Beat) -> Subscription:
    """A subscription with what a heartbeat says; the same one if that is nothing new."""
    names = said.names if beat.names is None or beat.names == said.names else beat.names
    new = Subscription(
        instance_id=said.instance_id if beat.instance_id is None else beat.instance_id,
        rack_id=said.rack_id if beat.rack_id is None else beat.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        rebalance_ms=said.rebalance_ms if beat.rebalance_ms == -1 else beat.rebalance_ms,
        names=names,
        regex=said.regex if beat.regex is None else beat.regex,
        assignor=said.assignor if beat.assignor is None else beat.assignor,
    )
    return said if new == said else new


def leave(group: ConsumerGroup, beat: Beat) -> Changes:
    """Remove the member of a heartbeat, or put a static one aside."""
    if beat.instance_id is None:
        member = group.members.get(beat.member_id)
        if member is None:
            raise unknown(group.name, beat.member_id)
        return removal(group, [member.id])
    member = _current(group, beat.instance_id, beat.member_id)
    if beat.epoch == LEAVE_EPOCH:
        return removal(group, [member.id])
    away = replace(member, epoch=LEAVE_STATIC_EPOCH, revoking=NOTHING)
    return Changes(members={member.id: away})


def removal(group: ConsumerGroup, member_ids: list[str]) -> Changes:
    """Remove members; what they had is assigned anew."""
    return Changes(
        head=grown(group.head),
        members=dict.fromkeys(member_ids),
        targets={each: None for each in member_ids if each in group.targets},
    )


def succession(group: ConsumerGroup, known: Member, member_id: str) -> tuple[Member, Changes]:
    """Put another member in the place of a static one, which is back under another id."""
    successor = replace(known, id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    changes = Changes(members={known.id: None, member_id: successor})
    if (target := group.targets.get(known.id)) is not None:
        changes.targets |= {known.id: None, member_id: target}
    return successor, changes


def grown(head: Head) -> Head:
    """The next epoch of a group; its topics are looked at again."""
    return replace(head, epoch=head.epoch + 1, digest=b"")


def unknown(group: str, member_id: str) -> RequestError:
    """The refusal of someone who is no member."""
    return RequestError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group}."
    )


def _static(group: ConsumerGroup, beat: Beat, changes: Changes) -> Member:
    instance_id = beat.instance_id or ""
    if beat.epoch != JOIN_EPOCH:
        member = _current(group, instance_id, beat.member_id)
        _check_epoch(member, beat)
        return member
    known = group.static(instance_id)
    if known is None:
        return group.members.get(beat.member_id) or Member(id=beat.member_id)
    if not known.is_classic and known.epoch != LEAVE_STATIC_EPOCH:
        raise RequestError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {beat.member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {known.id} member.",
        )
    if known.id == beat.member_id:
        successor = replace(known, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        changes.members[known.id] = successor
        return successor
    if beat.member_id in group.members:
        raise RequestError(
            _INVALID, f"Member {beat.member_id} is in the group without instance id {instance_id}."
        )
    successor, replaced = succession(group, known, beat.member_id)
    changes.members |= replaced.members
    changes.targets |= replaced.targets
    return successor


def _current(group: ConsumerGroup, instance_id: str, member_id: str) -> Member:
    """The member of an instance id, if it is this one."""
    known = group.static(instance_id)
    if known is None:
        raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known.id != member_id:
        raise RequestError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{known.id}.",
        )
    return known


def _check_epoch(member: Member, beat: Beat) -> None:
    if beat.epoch == JOIN_EPOCH:
        return
    if beat.epoch > member.epoch:
        raise _fenced("greater", beat.epoch, member)
    # The answer with the next epoch may have been lost on its way.
    is_late = beat.epoch == member.previous_epoch and _is_within(beat.owned, member.assigned)
    if beat.epoch < member.epoch and not is_late:
        raise _fenced("smaller", beat.epoch, member)


def _fenced(how: str, epoch: int, member: Member) -> RequestError:
    return RequestError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {how} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.epoch}). {_ABANDON}",
    )


def _is_within(owned: Partitions | None, assigned: Owned) -> bool:
    return owned is not None and all(
        held <= assigned.get(topic_id, {}).keys() for topic_id, held in owned.items()
    )


def _matters(group: ConsumerGroup, before: Subscription, after: Subscription) -> bool:
    """Whether a target has to be computed anew; for a new pattern, once its topics are known."""
    is_pattern_known = not after.regex or after.regex in group.resolved
    return before.names != after.names or (before.regex != after.regex and is_pattern_known)
