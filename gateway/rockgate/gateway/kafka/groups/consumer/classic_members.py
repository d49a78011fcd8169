"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

The server assigns for them too, so no one leads and no one waits: a join takes the member's next
step at once, and a heartbeat tells it when there is another to take. Its generation is its epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from rockgate.gateway.kafka.groups.classic import events
from rockgate.gateway.kafka.groups.classic.events import Join, Joined, Left, Sync, Synced
from rockgate.gateway.kafka.groups.consumer.group import ConsumerGroup
from rockgate.gateway.kafka.groups.consumer.heartbeats import grown, succession
from rockgate.gateway.kafka.groups.consumer.machine import ConsumerMachine
from rockgate.gateway.kafka.groups.consumer.member import (
    Classic,
    Member,
    MemberState,
    Partitions,
    Subscription,
    TopicId,
    partitions_of,
)
from rockgate.gateway.kafka.groups.consumer.records import Changes
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.consumer_protocol import (
    VERSION_MAX,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_subscription,
    encode_versioned,
)
from rockgate.protocol.kafka.errors import ErrorCode, MalformedMessage

CONSUMER: Final = "consumer"
SUBSCRIPTION_BYTES_MAX: Final = 256 << 10
"""Maximum size of what a member subscribes to: it is decoded here, and written as one record."""
PROTOCOLS_BYTES_MAX: Final = 384 << 10
"""Maximum size of all protocols of a member."""
_OK: Final = ErrorCode.NONE
IdOf = Callable[[str], TopicId | None]
NameOf = Callable[[TopicId], str | None]


def admit(machine: ConsumerMachine, join: Join, new_id: str, members_max: int, now_ms: int) -> str:
    """Add or update a member that joins; returns its id. RequestError if it may not."""
    group = machine.group
    if join.protocol_type != CONSUMER or not join.protocols or not _shares(group, join):
        raise RequestError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    if sum(len(metadata) for _, metadata in join.protocols) > PROTOCOLS_BYTES_MAX:
        raise RequestError(ErrorCode.INVALID_REQUEST, "The protocols are too large.")
    changes = Changes()
    member = _find(group, join, new_id, changes)
    if member.id not in group.members and not changes.members and len(group.members) >= members_max:
        raise RequestError(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    said = said_by(join, _subscription(join.protocols[0][1]))
    if said != member.subscription:
        changes.members[member.id] = replace(member, subscription=said)
        if said.names != member.subscription.names or member.subscription.regex:
            changes.head = grown(group.head)
    elif member.id not in group.members:
        changes.members[member.id] = member
    machine.change(changes)
    machine.extend(group.members[member.id], now_ms)
    machine.refresh(now_ms)
    return member.id


def follow(
    machine: ConsumerMachine, join: Join, member_id: str, id_of: IdOf, now_ms: int
) -> Joined:
    """Let a member that joins take its next step."""
    owned: dict[TopicId, frozenset[int]] = {}
    for each in _subscription(join.protocols[0][1]).owned_partitions:
        topic_id = id_of(each.topic)
        if topic_id is not None:
            owned[topic_id] = frozenset(each.partitions)
    member = machine.step(member_id, owned, now_ms)
    machine.limit(member_id, now_ms + max(0, join.rebalance_ms))
    return Joined(_OK, member_id, member.epoch, CONSUMER, join.protocols[0][0])


def sync(machine: ConsumerMachine, asked: Sync, name_of: NameOf, now_ms: int) -> Synced:
    """Tell a member what it may read."""
    code, member = _check(machine.group, asked)
    if member is None or member.subscription.classic is None:
        return Synced(code)
    classic = member.subscription.classic
    name, metadata = classic.protocols[0]
    if asked.protocol_type not in (None, CONSUMER) or asked.protocol_name not in (None, name):
        return Synced(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    is_late = machine.group.head.epoch > member.epoch
    if is_late and member.state is not MemberState.REVOKING:
        _expect_join(machine, member, now_ms)
        return Synced(ErrorCode.REBALANCE_IN_PROGRESS)
    machine.lift(member.id)
    machine.extend(member, now_ms)
    assignment = encoded(partitions_of(member.assigned), name_of, metadata)
    return Synced(_OK, asked.protocol_type, asked.protocol_name, assignment)


def heartbeat(machine: ConsumerMachine, beat: events.MemberHeartbeat, now_ms: int) -> ErrorCode:
    """Extend a session; REBALANCE_IN_PROGRESS if the member has to join again."""
    code, member = _check(machine.group, beat)
    if member is None:
        return code
    machine.extend(member, now_ms)
    group = machine.group
    has_step = (
        member.epoch < group.head.epoch
        or member.state is MemberState.REVOKING
        or (member.state is MemberState.WAITING and not _is_blocked(group, member))
    )
    if not has_step:
        return _OK
    _expect_join(machine, member, now_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


def leaving(group: ConsumerGroup, leavers: Iterable[events.Leaver]) -> tuple[Left, list[str]]:
    """A code for each leaver, and the members to remove."""
    codes: Left = []
    gone: dict[str, None] = {}
    for member_id, instance_id in leavers:
        code, found = _OK, member_id
        if instance_id is not None:
            known = group.static(instance_id)
            if known is None:
                code = ErrorCode.UNKNOWN_MEMBER_ID
            elif member_id and known.id != member_id:
                code = ErrorCode.FENCED_INSTANCE_ID
            else:
                found = known.id
        if not code and (found not in group.members or found in gone):
            code = ErrorCode.UNKNOWN_MEMBER_ID
        if not code:
            gone[found] = None
        codes.append(code)
    return codes, list(gone)


def said_by(join: Join, subscription: ConsumerProtocolSubscription) -> Subscription:
    """What a joining client says about itself."""
    return Subscription(
        instance_id=join.instance_id,
        rack_id=subscription.rack_id,
        client_id=join.client_id,
        client_host=join.client_host,
        rebalance_ms=join.rebalance_ms,
        names=frozenset(subscription.topics),
        classic=Classic(session_ms=join.session_ms, protocols=join.protocols),
    )


def encoded(partitions: Partitions, name_of: NameOf, metadata: bytes) -> bytes:
    """An assignment as clients of the classic protocol read it, in their own version of it."""
    listed: Mapping[str, list[int]] = {
        name: sorted(held)
        for topic_id, held in partitions.items()
        if (name := name_of(topic_id)) is not None
    }
    version = min(max(int.from_bytes(metadata[:2], "big", signed=True), 0), VERSION_MAX)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=name, partitions=held) for name, held in listed.items()
        ]
    )
    return encode_versioned(assignment, version)


