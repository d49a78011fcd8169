"""Whose offsets a streams group takes and answers.

A member may commit in its epoch, or in an earlier one in which it already had the tasks that read
all of the partitions: no other member has read them since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from rockgate.gateway.kafka.groups.classic.events import Commit
from rockgate.gateway.kafka.groups.consumer.fencing import MEMBER_EPOCHS_SINCE
from rockgate.gateway.kafka.groups.consumer.member import TopicId
from rockgate.gateway.kafka.groups.streams.group import StreamsGroup
from rockgate.protocol.kafka.errors import ErrorCode

_STALE = ErrorCode.STALE_MEMBER_EPOCH
NameOf: TypeAlias = Callable[[TopicId], str | None]


def check_task_commit(
    group: StreamsGroup,
    commit: Commit,
    partitions: Callable[[], Iterable[tuple[TopicId, int]]] | None,
    name_of: NameOf,
) -> ErrorCode:
    """Return whether a client may commit offsets; without partitions in its epoch only."""
    member = group.members.get(commit.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if commit.version < MEMBER_EPOCHS_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    if commit.generation == member.epoch:
        return ErrorCode.NONE
    if not 0 <= commit.generation < member.epoch or partitions is None or group.topology is None:
        return _STALE
    subtopologies, names = group.topology.subtopology_of(), dict[TopicId, str | None]()
    for topic_id, partition in partitions():
        if topic_id not in names:
            names[topic_id] = name_of(topic_id)
        subtopology = subtopologies.get(names[topic_id] or "")
        since = None if subtopology is None else member.owned_epoch(subtopology, partition)
        if since is None or since > commit.generation:
            return _STALE
    return ErrorCode.NONE


def check_task_fetch(group: StreamsGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """Return whether a client may fetch offsets; one that does not say who it is may."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.epoch else _STALE
