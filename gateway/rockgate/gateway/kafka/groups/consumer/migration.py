"""Groups that change their protocol while they have members, in both directions.

A classic group becomes a consumer group when a client of the consumer protocol joins it, and a
consumer group a classic one when its last such client is gone and classic members are left.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from rockgate.gateway.kafka.groups.classic.group import ClassicGroup
from rockgate.gateway.kafka.groups.classic.group_record import CLASSIC, SavedGroup, SavedMember
from rockgate.gateway.kafka.groups.classic.members import Member as ClassicMember
from rockgate.gateway.kafka.groups.consumer.classic_members import (
    CONSUMER,
    NameOf,
    encoded,
)
from rockgate.gateway.kafka.groups.consumer.group import ConsumerGroup, TopicShape
from rockgate.gateway.kafka.groups.consumer.member import (
    Classic,
    Member,
    Partitions,
    Subscription,
    TopicId,
    partitions_of,
)
from rockgate.gateway.kafka.groups.consumer.records import Changes, Head
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
)
from rockgate.protocol.kafka.errors import ErrorCode, MalformedMessage

FindTopic = Callable[[str], TopicShape | None]
BYTES_MAX: Final = 4 << 20
"""Maximum size of a classic group that is taken over, because that is done in one go."""


class MigrationPolicy(Enum):
    """Which migrations are allowed; the value is the one of `group.consumer.migration.policy`."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Whether a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        """Whether a consumer group may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


def check_upgrade(
    name: str, group: ClassicGroup, policy: MigrationPolicy, members_max: int
) -> None:
    """GROUP_ID_NOT_FOUND if a classic group stays one."""
    if group.protocol_type != CONSUMER:
        raise _not_upgraded(name, "the group does not use the consumer embedded protocol.")
    if not policy.upgrades:
        raise _not_upgraded(name, "the online upgrade is disabled.")
    if len(group.members) >= members_max:
        raise _not_upgraded(name, "the group size exceeds the consumer group maximum size.")
    size = sum(
        len(member.assignment) + sum(len(metadata) for _, metadata in member.protocols)
        for member in group.members
    )
    if size > BYTES_MAX:
        raise _not_upgraded(
            name, f"its {size:,} bytes of subscriptions and assignments exceed {BYTES_MAX:,}."
        )


def upgraded(name: str, group: ClassicGroup, find: FindTopic) -> Changes:
    """A classic group as the first change of a consumer group: all have what they were given."""
    epoch = max(1, group.generation)
    changes = Changes(head=Head(epoch=epoch, assignment_epoch=epoch))
    taken: set[tuple[TopicId, int]] = set()
    for member in group.members:
        protocols = member.protocols
        metadata = member.metadata(group.protocol_name) or protocols[0][1]
        try:
            subscription = decode_subscription(metadata)
            assigned = _assigned(member, find, taken)
        except MalformedMessage as error:
            raise _not_upgraded(name, "the embedded consumer protocol is malformed.") from error
        changes.members[member.id] = Member(
            id=member.id,
            subscription=_said(member, subscription),
            epoch=epoch,
            previous_epoch=epoch,
            assigned={topic_id: dict.fromkeys(held, epoch) for topic_id, held in assigned.items()},
        )
        changes.targets[member.id] = assigned
    return changes


def can_downgrade(
    group: ConsumerGroup, gone: set[str], policy: MigrationPolicy, members_max: int
) -> bool:
    """Whether only classic members are left once some are gone."""
    left = len(group.members) - len(gone)
    classic = group.classic_count - sum(group.members[each].is_classic for each in gone)
    return 0 < left == classic and left <= members_max and policy.downgrades


def downgraded(group: ConsumerGroup, gone: set[str], name_of: NameOf) -> SavedGroup:
    """The classic group of the members that are left, in the epoch that the group had."""
    left = [member for each, member in group.members.items() if each not in gone]
    shared: set[str] | None = None
    for member in left:
        mine = {name for name, _ in _classic(member).protocols}
        shared = mine if shared is None else shared & mine
    protocol = next(
        (name for name, _ in _classic(left[0]).protocols if name in (shared or ())), None
    )
    return SavedGroup(
        CLASSIC,
        group.head.epoch,
        CONSUMER,
        protocol,
        left[0].id,
        tuple(_saved(member, protocol, name_of) for member in left),
    )


def empty(kind: str, epoch: int) -> SavedGroup:
    """A group whose members, if it has any, are saved elsewhere or start over."""
    return SavedGroup(kind, epoch, CONSUMER)


def _saved(member: Member, protocol: str | None, name_of: NameOf) -> SavedMember:
    said, classic = member.subscription, _classic(member)
    metadata = dict(classic.protocols).get(protocol or "", b"")
    return SavedMember(
        member.id,
        said.instance_id,
        said.client_id,
        said.client_host,
        classic.session_ms,
        said.rebalance_ms,
        classic.protocols,
        encoded(partitions_of(member.assigned), name_of, metadata),
    )


def _classic(member: Member) -> Classic:
    classic = member.subscription.classic
    assert classic is not None, "only classic members are left"
    return classic


def _said(member: ClassicMember, subscription: ConsumerProtocolSubscription) -> Subscription:
    return Subscription(
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_ms=member.rebalance_ms,
        names=frozenset(subscription.topics),
        classic=Classic(session_ms=member.session_ms, protocols=member.protocols),
    )


def _assigned(
    member: ClassicMember, find: FindTopic, taken: set[tuple[TopicId, int]]
) -> Partitions:
    """What a leader gave to a member, each partition to one of them only."""
    if not member.assignment:
        return {}
    found: dict[TopicId, frozenset[int]] = {}
    for each in decode_assignment(member.assignment).assigned_partitions:
        topic = find(each.topic)
        if topic is None:
            continue
        topic_id, count = topic.id, topic.queue_count
        there = (partition for partition in each.partitions if 0 <= partition < count)
        mine = {(topic_id, partition) for partition in there} - taken
        taken |= mine
        if mine:
            known = found.get(topic_id, frozenset())
            found[topic_id] = known | {partition for _, partition in mine}
    return found


def _not_upgraded(name: str, reason: str) -> RequestError:
    return RequestError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {name} to consumer group because {reason}",
    )
