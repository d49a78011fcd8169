"""Events of a group, its answers, and the actions that it requests: values without logic.

A waiter identifies a caller: the state machine returns it with the response and does not use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from rockgate.gateway.kafka.groups.classic.join_window import NEVER_MS
from rockgate.protocol.kafka.errors import ErrorCode

Waiter: TypeAlias = object
Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""Assignors that a member supports, in order of preference, each with the member's subscription."""


class GroupState(Enum):
    """The state of a group; the value is what Kafka's clients call it."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    ASSIGNING = "Assigning"
    """Of a consumer group: members, subscriptions or topics changed since the last target."""
    RECONCILING = "Reconciling"
    """Of a consumer group: members are on the way to their target."""
    NOT_READY = "NotReady"
    """Of a streams group: topics that it needs are not there, or not with the right partitions."""


# Events


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A client joins, or rejoins for the next generation."""

    waiter: Waiter
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_ms: int
    rebalance_ms: int
    protocol_type: str
    protocols: Protocols
    needs_id: bool
    """Whether a client without a member id must rejoin with an assigned one (v4)."""
    can_skip: bool
    """Whether a static leader that rejoins may get its previous assignment (v9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """A member requests its assignment; the leader sends those of all members."""

    waiter: Waiter
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberHeartbeat:
    """A heartbeat of a member."""

    waiter: Waiter
    generation: int
    member_id: str
    instance_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A client requests to commit offsets."""

    waiter: Waiter
    generation: int
    member_id: str
    instance_id: str | None
    version: int = 9
    """Of OffsetCommit; from 9 on a generation may be the epoch of a member."""


class Leaver(NamedTuple):
    """A member that leaves; a static one may be named by its instance id alone."""

    member_id: str
    instance_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Members leave."""

    waiter: Waiter
    leavers: Sequence[Leaver]


@dataclass(frozen=True, slots=True)
class Wake:
    """The time set by `Arm` has come."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The server stops, or the group is another's from now on: every waiter is answered."""

    code: ErrorCode = ErrorCode.NOT_COORDINATOR


@dataclass(frozen=True, slots=True)
class Unsaved:
    """The assignments of a generation could not be saved, so no member gets them."""

    former: Mapping[str, bytes]
    """What each member had before them."""


Event: TypeAlias = Join | Sync | MemberHeartbeat | Commit | Leave | Wake | Finish | Unsaved


# Responses


class Listed(NamedTuple):
    """A member as the leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(NamedTuple):
    """The response to Join."""

    code: ErrorCode
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    is_skipping: bool = False
    members: Sequence[Listed] = ()


class Synced(NamedTuple):
    """The response to Sync."""

    code: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


Left: TypeAlias = list[ErrorCode]
"""The response to Leave, in the order of the leavers."""
Answer: TypeAlias = Joined | Synced | ErrorCode | Left
"""Heartbeat and Commit are answered with a code."""


# Effects


class Reply(NamedTuple):
    """Respond to a waiter."""

    waiter: Waiter
    answer: Answer


class Arm(NamedTuple):
    """Send Wake at this time, instead of the one set before."""

    at_ms: int


class Save(NamedTuple):
    """Save the group, before any reply of the same event is sent; `Unsaved` if that fails."""

    former: Mapping[str, bytes] | None = None
    """If there are new assignments, those before."""


Effect: TypeAlias = Reply | Arm | Save


class Outbox:
    """The effects of one event, collected while it is handled."""

    __slots__ = ("_armed_ms", "effects")

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self._armed_ms = NEVER_MS

    def begin(self, *, is_woken: bool) -> list[Effect]:
        """Drop the effects of the previous event; a Wake has used up its alarm."""
        self.effects = []
        if is_woken:
            self._armed_ms = NEVER_MS
        return self.effects

    def reply(self, waiter: Waiter, answer: Answer) -> None:
        """Respond to a waiter."""
        self.effects.append(Reply(waiter, answer))

    def save(self, former: Mapping[str, bytes] | None = None) -> None:
        """Save the group, perhaps with new assignments."""
        self.effects.append(Save(former))

    def arm(self, at_ms: int) -> None:
        """Wake the group at this time, unless an earlier one is set."""
        if at_ms < self._armed_ms:
            self._armed_ms = at_ms
            self.effects.append(Arm(at_ms))
