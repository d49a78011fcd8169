"""Kafka's names for settings, so that Kafka broker configurations can be reused.

A name is in this table only if it means the same thing here. `scale` turns the unit of Kafka's name
into ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KafkaName:
    """Which of our settings a Kafka broker setting maps to."""

    setting: str
    scale: int = 1


KAFKA_NAMES: Mapping[str, KafkaName] = {
    "auto.create.topics.enable": KafkaName("topics.auto_create"),
    "broker.id": KafkaName("server.node_id"),
    "compression.type": KafkaName("topics.compression_type"),
    "connections.max.idle.ms": KafkaName("kafka.idle_ms_max"),
    "controller.quota.window.num": KafkaName("quotas.mutation_window_count"),
    "controller.quota.window.size.seconds": KafkaName("quotas.mutation_window_ms", 1_000),
    "fetch.max.bytes": KafkaName("kafka.fetch_bytes_max"),
    "group.initial.rebalance.delay.ms": KafkaName("groups.initial_delay_ms"),
    "group.max.session.timeout.ms": KafkaName("groups.session_ms_max"),
    "group.max.size": KafkaName("groups.members_max"),
    "group.min.session.timeout.ms": KafkaName("groups.session_ms_min"),
    "log.dir": KafkaName("server.data_dir"),
    "log.message.timestamp.after.max.ms": KafkaName("topics.timestamp_after_ms_max"),
    "log.message.timestamp.before.max.ms": KafkaName("topics.timestamp_before_ms_max"),
    "log.message.timestamp.type": KafkaName("topics.timestamp_type"),
    "log.retention.bytes": KafkaName("store.retention_bytes"),
    "log.retention.hours": KafkaName("store.retention_ms", 3_600_000),
    "log.retention.minutes": KafkaName("store.retention_ms", 60_000),
    "log.retention.ms": KafkaName("store.retention_ms"),
    "max.connections": KafkaName("kafka.connections_max"),
    "max.incremental.fetch.session.cache.slots": KafkaName("kafka.fetch_sessions_max"),
    "message.max.bytes": KafkaName("topics.message_bytes_max"),
    "node.id": KafkaName("server.node_id"),
    "num.partitions": KafkaName("topics.partitions"),
    "offset.metadata.max.bytes": KafkaName("groups.metadata_bytes_max"),
    "offsets.retention.check.interval.ms": KafkaName("groups.offsets_check_ms"),
    "offsets.retention.minutes": KafkaName("groups.offsets_retention_ms", 60_000),
    "producer.id.expiration.ms": KafkaName("kafka.producer_expiry_ms"),
    "queued.max.request.bytes": KafkaName("kafka.total_bytes_max"),
    "quota.window.num": KafkaName("quotas.window_count"),
    "quota.window.size.seconds": KafkaName("quotas.window_ms", 1_000),
    "socket.listen.backlog.size": KafkaName("kafka.backlog"),
    "socket.request.max.bytes": KafkaName("kafka.frame_bytes_max"),
    "transaction.max.timeout.ms": KafkaName("transactions.timeout_ms_max"),
    "transactional.id.expiration.ms": KafkaName("transactions.id_expiry_ms"),
}
