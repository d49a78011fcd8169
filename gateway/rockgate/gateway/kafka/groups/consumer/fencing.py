"""Whose offsets a consumer group takes and tells (KIP-1251).

A member may commit in its epoch. It may also commit in an earlier one, if it was given all of the
partitions in that epoch or before: no one else has read them since, and the request was on its way
when the epoch grew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rockgate.gateway.kafka.groups.classic.events import Commit
from rockgate.gateway.kafka.groups.consumer.group import ConsumerGroup
from rockgate.gateway.kafka.groups.consumer.member import Member, TopicId
from rockgate.protocol.kafka.errors import ErrorCode

MEMBER_EPOCHS_SINCE = 9
"""The version of OffsetCommit in which a generation may be an epoch."""


def check_commit(
    group: ConsumerGroup,
    commit: Commit,
    partitions: Callable[[], Iterable[tuple[TopicId, int]]] | None,
) -> ErrorCode:
    """Return whether a client may commit offsets; without partitions in its epoch only."""
    member = group.members.get(commit.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not member.is_classic and commit.version < MEMBER_EPOCHS_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    if commit.generation == member.epoch:
        return ErrorCode.NONE
    if 0 <= commit.generation < member.epoch and partitions is not None:
        for topic_id, partition in partitions():
            since = member.owned_epoch(topic_id, partition)
            if since is None or since > commit.generation:
                return _stale(member)
        return ErrorCode.NONE
    return _stale(member)


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """Return whether a client may fetch offsets; one that does not say who it is may."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.epoch else _stale(member)


def _stale(member: Member) -> ErrorCode:
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
