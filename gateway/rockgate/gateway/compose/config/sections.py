"""All settings, one section per part. Adding a section is one line in Config.

A section is a frozen dataclass with defaults, owned by the package that uses it. The string under a
field is its documentation (docs/reference/operations.md is generated from it), and `metadata` may
hold `minimum` and `maximum`. Units are the last part of a name: `_ms` settings also take `10m` or
`36h`, `_bytes` settings also take `64MiB`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rockgate.gateway.batches.config import BatchesConfig
from rockgate.gateway.http.config import HttpConfig
from rockgate.gateway.kafka.client_metrics.config import ClientMetricsConfig
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.consumer.config import ConsumerGroupsConfig
from rockgate.gateway.kafka.groups.share.config import ShareGroupsConfig
from rockgate.gateway.kafka.groups.streams.config import StreamsGroupsConfig
from rockgate.gateway.kafka.internal_topics.config import InternalTopicsConfig
from rockgate.gateway.kafka.quotas.config import QuotasConfig
from rockgate.gateway.kafka.server.config import KafkaConfig
from rockgate.gateway.kafka.transactions.config import TransactionsConfig
from rockgate.gateway.remoting.server.config import NamesrvConfig, RemotingConfig
from rockgate.gateway.replication.config import ReplicationConfig
from rockgate.gateway.rocketmq.config import RocketmqConfig
from rockgate.gateway.security.config import SecurityConfig
from rockgate.gateway.security.oauth.config import OauthConfig
from rockgate.gateway.security.tls.config import TlsConfig
from rockgate.gateway.storage.config import OverloadConfig
from rockgate.gateway.telemetry.config import MetricsConfig
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.store.config import StoreConfig

LogLevel = Literal["error", "warning", "info", "debug"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Process-wide settings."""

    data_dir: Path = Path("data")
    """Data directory; created if it does not exist."""
    node_id: int | None = field(default=None, metadata={"minimum": 0, "maximum": 2**31 - 1})
    """Node id reported to clients; stored in the data directory, 1 for a new one."""
    log_level: LogLevel = "info"
    """Minimum severity of messages logged to standard error."""
    drain_ms_max: int = field(default=10_000, metadata={"minimum": 0, "maximum": 600_000})
    """Time that in-flight requests get to complete during shutdown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration; a field's name is its section's name."""

    server: ServerConfig
    kafka: KafkaConfig
    remoting: RemotingConfig
    namesrv: NamesrvConfig
    rocketmq: RocketmqConfig
    http: HttpConfig
    security: SecurityConfig
    oauth: OauthConfig
    tls: TlsConfig
    topics: TopicsConfig
    batches: BatchesConfig
    groups: GroupsConfig
    consumer_groups: ConsumerGroupsConfig
    streams_groups: StreamsGroupsConfig
    share_groups: ShareGroupsConfig
    quotas: QuotasConfig
    transactions: TransactionsConfig
    overload: OverloadConfig
    metrics: MetricsConfig
    client_metrics: ClientMetricsConfig
    internal_topics: InternalTopicsConfig
    replication: ReplicationConfig
    store: StoreConfig
