"""What an OffsetFetch asks of groups: each group once, and of it each topic and partition once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

Asked: TypeAlias = OffsetFetchRequestTopic | OffsetFetchRequestTopics
AskedTopics: TypeAlias = Sequence[Asked] | None
CheckMember: TypeAlias = Callable[[str, str | None, int], ErrorCode]
"""Takes a group, a member id and its epoch."""
MEMBERS_SINCE: Final = 9
"""The version of OffsetFetch in which a client says which member it is."""
Ask: TypeAlias = tuple[str, AskedTopics]
"""A group, and the topics that were asked for; None for all of them."""


def merged(asks: Iterable[Ask]) -> Generator[None, None, list[Ask]]:
    """Each group once, and of each group each topic and partition once; in steps."""
    by_group: dict[str, dict[tuple[str, bytes], Asked] | None] = {}
    repeated: dict[int, Asked] = {}
    for group, topics in asks:
        found = by_group.setdefault(group, {})
        if topics is None or found is None:
            by_group[group] = None
            yield
            continue
        for topic in topics:
            first = found.setdefault((topic.name, getattr(topic, "topic_id", b"")), topic)
            if first is not topic:
                first.partition_indexes += topic.partition_indexes
            if len(first.partition_indexes) > 1:
                repeated[id(first)] = first
            yield
        yield
    for topic in repeated.values():
        topic.partition_indexes = list(dict.fromkeys(topic.partition_indexes))
        yield
    merged: list[Ask] = []
    for group, found in by_group.items():
        merged.append((group, None if found is None else list(found.values())))
        yield
    return merged


def refused_groups(
    request: OffsetFetchRequest, version: int, check: CheckMember | None
) -> dict[str, ErrorCode]:
    """The groups that do not take the client for a member, and why."""
    if version < MEMBERS_SINCE or check is None:
        return {}
    codes = {
        each.group_id: check(each.group_id, each.member_id, each.member_epoch)
        for each in request.groups
    }
    return {group: code for group, code in codes.items() if code}


def names_of(asks: Iterable[Ask]) -> Iterator[str | None]:
    """The requested topics; those of a null are known by their ids."""
    for _, topics in asks:
        if topics is None:
            yield None
        else:
            yield from (topic.name for topic in topics)
