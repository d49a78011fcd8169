"""One topic of a cluster: its partitions, its configs, and its name on RocketMQ's wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rockgate.gateway.kafka.request import names as kafka_names
from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.topics.attributes import (
    BATCH_QUEUES,
    DELAYING_TYPES,
    MESSAGE_TYPE,
    QUEUE_TYPE,
)
from rockgate.gateway.rocketmq.topics.partitions import PartitionTable
from rockgate.gateway.transcode import names
from rockgate.protocol.remoting.bodies.nameserver import QueueData

WRITABLE: Final = 2
READABLE: Final = 4


class ClusterTopic:
    """A topic of the cluster. Holders of it see changes."""

    __slots__ = (
        "asked_at",
        "config",
        "id",
        "is_internal",
        "is_typed",
        "name",
        "position",
        "queues",
        "table",
        "wire",
    )

    def __init__(self, name: str, id_: bytes, table: PartitionTable) -> None:
        self.name = name
        self.wire = wire_name(name)
        """Its name on RocketMQ's wire."""
        self.id = id_
        self.table = table
        self.is_internal = False
        self.config: Mapping[str, str] = {}
        self.is_typed = True
        """Whether its brokers have types of topics; 4.9 has none."""
        self.asked_at = float("-inf")
        """When its brokers were last asked for its configs, in the loop's time."""
        self.position = 0
        self.queues: dict[str, QueueData] = {}
        """How many queues each broker of its route has."""

    @property
    def queue_count(self) -> int:
        """The number of its partitions."""
        return self.table.count

    @property
    def delays(self) -> bool:
        """Whether headers can delay a record of it."""
        return not self.is_typed or self.config.get(MESSAGE_TYPE) in DELAYING_TYPES

    @property
    def has_batch_queues(self) -> bool:
        """Whether a record batch is one message of it."""
        return self.config.get(QUEUE_TYPE) == BATCH_QUEUES

    def queue(self, partition: int) -> QueueName:
        """The queue of a partition."""
        place = self.table.place(partition)
        return QueueName(self.wire, place.broker, place.queue_id)

    def is_writable(self, queue: QueueName) -> bool:
        """Whether its broker takes messages for a queue; true if its route does not say."""
        data = self.queues.get(queue.broker)
        if data is None:
            return True
        return bool(data.perm & WRITABLE) and queue.queue_id < data.write_queue_nums


def wire_name(name: str) -> str:
    """The name of a topic on RocketMQ's wire, by its name for Kafka clients."""
    return names.to_rocketmq(kafka_names.to_store(name))
