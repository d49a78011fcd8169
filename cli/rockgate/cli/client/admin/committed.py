"""A group's committed offsets: read, write, delete."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from rockgate.cli.client.kafka.broker import Broker
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Refused
from rockgate.cli.client.kafka.view import Place, by_topic
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
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from rockgate.protocol.kafka.schema import Encoded

BY_NAME: Final = 9
"""The last version of OffsetFetch and OffsetCommit in which a topic goes by its name."""
NO_OFFSET: Final = -1


class Membership(NamedTuple):
    """The committer: a member of a generation, or an administrator of an empty group."""

    member_id: str = ""
    generation: int = -1


async def fetch(
    cluster: Cluster, group_id: str, places: Collection[Place] | None = None
) -> dict[Place, int]:
    """The group's offsets of these partitions, or of all; those without one are left out."""

    async def ask(broker: Broker) -> dict[Place, int]:
        topics = None if places is None else by_topic(list(places))
        request = OffsetFetchRequest(
            group_id=group_id,
            topics=None
            if topics is None
            else [OffsetFetchRequestTopic(name=n, partition_indexes=i) for n, i in topics.items()],
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group_id,
                    topics=None
                    if topics is None
                    else [
                        OffsetFetchRequestTopics(name=n, partition_indexes=i)
                        for n, i in topics.items()
                    ],
                )
            ],
        )
        answer = await broker.ask(request, OffsetFetchResponse, version_max=BY_NAME)
        code = answer.groups[0].error_code if answer.groups else answer.error_code
        if code:
            raise Refused(code)
        found: dict[Place, int] = {}
        for topic in answer.groups[0].topics if answer.groups else answer.topics:
            for part in topic.partitions:
                assert not isinstance(part, Encoded), "only who writes has encoded parts"
                if part.error_code:
                    place = f"group {group_id} topic {topic.name} partition {part.partition_index}"
                    raise Refused(part.error_code, what=place)
                if part.committed_offset != NO_OFFSET:
                    found[topic.name, part.partition_index] = part.committed_offset
        return found

    return await cluster.ask_coordinator(group_id, ask)


async def commit(
    cluster: Cluster,
    group_id: str,
    offsets: Mapping[Place, int],
    membership: Membership | None = None,
) -> dict[Place, Refused | None]:
    """Commit offsets; returns the outcome of each."""
    member = membership or Membership()

    async def ask(broker: Broker) -> dict[Place, Refused | None]:
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offsets[name, index],
                            committed_metadata="",
                        )
                        for index in indexes
                    ],
                )
                for name, indexes in by_topic(offsets).items()
            ],
        )
        answer = await broker.ask(request, OffsetCommitResponse, version_max=BY_NAME)
        return {
            (topic.name, part.partition_index): (
                Refused(part.error_code, what=f"group {group_id}") if part.error_code else None
            )
            for topic in answer.topics
            for part in topic.partitions
        }

    return await cluster.ask_coordinator(group_id, ask)


async def forget(
    cluster: Cluster, group_id: str, places: Collection[Place]
) -> dict[Place, Refused | None]:
    """Delete the group's offsets of these partitions; returns the outcome of each."""

    async def ask(broker: Broker) -> dict[Place, Refused | None]:
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[OffsetDeleteRequestPartition(partition_index=i) for i in indexes],
                )
                for name, indexes in by_topic(list(places)).items()
            ],
        )
        answer = await broker.ask(request, OffsetDeleteResponse)
        if answer.error_code:
            raise Refused(answer.error_code)
        return {
            (topic.name, part.partition_index): (
                Refused(
                    part.error_code, what=f"topic {topic.name} partition {part.partition_index}"
                )
                if part.error_code
                else None
            )
            for topic in answer.topics
            for part in topic.partitions
        }

    return await cluster.ask_coordinator(group_id, ask)
