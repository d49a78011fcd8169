"""Every setting of the server, one section per room or part. A new section is one line in Config.

A section is a frozen dataclass with defaults, owned by the room that uses it. The string under a
field is its documentation (docs/operations.md is generated from it), and `metadata` may hold
`minimum` and `maximum`. Units are the last part of a name: `_ms` settings also take `10m` or `36h`,
`_bytes` settings also take `64MiB`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rockgate.gateway.batches.config import BatchesConfig
from rockgate.gateway.http.config import HttpConfig
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.quotas.config import QuotasConfig
from rockgate.gateway.kafka.server.config import KafkaConfig
from rockgate.gateway.kafka.transactions.config import TransactionsConfig
from rockgate.gateway.remoting.server.config import NamesrvConfig, RemotingConfig
from rockgate.gateway.telemetry.config import MetricsConfig
from rockgate.store.config import StoreConfig

LogLevel = Literal["error", "warning", "info", "debug"]
TimestampType = Literal["CreateTime", "LogAppendTime"]
CompressionType = Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]
LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """The process as a whole."""

    data_dir: Path = Path("data")
    """Directory that holds everything the server keeps; made if it is not there."""
    node_id: int | None = field(default=None, metadata={"minimum": 0, "maximum": 2**31 - 1})
    """This node's id for clients; remembered in the data directory, 1 in a new one."""
    log_level: LogLevel = "info"
    """The least severe messages that are logged to standard error."""
    drain_ms_max: int = field(default=10_000, metadata={"minimum": 0, "maximum": 600_000})
    """How long a stopping server lets requests in flight finish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsConfig:
    """What a topic gets when its creator does not say."""

    partitions: int = field(default=4, metadata={"minimum": 1, "maximum": 100_000})
    """Partitions of a topic that is created without a count, by itself or by a client."""
    partitions_max: int = field(default=200_000, metadata={"minimum": 1, "maximum": 100_000_000})
    """Partitions of all topics together; what would be one more is refused."""
    auto_create: bool = True
    """Whether asking for the metadata of an unknown topic creates it."""
    message_bytes_max: int = field(default=1_048_588, metadata={"minimum": 0, "maximum": 2**31 - 1})
    """Largest record batch that is taken, unless the topic's `max.message.bytes` says otherwise."""
    timestamp_type: TimestampType = "CreateTime"
    """Whose time records carry, unless the topic's `message.timestamp.type` says otherwise."""
    timestamp_after_ms_max: int = field(
        default=3_600_000, metadata={"minimum": 0, "maximum": LONG_MAX}
    )
    """How far ahead a record's time may be, unless `message.timestamp.after.max.ms` says it."""
    timestamp_before_ms_max: int = field(
        default=LONG_MAX, metadata={"minimum": 0, "maximum": LONG_MAX}
    )
    """How far behind a record's time may be, unless `message.timestamp.before.max.ms` says it."""
    compression_type: CompressionType = "producer"
    """How batches are kept, unless the topic's `compression.type` says otherwise."""
    replication_strict: bool = False
    """Whether a topic that asks for more than one replica is refused; else it gets one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole configuration; a field's name is its section's name."""

    server: ServerConfig
    kafka: KafkaConfig
    remoting: RemotingConfig
    namesrv: NamesrvConfig
    http: HttpConfig
    topics: TopicsConfig
    batches: BatchesConfig
    groups: GroupsConfig
    quotas: QuotasConfig
    transactions: TransactionsConfig
    metrics: MetricsConfig
    store: StoreConfig