def _shares(group: ConsumerGroup, join: Join) -> bool:
    if not group.classic_count:
        return True
    shared = group.protocols()
    return any(name in shared for name, _ in join.protocols)


def _find(group: ConsumerGroup, join: Join, new_id: str, changes: Changes) -> Member:
    member_id = join.member_id or new_id
    if join.instance_id is None:
        return group.members.get(member_id) or Member(id=member_id)
    known = group.static(join.instance_id)
    if join.member_id:
        if known is None:
            raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID, "")
        if known.id != join.member_id:
            raise RequestError(ErrorCode.FENCED_INSTANCE_ID, "")
        return known
    if known is None:
        return Member(id=member_id)
    successor, replaced = succession(group, known, member_id)
    changes.members |= replaced.members
    changes.targets |= replaced.targets
    return successor


def _check(
    group: ConsumerGroup, asked: Sync | events.MemberHeartbeat
) -> tuple[ErrorCode, Member | None]:
    if asked.instance_id is None:
        member = group.members.get(asked.member_id)
    else:
        member = group.static(asked.instance_id)
        if member is not None and member.id != asked.member_id:
            return ErrorCode.FENCED_INSTANCE_ID, None
    if member is None or not member.is_classic:
        return ErrorCode.UNKNOWN_MEMBER_ID, None
    if member.epoch != asked.generation:
        return ErrorCode.ILLEGAL_GENERATION, None
    return _OK, member


def _expect_join(machine: ConsumerMachine, member: Member, now_ms: int) -> None:
    rebalance_ms = max(0, member.subscription.rebalance_ms)
    machine.limit(member.id, now_ms + rebalance_ms, is_first=True)


def _is_blocked(group: ConsumerGroup, member: Member) -> bool:
    """Whether others still own something of its target."""
    for topic_id, wanted in group.target(member.id).items():
        held = member.assigned.get(topic_id, {})
        if any(
            partition not in held and not group.is_free(topic_id, partition) for partition in wanted
        ):
            return True
    return False


def _subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    if len(metadata) > SUBSCRIPTION_BYTES_MAX:
        raise RequestError(ErrorCode.INVALID_REQUEST, "The subscription is too large.")
    try:
        return decode_subscription(metadata)
    except MalformedMessage as error:
        raise RequestError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from error
