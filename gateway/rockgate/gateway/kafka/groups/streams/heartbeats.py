"""Heartbeats of streams groups: what is asked, and whether it may be.

A refusal is a RequestError with Kafka's own message, which clients log and tools search for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from rockgate.gateway.kafka.groups.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
)
from rockgate.gateway.kafka.groups.streams.configured import GroupStatus, check_topology
from rockgate.gateway.kafka.groups.streams.endpoints import PartitionsAt
from rockgate.gateway.kafka.groups.streams.member import (
    HeldTasks,
    Process,
    StreamsMember,
    StreamsTasks,
)
from rockgate.gateway.kafka.groups.streams.topology import InternalTopic, StreamsTopology
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode

_INVALID: Final = ErrorCode.INVALID_REQUEST


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsBeat:
    """A heartbeat. None means that something is as it was."""

    member_id: str
    epoch: int
    endpoint_epoch: int = 0
    """The last information about endpoints that the client has."""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_ms: int = -1
    topology: StreamsTopology | None = None
    owned: tuple[StreamsTasks, bool] | None = None
    """The tasks that the client owns, and whether it named all three kinds; None for no kind."""
    process_id: str | None = None
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    has_offsets: bool = False
    """Whether it says how far it has read changelogs, which is not supported."""
    shuts_down: bool = False
    """Whether the whole application should stop."""
    client_id: str = ""
    client_host: str = ""

    @property
    def is_leaving(self) -> bool:
        """Whether it is the member's last one."""
        return self.epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH)

    @property
    def reported(self) -> StreamsTasks | None:
        """All tasks that the client owns; None if it does not say."""
        return None if self.owned is None else self.owned[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsOutcome:
    """The answer to a heartbeat."""

    member_id: str
    epoch: int
    interval_ms: int = 0
    statuses: tuple[GroupStatus, ...] = ()
    assigned: HeldTasks | None = None
    """The tasks of the member, if they have changed."""
    endpoint_epoch: int = 0
    endpoints: tuple[PartitionsAt, ...] | None = None
    """The partitions at each end point, if that has changed."""
    missing: tuple[InternalTopic, ...] = ()
    """Topics that have to be created for the group."""


def check(beat: StreamsBeat) -> None:
    """Refuse a heartbeat that no group could take, as Kafka does and in its order."""
    if beat.instance_id is not None:
        raise RequestError(_INVALID, "Static membership is not yet supported.")
    if beat.has_offsets:
        raise RequestError(_INVALID, "TaskOffsets are not supported yet.")
    if beat.reported is not None and beat.reported.warmup:
        raise RequestError(_INVALID, "WarmupTasks are not supported yet.")
    if not beat.member_id:
        raise RequestError(_INVALID, "MemberId can't be empty.")
    if beat.rack_id == "":
        raise RequestError(_INVALID, "RackId can't be empty.")
    if beat.epoch == JOIN_EPOCH:
        _check_joining(beat)
    elif beat.epoch == LEAVE_STATIC_EPOCH:
        raise RequestError(_INVALID, "InstanceId can't be null.")
    elif beat.epoch < LEAVE_STATIC_EPOCH:
        raise RequestError(
            _INVALID, f"MemberEpoch is {beat.epoch}, but must be greater than or equal to -2."
        )
    if beat.owned is not None and not beat.owned[1]:
        raise RequestError(_INVALID, "If one task-type is non-null, all must be non-null.")
    if beat.epoch != JOIN_EPOCH and beat.topology is not None:
        raise RequestError(_INVALID, "Topology can only be provided when (re-)joining.")


def _check_joining(beat: StreamsBeat) -> None:
    if beat.rebalance_ms == -1:
        raise RequestError(_INVALID, "RebalanceTimeoutMs must be provided in first request.")
    owned = beat.reported
    if owned is not None:
        for kind, tasks in (("Active", owned.active), ("Standby", owned.standby)):
            if tasks:
                raise RequestError(_INVALID, f"{kind}Tasks must be empty when (re-)joining.")
    if beat.topology is None:
        raise RequestError(_INVALID, "Topology must be non-null when (re-)joining.")
    check_topology(beat.topology)


def said_by(process: Process, beat: StreamsBeat) -> Process:
    """A process with what a heartbeat says; the same one if that is nothing new."""
    new = replace(
        process,
        id=process.id if beat.process_id is None else beat.process_id,
        rack_id=process.rack_id if beat.rack_id is None else beat.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        rebalance_ms=process.rebalance_ms if beat.rebalance_ms == -1 else beat.rebalance_ms,
        topology_epoch=process.topology_epoch if beat.topology is None else beat.topology.epoch,
        endpoint=process.endpoint if beat.endpoint is None else beat.endpoint,
        tags=process.tags if beat.tags is None else beat.tags,
    )
    return process if new == process else new


def check_epoch(member: StreamsMember, beat: StreamsBeat) -> None:
    """Refuse a member that is in another epoch."""
    if beat.epoch == JOIN_EPOCH:
        return
    if beat.epoch > member.epoch:
        raise _fenced("greater", beat.epoch, member)
    if beat.epoch < member.epoch:
        # The answer with the next epoch may have been lost on its way.
        owned = beat.reported
        is_late = beat.epoch == member.previous_epoch
        if not is_late or owned is None or not member.assigned.has_all(owned):
            raise _fenced("smaller", beat.epoch, member)


def check_tasks(counts: Mapping[str, int], owned: StreamsTasks | None) -> None:
    """Refuse tasks that the topology does not have."""
    for kind in owned or ():
        for subtopology, parts in kind.items():
            count = counts.get(subtopology)
            if count is None:
                raise RequestError(
                    _INVALID, f"Subtopology {subtopology} does not exist in the topology."
                )
            for partition in parts:
                if not 0 <= partition < count:
                    raise RequestError(
                        _INVALID,
                        f"Task {partition} for subtopology {subtopology} is invalid. Number of "
                        f"tasks for this subtopology: {count}",
                    )


def not_a_member(group: str, member_id: str) -> RequestError:
    """The refusal of a client that is no member."""
    return RequestError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group}."
    )


def _fenced(how: str, epoch: int, member: StreamsMember) -> RequestError:
    return RequestError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {how} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.epoch}). The member must abandon all its partitions and "
        "rejoin.",
    )
