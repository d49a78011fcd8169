"""A member of a share group, its heartbeats, and their answers.

Members are values: an event replaces a member, after the change was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import msgspec

from rockgate.gateway.kafka.groups.consumer.member import Partitions

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
TOPIC: Final = b"rmq_sys_rockgate_share_groups"
NAME: Final = "share-groups"
Key: TypeAlias = tuple[str, str]
"""Group, member; the empty member is the group itself."""


class ShareMemory(Protocol):
    """The records of all share groups with members."""

    def items(self) -> Iterable[tuple[Key, bytes]]:
        """All of them; valid until the next change."""
        ...

    def put(self, records: Mapping[Key, bytes | None], /) -> None:
        """Write and remove records; StoreError if that fails, and then nothing has changed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareBeat:
    """A heartbeat. None means that something is as it was."""

    member_id: str
    epoch: int
    rack_id: str | None = None
    names: frozenset[str] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareBeatAnswer:
    """The answer to a heartbeat."""

    member_id: str
    epoch: int
    interval_ms: int = 0
    assigned: Partitions | None = None
    """What the member reads, if that is news to it."""


class Said(msgspec.Struct, array_like=True, frozen=True):
    """What a member says about itself. Part of the format on disk."""

    rack_id: str | None
    client_id: str
    client_host: str
    names: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMember:
    """One member."""

    id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] = frozenset()
    epoch: int | None = JOIN_EPOCH
    """None after a restart, until the member says in which epoch it is."""
    previous_epoch: int = JOIN_EPOCH
    assigned: Partitions = field(default_factory=dict)

    def said(self) -> bytes:
        """What lasts of it."""
        return _encode(Said(self.rack_id, self.client_id, self.client_host, sorted(self.names)))


_encode = msgspec.msgpack.Encoder().encode
_read_said = msgspec.msgpack.Decoder(Said).decode
_read_epoch = msgspec.msgpack.Decoder(int).decode


def pack_epoch(epoch: int) -> bytes:
    """The record of a group's epoch."""
    return _encode(epoch)


def load(items: Iterable[tuple[Key, bytes]]) -> dict[str, tuple[int, list[ShareMember]]]:
    """Every group with its epoch and members, as they were written."""
    epochs: dict[str, int] = {}
    members: dict[str, list[ShareMember]] = {}
    for (group, member_id), data in items:
        if not member_id:
            epochs[group] = _read_epoch(data)
            continue
        said = _read_said(data)
        members.setdefault(group, []).append(
            ShareMember(
                id=member_id,
                rack_id=said.rack_id,
                client_id=said.client_id,
                client_host=said.client_host,
                names=frozenset(said.names),
                epoch=None,
            )
        )
    return {group: (epochs.get(group, 1), some) for group, some in members.items()}
