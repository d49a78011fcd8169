"""Topics on the wire: create, add partitions, delete, and their size on disk."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rockgate.cli.client.kafka.broker import Broker
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Refused
from rockgate.cli.client.kafka.view import Place, by_topic, decoded
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from rockgate.protocol.kafka.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)


class Created(NamedTuple):
    """A created topic; -1 where an older server does not say."""

    partition_count: int
    replication_factor: int


class LogDir(NamedTuple):
    """One log directory of a broker; -1 where the server does not say."""

    node_id: int
    path: str
    error_code: int
    total_bytes: int
    usable_bytes: int
    sizes: Mapping[Place, int]


async def create(
    cluster: Cluster,
    names: Sequence[str],
    *,
    partition_count: int,
    replication_factor: int,
    configs: Mapping[str, str],
    is_dry_run: bool = False,
) -> dict[str, Created | Refused]:
    """Create topics with the same settings; -1 selects the server's default."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partition_count,
                replication_factor=replication_factor,
                configs=[CreatableTopicConfig(name=k, value=v) for k, v in configs.items()],
            )
            for name in names
        ],
        timeout_ms=_timeout_ms(cluster),
        validate_only=is_dry_run,
    )
    answer = await (await cluster.controller()).ask(request, CreateTopicsResponse)
    return {
        each.name: (
            Refused(each.error_code, each.error_message, what=f"topic {each.name}")
            if each.error_code
            else Created(each.num_partitions, each.replication_factor)
        )
        for each in decoded(answer.topics)
    }


async def grow(
    cluster: Cluster, name: str, partition_count: int, *, is_dry_run: bool = False
) -> Refused | None:
    """Give a topic more partitions, so that it has `partition_count` in all."""
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=partition_count, assignments=None)],
        timeout_ms=_timeout_ms(cluster),
        validate_only=is_dry_run,
    )
    answer = await (await cluster.controller()).ask(request, CreatePartitionsResponse)
    for each in decoded(answer.results):
        if each.error_code:
            return Refused(each.error_code, each.error_message, what=f"topic {each.name}")
    return None


async def delete(cluster: Cluster, names: Sequence[str]) -> dict[str, Refused | None]:
    """Delete topics; a name that is gone has no error."""
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in names],
        topic_names=list(names),
        timeout_ms=_timeout_ms(cluster),
    )
    answer = await (await cluster.controller()).ask(request, DeleteTopicsResponse)
    return {
        each.name or "": (
            Refused(each.error_code, each.error_message, what=f"topic {each.name}")
            if each.error_code
            else None
        )
        for each in decoded(answer.responses)
    }


async def log_dirs(cluster: Cluster, places: Sequence[Place] | None = None) -> list[LogDir] | None:
    """The log directories of every broker with partition sizes; None if no broker reports them."""
    await cluster.metadata(())
    if not await (await cluster.anyone()).serves(ApiKey.DESCRIBE_LOG_DIRS):
        return None
    topics = by_topic(places or ())
    request = DescribeLogDirsRequest(
        topics=None
        if places is None
        else [DescribableLogDirTopic(topic=n, partitions=each) for n, each in topics.items()]
    )
    nodes = cluster.node_ids
    found = await asyncio.gather(*(_log_dirs(cluster.node(n), n, request) for n in nodes))
    return [each for directories in found for each in directories]


async def _log_dirs(broker: Broker, node_id: int, request: DescribeLogDirsRequest) -> list[LogDir]:
    answer = await broker.ask(request, DescribeLogDirsResponse)
    if answer.error_code:
        raise Refused(answer.error_code, what=f"log directories of broker {node_id}")
    return [
        LogDir(
            node_id=node_id,
            path=each.log_dir,
            error_code=each.error_code,
            total_bytes=each.total_bytes,
            usable_bytes=each.usable_bytes,
            sizes={
                (topic.name, part.partition_index): part.partition_size
                for topic in each.topics
                for part in topic.partitions
                if not part.is_future_key
            },
        )
        for each in answer.results
    ]


def sizes_of(directories: Sequence[LogDir], leaders: Mapping[Place, int]) -> dict[Place, int]:
    """The size in bytes of each partition at its leader."""
    return {
        place: size
        for directory in directories
        for place, size in directory.sizes.items()
        if leaders.get(place) == directory.node_id
    }


def _timeout_ms(cluster: Cluster) -> int:
    return int(cluster.timeout_s * 1000)
