"""What of a streams group lasts: its epochs and topology, and of each member what it is and has.

docs/internals/groups-streams.md describes the bytes. A record belongs to a group and a member;
those of the group itself have the empty member, and remain when it has no members.

    HEAD       group epoch, assignment epoch, digest of the topics, validated topology, standbys
    TOPOLOGY   subtopologies and their topics
    MEMBER     what it says about itself
    TARGET     the tasks that it should have
    CURRENT    its epochs and state, the tasks that it has and those that it gives up
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Protocol, TypeAlias

import msgspec

from rockgate.gateway.kafka.groups.consumer.member import MemberState
from rockgate.gateway.kafka.groups.streams.member import (
    HeldIds,
    HeldTasks,
    Process,
    StreamsMember,
    StreamsTasks,
)
from rockgate.gateway.kafka.groups.streams.topology import (
    StreamsTopology,
    pack_topology,
    unpack_topology,
)

TOPIC: Final = b"rmq_sys_rockgate_streams_groups"
NAME: Final = "streams-groups"


class StreamsRecord(IntEnum):
    """What a record holds. Part of the format on disk: never change a value."""

    HEAD = 1
    TOPOLOGY = 2
    MEMBER = 3
    TARGET = 4
    CURRENT = 5


StreamsKey: TypeAlias = tuple[str, int, str]
"""Group, kind, member."""
StreamsRecords: TypeAlias = dict[StreamsKey, bytes | None]


class StreamsMemory(Protocol):
    """The records of all groups."""

    def find(self, key: StreamsKey, /) -> bytes | None:
        """A record."""
        ...

    def items(self) -> Iterable[tuple[StreamsKey, bytes]]:
        """All of them; valid until the next change."""
        ...

    def put(self, records: Mapping[StreamsKey, bytes | None], /) -> None:
        """Write and remove records; StoreError if that fails, and then nothing has changed."""
        ...


class StreamsHead(msgspec.Struct, array_like=True, frozen=True):
    """The epochs of a group."""

    epoch: int = 1
    """Grows with every change of members, topology or topics."""
    assignment_epoch: int = 1
    """The epoch that the target was computed for."""
    digest: bytes = b""
    """Of the topics and their partitions, when the epoch last grew."""
    validated_epoch: int = -1
    """The epoch of the topology that fits the topics; -1 if it does not."""
    standbys: int = 0
    """The number of standbys that the target was computed for."""


@dataclass(slots=True)
class StreamsChanges:
    """What an event changes in a group. None removes, of members and targets."""

    head: StreamsHead | None = None
    topology: StreamsTopology | None = None
    members: dict[str, StreamsMember | None] = field(default_factory=dict)
    targets: dict[str, StreamsTasks | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.head is not None or bool(self.members) or bool(self.targets)


class _About(msgspec.Struct, array_like=True, frozen=True):
    process_id: str
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_ms: int
    topology_epoch: int
    endpoint: tuple[str, int] | None
    tags: tuple[tuple[str, str], ...]


_Run: TypeAlias = tuple[int, int, int]
_Kind: TypeAlias = dict[str, list[_Run]]
_Kinds: TypeAlias = tuple[_Kind, _Kind, _Kind]


class _Has(msgspec.Struct, array_like=True, frozen=True):
    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: _Kinds
    revoking: _Kinds


_encode = msgspec.msgpack.Encoder().encode
_read_head = msgspec.msgpack.Decoder(StreamsHead).decode
_read_about = msgspec.msgpack.Decoder(_About).decode
_read_has = msgspec.msgpack.Decoder(_Has).decode
_read_target = msgspec.msgpack.Decoder(_Kinds).decode


def records_of(
    group: str, changes: StreamsChanges, before: Mapping[str, StreamsMember]
) -> StreamsRecords:
    """The records of a change; members are compared with those before it."""
    found: StreamsRecords = {}
    if changes.topology is not None:
        found[group, StreamsRecord.TOPOLOGY, ""] = pack_topology(changes.topology)
    for member_id, target in changes.targets.items():
        key = (group, StreamsRecord.TARGET, member_id)
        found[key] = None if not target else _encode(tuple(map(_aged, target)))
    for member_id, member in changes.members.items():
        about = (group, StreamsRecord.MEMBER, member_id)
        has = (group, StreamsRecord.CURRENT, member_id)
        if member is None:
            found[about] = found[has] = None
            continue
        known = before.get(member_id)
        if known is None or known.process is not member.process:
            found[about] = _encode(_about(member.process))
        if known is None or _has_moved(known, member):
            found[has] = _encode(_has(member))
    if changes.head is not None:
        # Last: a change too large for one entry has its epoch once all of it is there.
        found[group, StreamsRecord.HEAD, ""] = _encode(changes.head)
    return found


def rest(group: str, memory: StreamsMemory) -> StreamsChanges:
    """What remains of a group without members, as a change of an empty group."""
    head = memory.find((group, StreamsRecord.HEAD, ""))
    topology = memory.find((group, StreamsRecord.TOPOLOGY, ""))
    return StreamsChanges(
        head=None if head is None else _read_head(head),
        topology=None if topology is None else unpack_topology(topology),
    )


def removal_of(groups: Iterable[str], memory: StreamsMemory) -> StreamsRecords:
    """The change that removes what remains of groups without members."""
    keys = [(group, kind, "") for group in groups for kind in (1, 2)]
    return {key: None for key in keys if memory.find(key) is not None}


def load(items: Iterable[tuple[StreamsKey, bytes]]) -> dict[str, StreamsChanges]:
    """Every group as one change of an empty group."""
    about: dict[tuple[str, str], Process] = {}
    has: dict[tuple[str, str], _Has] = {}
    groups: dict[str, StreamsChanges] = {}
    for (group, kind, member_id), data in items:
        changes = groups.setdefault(group, StreamsChanges())
        if kind == StreamsRecord.HEAD:
            changes.head = _read_head(data)
        elif kind == StreamsRecord.TOPOLOGY:
            changes.topology = unpack_topology(data)
        elif kind == StreamsRecord.MEMBER:
            about[group, member_id] = _process(_read_about(data))
        elif kind == StreamsRecord.TARGET:
            changes.targets[member_id] = _held(_read_target(data)).without_epochs()
        else:
            has[group, member_id] = _read_has(data)
    for (group, member_id), process in about.items():
        member = StreamsMember(id=member_id, process=process)
        groups[group].members[member_id] = _restored(member, has.get((group, member_id)))
    return groups


def _restored(member: StreamsMember, has: _Has | None) -> StreamsMember:
    if has is None:
        return member
    return StreamsMember(
        id=member.id,
        process=member.process,
        epoch=has.epoch,
        previous_epoch=has.previous_epoch,
        state=has.state,
        assigned=_held(has.assigned),
        revoking=_held(has.revoking),
    )


def _has_moved(known: StreamsMember, member: StreamsMember) -> bool:
    return (
        known.epoch != member.epoch
        or known.previous_epoch != member.previous_epoch
        or known.state != member.state
        or known.assigned != member.assigned
        or known.revoking != member.revoking
    )


def _about(process: Process) -> _About:
    return _About(
        process.id,
        process.rack_id,
        process.client_id,
        process.client_host,
        process.rebalance_ms,
        process.topology_epoch,
        process.endpoint,
        process.tags,
    )


def _process(about: _About) -> Process:
    return Process(
        id=about.process_id,
        rack_id=about.rack_id,
        client_id=about.client_id,
        client_host=about.client_host,
        rebalance_ms=about.rebalance_ms,
        topology_epoch=about.topology_epoch,
        endpoint=about.endpoint,
        tags=about.tags,
    )


def _has(member: StreamsMember) -> _Has:
    active, standby, warmup = map(_runs, member.assigned)
    leaves_active, leaves_standby, leaves_warmup = map(_runs, member.revoking)
    return _Has(
        member.epoch,
        member.previous_epoch,
        member.state,
        (active, standby, warmup),
        (leaves_active, leaves_standby, leaves_warmup),
    )


def _held(kinds: _Kinds) -> HeldTasks:
    return HeldTasks(*(_ids(kind) for kind in kinds))


def _aged(ids: Mapping[str, frozenset[int]]) -> _Kind:
    return _runs({subtopology: dict.fromkeys(parts, 0) for subtopology, parts in ids.items()})


def _runs(held: HeldIds) -> _Kind:
    return {subtopology: list(_runs_of(parts)) for subtopology, parts in held.items()}


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


def _ids(kind: _Kind) -> HeldIds:
    return {
        subtopology: {first + at: epoch for first, count, epoch in runs for at in range(count)}
        for subtopology, runs in kind.items()
    }
