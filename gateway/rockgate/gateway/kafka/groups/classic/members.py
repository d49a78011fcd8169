"""The members of one group: who they are, which protocols they share, who leads.

States and time are left to the group's state machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rockgate.gateway.kafka.groups.classic.events import Join, Protocols, Waiter
from rockgate.protocol.kafka.errors import ErrorCode

REBALANCE_MS_MIN: Final = 1_000
"""Minimum time to rejoin, or a group would rebalance continuously."""


class Member:
    """One member."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "deadline_ms",
        "id",
        "instance_id",
        "is_new",
        "join",
        "protocols",
        "rebalance_ms",
        "session_ms",
        "sync",
    )

    def __init__(
        self,
        *,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_ms: int,
        rebalance_ms: int,
        protocols: Protocols,
    ) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.protocols = protocols
        self.assignment = b""
        self.join: Waiter | None = None
        """The waiter of this member's JoinGroup."""
        self.sync: Waiter | None = None
        """The waiter of this member's SyncGroup."""
        self.is_new = True
        """Whether it has not been in a generation yet."""
        self.deadline_ms = 0
        """When its session expires; does not count while it waits for others."""

    @classmethod
    def joining(cls, member_id: str, join: Join) -> Member:
        """A member as it describes itself."""
        return cls(
            member_id=member_id,
            instance_id=join.instance_id,
            client_id=join.client_id,
            client_host=join.client_host,
            session_ms=join.session_ms,
            rebalance_ms=join.rebalance_ms,
            protocols=join.protocols,
        )

    @property
    def is_watched(self) -> bool:
        """Whether its session can expire: one that waits for others cannot send heartbeats."""
        return self.is_new or (self.join is None and self.sync is None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Its subscription for a protocol."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""


class Members:
    """All members of a group, in order of joining."""

    def __init__(self) -> None:
        self._by_id: dict[str, Member] = {}
        self._static: dict[str, str] = {}
        self._support: dict[str, int] = {}
        self.leader: str | None = None
        self.joining_count = 0
        """How many wait for the next generation."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._by_id.values())

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._by_id

    def find(self, member_id: str) -> Member | None:
        """A member by id, or None."""
        return self._by_id.get(member_id)

    def get(self, member_id: str) -> Member:
        """Return a member that exists."""
        return self._by_id[member_id]

    def static_id(self, instance_id: str) -> str | None:
        """The current member id of an instance id."""
        return self._static.get(instance_id)

    def add(self, member: Member) -> None:
        """Add a member; the first one becomes the leader."""
        self._by_id[member.id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member.id
        self._count(member.protocols, 1)
        if self.leader is None:
            self.leader = member.id

    def remove(self, member: Member) -> None:
        """Remove a member without a waiter; if it was the leader, the next one becomes it."""
        assert member.join is None and member.sync is None, "waiters are resolved first"
        del self._by_id[member.id]
        if member.instance_id is not None and self._static.get(member.instance_id) == member.id:
            del self._static[member.instance_id]
        self._count(member.protocols, -1)
        if self.leader == member.id:
            self.leader = next(iter(self._by_id), None)

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member that has returned its new id."""
        del self._by_id[member.id]
        if self.leader == member.id:
            self.leader = member_id
        member.id = member_id
        self._by_id[member_id] = member
        assert member.instance_id is not None, "only static members get another id"
        self._static[member.instance_id] = member_id

    def update(self, member: Member, join: Join) -> None:
        """Update a member from its new JoinGroup."""
        self._count(member.protocols, -1)
        member.protocols = join.protocols
        self._count(member.protocols, 1)
        member.session_ms = join.session_ms
        member.rebalance_ms = join.rebalance_ms
        member.client_id = join.client_id
        member.client_host = join.client_host

    def _count(self, protocols: Protocols, by: int) -> None:
        for name in dict.fromkeys(name for name, _ in protocols):
            self._support[name] = self._support.get(name, 0) + by
            if not self._support[name]:
                del self._support[name]

    def check(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether this is a member and, if static, the current one of its instance id."""
        if instance_id is None:
            return ErrorCode.NONE if member_id in self._by_id else ErrorCode.UNKNOWN_MEMBER_ID
        known = self._static.get(instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if known == member_id else ErrorCode.FENCED_INSTANCE_ID

    # Protocols

    def support(self, join: Join, protocol_type: str) -> bool:
        """Whether a joining client has the group's protocol type and shares a protocol with all."""
        count = len(self._by_id)
        if not count:
            return bool(join.protocol_type and join.protocols)
        return join.protocol_type == protocol_type and any(
            self._support.get(name) == count for name, _ in join.protocols
        )

    def vote(self) -> str:
        """The protocol of the next generation.

        Of those that all members support each member votes for its preferred one. On a tie the
        leader's order decides.
        """
        count = len(self._by_id)
        votes = {name: 0 for name, known in self._support.items() if known == count}
        for member in self._by_id.values():
            for name, _ in member.protocols:
                if name in votes:
                    votes[name] += 1
                    break
        assert self.leader is not None and votes, "members share a protocol, or were not let in"
        order = [name for name, _ in self._by_id[self.leader].protocols if name in votes]
        return max(order, key=lambda name: votes[name])

    def assign(self, assignments: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Set each member's assignment, empty for those omitted; returns those before."""
        former = {member.id: member.assignment for member in self._by_id.values()}
        for member in self._by_id.values():
            member.assignment = assignments.get(member.id, b"")
        return former

    # Joining

    def has_room(self, join: Join, is_preparing: bool, count_max: int) -> bool:
        """Whether another member may join;

        during a rebalance, the first to rejoin have the places.
        """
        member_id = join.member_id
        if not member_id and join.instance_id is not None:
            member_id = self._static.get(join.instance_id, "")
        member = self._by_id.get(member_id)
        if is_preparing:
            is_in = member is not None and member.join is not None
            return is_in or self.joining_count < count_max
        return member is not None or len(self._by_id) < count_max

    def begin_join(self, member: Member, waiter: Waiter) -> Waiter | None:
        """Set a member's waiter for the next generation; returns the previous one."""
        before, member.join = member.join, waiter
        self.joining_count += before is None
        return before

    def end_join(self, member: Member) -> Waiter | None:
        """Remove the waiter of a member's join, and return it."""
        before, member.join = member.join, None
        self.joining_count -= before is not None
        return before

    @property
    def rebalance_ms(self) -> int:
        """The largest rebalance timeout of the members."""
        slowest = max((member.rebalance_ms for member in self._by_id.values()), default=0)
        return max(slowest, REBALANCE_MS_MIN) if self._by_id else 0

    def elect(self) -> bool:
        """Choose a leader among those that have rejoined; False if there is none."""
        if self.leader is not None and self._by_id[self.leader].join is not None:
            return True
        for member in self._by_id.values():
            if member.join is not None:
                self.leader = member.id
                return True
        return False
