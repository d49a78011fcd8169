"""What of a consumer group lasts: its epochs, and of each member what it is, has and should have.

docs/internals/groups-consumer.md describes the bytes. A record belongs to a group and a member, so
that a change writes what it changed; the epochs of the group have the empty member.

    HEAD      group epoch, assignment epoch, digest of the subscribed topics
    MEMBER    its subscription
    TARGET    the partitions that it should have
    CURRENT   its epochs and state, the partitions that it has and those that it gives up

Partitions are runs: first, count and, where it matters, the epoch in which they were assigned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import msgspec

from rockgate.gateway.kafka.groups.consumer.member import (
    Classic,
    Member,
    MemberState,
    Owned,
    Partitions,
    Subscription,
)

TOPIC: Final = b"rmq_sys_rockgate_consumer_groups"
NAME: Final = "consumer-groups"


class RecordKind(IntEnum):
    """What a record holds. Part of the format on disk: never change a value."""

    HEAD = 1
    MEMBER = 2
    TARGET = 3
    CURRENT = 4


Key: TypeAlias = tuple[str, int, str]
"""Group, kind, member."""
Records: TypeAlias = dict[Key, bytes | None]
R = TypeVar("R")


class ConsumerMemory(Protocol):
    """The records of all groups with members."""

    def items(self) -> Iterable[tuple[Key, bytes]]:
        """All of them; valid until the next change."""
        ...

    def put(self, records: Mapping[Key, bytes | None], /) -> None:
        """Write and remove records; StoreError if that fails, and then nothing has changed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The epochs of a group."""

    epoch: int
    """Grows with every change of members, subscriptions or topics."""
    assignment_epoch: int
    """The epoch that the target was computed for."""
    digest: bytes = b""
    """Of the subscribed topics and their partitions, when the epoch last grew."""


@dataclass(slots=True)
class Changes:
    """What an event changes in a group. None removes."""

    head: Head | None = None
    members: dict[str, Member | None] = field(default_factory=dict)
    targets: dict[str, Partitions | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.head is not None or bool(self.members) or bool(self.targets)


class _Subscribed(msgspec.Struct, array_like=True, frozen=True):
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_ms: int
    names: list[str]
    regex: str
    assignor: str | None
    classic: tuple[int, tuple[tuple[str, bytes], ...]] | None


_Run: TypeAlias = tuple[int, int, int]
_Runs: TypeAlias = dict[bytes, list[_Run]]


class _Current(msgspec.Struct, array_like=True, frozen=True):
    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: _Runs
    revoking: _Runs


class _Head(msgspec.Struct, array_like=True, frozen=True):
    epoch: int
    assignment_epoch: int
    digest: bytes


_encode = msgspec.msgpack.Encoder().encode
_read_subscribed = msgspec.msgpack.Decoder(_Subscribed).decode
_read_current = msgspec.msgpack.Decoder(_Current).decode
_read_head = msgspec.msgpack.Decoder(_Head).decode
_read_target = msgspec.msgpack.Decoder(_Runs).decode


def records_of(group: str, changes: Changes, before: Mapping[str, Member]) -> Records:
    """The records of a change; members are compared with those before it."""
    found: Records = {}
    for member_id, target in changes.targets.items():
        key = (group, RecordKind.TARGET, member_id)
        found[key] = None if not target else _encode(_runs(_aged(target)))
    for member_id, member in changes.members.items():
        about, has = (group, RecordKind.MEMBER, member_id), (group, RecordKind.CURRENT, member_id)
        if member is None:
            found[about] = found[has] = None
            continue
        known = before.get(member_id)
        if known is None or known.subscription is not member.subscription:
            found[about] = _encode(_subscribed(member.subscription))
        if known is None or _has_moved(known, member):
            found[has] = _encode(_current(member))
    if (head := changes.head) is not None:
        # Last: a change too large for one entry has its epoch once all of it is there.
        found[group, RecordKind.HEAD, ""] = _encode(
            _Head(head.epoch, head.assignment_epoch, head.digest)
        )
    return found


def removal(group: str, member_ids: Iterable[str]) -> Records:
    """The change that removes a group with these members."""
    found: Records = {(group, RecordKind.HEAD, ""): None}
    for member_id in member_ids:
        for kind in (RecordKind.MEMBER, RecordKind.TARGET, RecordKind.CURRENT):
            found[group, kind, member_id] = None
    return found


def load(items: Iterable[tuple[Key, bytes]]) -> dict[str, Changes]:
    """Every group as one change of an empty group."""
    about: dict[tuple[str, str], Subscription] = {}
    has: dict[tuple[str, str], _Current] = {}
    groups: dict[str, Changes] = {}
    for (group, kind, member_id), data in items:
        changes = groups.setdefault(group, Changes())
        if kind == RecordKind.HEAD:
            head = _read_head(data)
            changes.head = Head(
                epoch=head.epoch, assignment_epoch=head.assignment_epoch, digest=head.digest
            )
        elif kind == RecordKind.MEMBER:
            about[group, member_id] = _subscription(_read_subscribed(data))
        elif kind == RecordKind.TARGET:
            target = _owned(_read_target(data))
            changes.targets[member_id] = {
                topic_id: frozenset(held) for topic_id, held in target.items()
            }
        else:
            has[group, member_id] = _read_current(data)
    for (group, member_id), subscription in about.items():
        groups[group].members[member_id] = _member(
            member_id, subscription, has.get((group, member_id))
        )
    return groups


def _member(member_id: str, subscription: Subscription, has: _Current | None) -> Member:
    if has is None:
        return Member(id=member_id, subscription=subscription)
    return Member(
        id=member_id,
        subscription=subscription,
        epoch=has.epoch,
        previous_epoch=has.previous_epoch,
        state=has.state,
        assigned=_owned(has.assigned),
        revoking=_owned(has.revoking),
    )


def _has_moved(known: Member, member: Member) -> bool:
    return (
        known.epoch != member.epoch
        or known.previous_epoch != member.previous_epoch
        or known.state != member.state
        or known.assigned != member.assigned
        or known.revoking != member.revoking
    )


def _current(member: Member) -> _Current:
    return _Current(
        member.epoch,
        member.previous_epoch,
        member.state,
        _runs(member.assigned),
        _runs(member.revoking),
    )


def _subscribed(said: Subscription) -> _Subscribed:
    classic = said.classic
    return _Subscribed(
        said.instance_id,
        said.rack_id,
        said.client_id,
        said.client_host,
        said.rebalance_ms,
        sorted(said.names),
        said.regex,
        said.assignor,
        None if classic is None else (classic.session_ms, classic.protocols),
    )


def _subscription(read: _Subscribed) -> Subscription:
    classic: Any = read.classic
    return Subscription(
        instance_id=read.instance_id,
        rack_id=read.rack_id,
        client_id=read.client_id,
        client_host=read.client_host,
        rebalance_ms=read.rebalance_ms,
        names=frozenset(read.names),
        regex=read.regex,
        assignor=read.assignor,
        classic=None if classic is None else Classic(session_ms=classic[0], protocols=classic[1]),
    )


def _aged(target: Partitions) -> Owned:
    return {topic_id: dict.fromkeys(held, 0) for topic_id, held in target.items()}


def _runs(owned: Owned) -> _Runs:
    return {topic_id: list(_runs_of(held)) for topic_id, held in owned.items()}


def _runs_of(held: Mapping[int, int]) -> Iterator[_Run]:
    first, count, epoch = -1, 0, 0
    for partition in sorted(held):
        if count and partition == first + count and held[partition] == epoch:
            count += 1
            continue
        if count:
            yield first, count, epoch
        first, count, epoch = partition, 1, held[partition]
    if count:
        yield first, count, epoch


def _owned(runs: _Runs) -> dict[bytes, dict[int, int]]:
    return {
        topic_id: {first + at: epoch for first, count, epoch in listed for at in range(count)}
        for topic_id, listed in runs.items()
    }
