"""The saved state of a group, so that its members do not notice a restart.

A group is saved when its leader has sent the assignment, when a static member has returned and when
the last member has left; never while members join. The last stable generation is saved, or an empty
one.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rockgate.gateway.kafka.groups.classic.members import Member

CLASSIC: Final = "classic"
SAVED_SIZE_MAX: Final = 1_000_000
"""A larger group is saved without its members: after a restart they rejoin."""


class SavedMember(msgspec.Struct, array_like=True, frozen=True):
    """One member as saved."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_ms: int
    rebalance_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes

    @classmethod
    def of(cls, member: Member) -> SavedMember:
        """The record of a member."""
        return cls(
            member.id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.session_ms,
            member.rebalance_ms,
            member.protocols,
            member.assignment,
        )

    def member(self) -> Member:
        """The member of a record."""
        member = Member(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_ms=self.session_ms,
            rebalance_ms=self.rebalance_ms,
            protocols=self.protocols,
        )
        member.assignment = self.assignment
        member.is_new = False
        return member


class SavedGroup(msgspec.Struct, array_like=True, frozen=True):
    """One group as saved."""

    kind: str
    generation: int
    protocol_type: str
    protocol_name: str | None = None
    leader: str | None = None
    members: tuple[SavedMember, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SavedGroup).decode


def pack(saved: SavedGroup) -> bytes:
    """A group's bytes; without its members if those are too large."""
    data = _encode(saved)
    if len(data) <= SAVED_SIZE_MAX:
        return data
    return _encode(SavedGroup(saved.kind, saved.generation, saved.protocol_type))


def unpack(data: bytes | memoryview) -> SavedGroup:
    """The group that was packed; msgspec.MsgspecError if it was none."""
    return _decode(data)
