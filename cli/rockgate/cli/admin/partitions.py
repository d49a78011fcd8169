"""Which partitions a person means who names topics, or some of their partitions."""

from collections.abc import Mapping

from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.view import Place


async def chosen(cluster: Cluster, wanted: Mapping[str, tuple[int, ...] | None]) -> list[Place]:
    """The partitions, None meaning all of a topic; topics must be there."""
    topics = await cluster.topics(list(wanted))
    return [
        (name, index)
        for name, indexes in wanted.items()
        for index in (topics[name].partitions if indexes is None else indexes)
    ]
