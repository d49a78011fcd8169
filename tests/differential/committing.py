"""Requests that several players use: creating topics; committing, fetching, removing offsets."""

from __future__ import annotations

from tests.differential.player import Answer, KafkaPlayer, code

from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rockgate.protocol.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from rockgate.protocol.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

TIMEOUT_MS = 60_000


def create_topic(player: KafkaPlayer, name: str, partitions: int) -> None:
    """Create a topic and wait for it."""
    new = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
    )
    request = CreateTopicsRequest(topics=[new], timeout_ms=TIMEOUT_MS, validate_only=False)
    player.wire.ask(request, CreateTopicsResponse, 5)
    player.wait_for_topic(name, partitions)


def commit(
    player: KafkaPlayer,
    group: str,
    topic: str,
    offset: int,
    *,
    member: str = "",
    generation: int = -1,
) -> Answer:
    """Commit an offset for partition 0."""
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[part])],
    )

    def ask() -> tuple[int, Answer]:
        answer = player.wire.ask(request, OffsetCommitResponse, 8)
        number = answer.topics[0].partitions[0].error_code
        return number, code(number)

    return player.settled(ask)


def committed(player: KafkaPlayer, group: str, topic: str, *, is_stable: bool) -> Answer:
    """The committed offset of partition 0."""
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])],
        require_stable=is_stable,
    )

    def ask() -> tuple[int, Answer]:
        (answer,) = player.wire.ask(request, OffsetFetchResponse, 8).groups
        if answer.error_code:
            return answer.error_code, code(answer.error_code)
        part = answer.topics[0].partitions[0]
        return 0, [code(part.error_code), part.committed_offset]  # type: ignore[union-attr]

    return player.settled(ask)


def forget(player: KafkaPlayer, group: str, topic: str) -> Answer:
    """Remove the committed offset of partition 0."""
    parts = [OffsetDeleteRequestPartition(partition_index=0)]
    request = OffsetDeleteRequest(
        group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=parts)]
    )

    def ask() -> tuple[int, Answer]:
        answer = player.wire.ask(request, OffsetDeleteResponse, 0)
        if answer.error_code:
            return answer.error_code, code(answer.error_code)
        return 0, code(answer.topics[0].partitions[0].error_code)

    return player.settled(ask)
