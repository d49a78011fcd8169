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
    "advertised.listeners": KafkaName("kafka.advertised_listeners"),
    "allow.everyone.if.no.acl.found": KafkaName("security.allow_everyone_if_no_acl"),
    "auto.create.topics.enable": KafkaName("topics.auto_create"),
    "broker.id": KafkaName("server.node_id"),
    "compression.type": KafkaName("topics.compression_type"),
    "connection.failed.authentication.delay.ms": KafkaName(
        "security.failed_authentication_delay_ms"
    ),
    "connections.max.idle.ms": KafkaName("kafka.idle_ms_max"),
    "connections.max.reauth.ms": KafkaName("security.reauthentication_ms_max"),
    "controller.quota.window.num": KafkaName("quotas.mutation_window_count"),
    "controller.quota.window.size.seconds": KafkaName("quotas.mutation_window_ms", 1_000),
    "delegation.token.expiry.check.interval.ms": KafkaName("security.token_check_ms"),
    "delegation.token.expiry.time.ms": KafkaName("security.token_expiry_ms"),
    "delegation.token.max.lifetime.ms": KafkaName("security.token_lifetime_ms_max"),
    "fetch.max.bytes": KafkaName("kafka.fetch_bytes_max"),
    "group.consumer.assignment.interval.ms": KafkaName("consumer_groups.assignment_ms"),
    "group.consumer.heartbeat.interval.ms": KafkaName("consumer_groups.heartbeat_ms"),
    "group.consumer.migration.policy": KafkaName("consumer_groups.migration"),
    "group.consumer.regex.refresh.interval.ms": KafkaName("consumer_groups.regex_refresh_ms"),
    "group.consumer.session.timeout.ms": KafkaName("consumer_groups.session_ms"),
    "group.streams.assignment.interval.ms": KafkaName("streams_groups.assignment_ms"),
    "group.streams.heartbeat.interval.ms": KafkaName("streams_groups.heartbeat_ms"),
    "group.streams.initial.rebalance.delay.ms": KafkaName("streams_groups.initial_delay_ms"),
    "group.streams.num.standby.replicas": KafkaName("streams_groups.standbys"),
    "group.streams.session.timeout.ms": KafkaName("streams_groups.session_ms"),
    "group.initial.rebalance.delay.ms": KafkaName("groups.initial_delay_ms"),
    "group.max.session.timeout.ms": KafkaName("groups.session_ms_max"),
    "group.max.size": KafkaName("groups.members_max"),
    "group.min.session.timeout.ms": KafkaName("groups.session_ms_min"),
    "group.share.assignment.interval.ms": KafkaName("share_groups.assignment_ms"),
    "group.share.delivery.count.limit": KafkaName("share_groups.deliveries_max"),
    "group.share.heartbeat.interval.ms": KafkaName("share_groups.heartbeat_ms"),
    "group.share.max.share.sessions": KafkaName("share_groups.sessions_max"),
    "group.share.max.size": KafkaName("share_groups.members_max"),
    "group.share.partition.max.record.locks": KafkaName("share_groups.locks_max"),
    "group.share.record.lock.duration.ms": KafkaName("share_groups.lock_ms"),
    "group.share.session.timeout.ms": KafkaName("share_groups.session_ms"),
    "listener.security.protocol.map": KafkaName("kafka.listener_security"),
    "listeners": KafkaName("kafka.listeners"),
    "log.cleaner.backoff.ms": KafkaName("store.compaction_interval_ms"),
    "log.cleaner.enable": KafkaName("store.compaction"),
    "log.dir": KafkaName("server.data_dir"),
    "log.message.timestamp.after.max.ms": KafkaName("topics.timestamp_after_ms_max"),
    "log.message.timestamp.before.max.ms": KafkaName("topics.timestamp_before_ms_max"),
    "log.message.timestamp.type": KafkaName("topics.timestamp_type"),
    "log.retention.bytes": KafkaName("store.retention_bytes"),
    "log.retention.hours": KafkaName("store.retention_ms", 3_600_000),
    "log.retention.minutes": KafkaName("store.retention_ms", 60_000),
    "log.retention.ms": KafkaName("store.retention_ms"),
    "max.connections": KafkaName("kafka.connections_max"),
    "max.connections.per.ip": KafkaName("security.connections_per_address_max"),
    "max.incremental.fetch.session.cache.slots": KafkaName("kafka.fetch_sessions_max"),
    "message.max.bytes": KafkaName("topics.message_bytes_max"),
    "node.id": KafkaName("server.node_id"),
    "num.partitions": KafkaName("topics.partitions"),
    "offset.metadata.max.bytes": KafkaName("groups.metadata_bytes_max"),
    "offsets.retention.check.interval.ms": KafkaName("groups.offsets_check_ms"),
    "offsets.retention.minutes": KafkaName("groups.offsets_retention_ms", 60_000),
    "offsets.topic.num.partitions": KafkaName("internal_topics.offsets_partitions"),
    "producer.id.expiration.ms": KafkaName("kafka.producer_expiry_ms"),
    "queued.max.request.bytes": KafkaName("kafka.total_bytes_max"),
    "quota.window.num": KafkaName("quotas.window_count"),
    "quota.window.size.seconds": KafkaName("quotas.window_ms", 1_000),
    "sasl.enabled.mechanisms": KafkaName("security.sasl_mechanisms"),
    "sasl.oauthbearer.clock.skew.seconds": KafkaName("oauth.clock_skew_ms", 1_000),
    "sasl.oauthbearer.expected.audience": KafkaName("oauth.audience"),
    "sasl.oauthbearer.expected.issuer": KafkaName("oauth.issuer"),
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": KafkaName("oauth.refresh_ms"),
    "sasl.oauthbearer.jwks.endpoint.url": KafkaName("oauth.jwks"),
    "sasl.oauthbearer.scope.claim.name": KafkaName("oauth.scope_claim"),
    "sasl.oauthbearer.sub.claim.name": KafkaName("oauth.subject_claim"),
    "socket.listen.backlog.size": KafkaName("kafka.backlog"),
    "socket.request.max.bytes": KafkaName("kafka.frame_bytes_max"),
    "super.users": KafkaName("security.super_users"),
    "ssl.client.auth": KafkaName("tls.client_auth"),
    "ssl.principal.mapping.rules": KafkaName("tls.principal_rules"),
    "telemetry.max.bytes": KafkaName("client_metrics.push_bytes_max"),
    "transaction.max.timeout.ms": KafkaName("transactions.timeout_ms_max"),
    "transaction.state.log.num.partitions": KafkaName("internal_topics.transactions_partitions"),
    "transactional.id.expiration.ms": KafkaName("transactions.id_expiry_ms"),
}
