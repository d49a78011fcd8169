"""Every topic config, Kafka 4.3's and our own. docs/reference/protocol.md is generated from it.

One line of the table defines a config: its type, its default, the broker's name for that default,
what it means, and what it does here where that differs from Kafka. Handlers, the data path and the
documentation read the table and define no configs themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rockgate.gateway.kafka.configs.types import ConfigKind, ConfigType

LONG_MAX = (1 << 63) - 1

BOOLEAN = ConfigType(kind=ConfigKind.BOOLEAN)
RATIO = ConfigType(kind=ConfigKind.DOUBLE, low=0, high=1)
REPLICAS = ConfigType(kind=ConfigKind.LIST, is_replicas=True)


def number(low: int | None = None, high: int | None = None, also: int | None = None) -> ConfigType:
    """A 32-bit number."""
    return ConfigType(kind=ConfigKind.INT, low=low, high=high, also=also)


def long(low: int | None = None) -> ConfigType:
    """A 64-bit number."""
    return ConfigType(kind=ConfigKind.LONG, low=low)


def one_of(*choices: str) -> ConfigType:
    """One of these words."""
    return ConfigType(kind=ConfigKind.STRING, choices=choices)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One config of topics."""

    name: str
    type: ConfigType
    default: str
    broker: str | None
    """The name of the broker config for its default."""
    about: str
    """Its meaning."""
    here: str = ""
    """How it differs in this server."""
    has_effect: bool = True
    is_ours: bool = False
    """Whether it is unknown to Kafka."""

    @property
    def documentation(self) -> str:
        """The documentation in DescribeConfigs."""
        return f"{self.about} {self.here}" if self.here else self.about


def _idle(
    name: str, type_: ConfigType, default: str, broker: str | None, about: str, here: str
) -> TopicConfig:
    """A Kafka config that is validated, stored and described, but has no effect here."""
    return TopicConfig(name, type_, default, broker, about, f"No effect: {here}", False)


_ONE_NODE = "every partition has a single replica."
_ONE_LOG = "all topics share one log, configured by the server's `store` settings."
_STORED = "Ages are measured from when a record was stored."
_NO_TIERS = "tiered storage is not supported."
_NO_LEVEL = "batches are recompressed at the codec's default level."

_CONFIGS = (
    TopicConfig(
        "cleanup.policy",
        ConfigType(kind=ConfigKind.LIST, choices=("compact", "delete")),
        "delete",
        "log.cleanup.policy",
        "Cleanup policy: `delete` expires records by age and size, `compact` "
        "retains the last record of each key; without either, records are retained "
        "forever.",
        "With `compact`, records without a key are rejected. What is in the active "
        "segment of the log, which all topics share, is not compacted yet.",
    ),
    _idle(
        "compression.gzip.level",
        number(1, 9, also=-1),
        "-1",
        "compression.gzip.level",
        "Compression level if `compression.type` is gzip; -1 for the codec's default.",
        _NO_LEVEL,
    ),
    _idle(
        "compression.lz4.level",
        number(1, 17),
        "9",
        "compression.lz4.level",
        "Compression level if `compression.type` is lz4.",
        _NO_LEVEL,
    ),
    TopicConfig(
        "compression.type",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "producer",
        "compression.type",
        "Compression of stored batches. `producer` stores each batch as it was sent.",
        "With any other value, batches in a different format are recompressed, "
        "which costs CPU time.",
    ),
    _idle(
        "compression.zstd.level",
        number(-131_072, 22),
        "3",
        "compression.zstd.level",
        "Compression level if `compression.type` is zstd.",
        _NO_LEVEL,
    ),
    TopicConfig(
        "delete.retention.ms",
        long(0),
        "86400000",
        "log.cleaner.delete.retention.ms",
        "How long tombstones are retained in a compacted topic.",
    ),
    _idle(
        "file.delete.delay.ms",
        long(0),
        "60000",
        "log.segment.delete.delay.ms",
        "How long a file is retained after it was deleted from the log.",
        _ONE_LOG,
    ),
    TopicConfig(
        "flush.messages",
        long(1),
        str(LONG_MAX),
        "log.flush.interval.messages",
        "Number of records after which the log is flushed to disk.",
        "1 acknowledges a batch only after an fsync, as `store.flush=sync` does "
        "for all topics; fsyncs are shared. Other values have no effect.",
    ),
    _idle(
        "flush.ms",
        long(0),
        str(LONG_MAX),
        "log.flush.interval.ms",
        "Interval at which the log is flushed to disk.",
        "`store.flush_interval_ms` sets it for all topics.",
    ),
    _idle(
        "follower.replication.throttled.replicas",
        REPLICAS,
        "",
        None,
        "Followers whose replication is throttled.",
        _ONE_NODE,
    ),
    _idle(
        "index.interval.bytes",
        number(0),
        "4096",
        "log.index.interval.bytes",
        "Interval between entries of the offset index, in bytes.",
        "every batch is indexed.",
    ),
    _idle(
        "leader.replication.throttled.replicas",
        REPLICAS,
        "",
        None,
        "Replicas whose replication is throttled on the leader.",
        _ONE_NODE,
    ),
    _idle(
        "local.retention.bytes",
        long(-2),
        "-2",
        "log.local.retention.bytes",
        "Maximum local size of a partition with tiered storage; -2 for `retention.bytes`.",
        _NO_TIERS,
    ),
    _idle(
        "local.retention.ms",
        long(-2),
        "-2",
        "log.local.retention.ms",
        "Maximum local retention time with tiered storage; -2 for `retention.ms`.",
        _NO_TIERS,
    ),
    TopicConfig(
        "max.compaction.lag.ms",
        long(1),
        str(LONG_MAX),
        "log.cleaner.max.compaction.lag.ms",
        "Maximum time a record may remain uncompacted.",
        _STORED,
    ),
    TopicConfig(
        "max.message.bytes",
        number(0),
        "1048588",
        "message.max.bytes",
        "Maximum size of a record batch, after compression.",
    ),
    TopicConfig(
        "message.index",
        BOOLEAN,
        "false",
        None,
        "Whether records in batches are indexed by key, as RocketMQ messages always are.",
        "Every batch is decoded on arrival, which costs CPU time; earlier batches are not indexed.",
        is_ours=True,
    ),
    TopicConfig(
        "message.timestamp.after.max.ms",
        long(0),
        "3600000",
        "log.message.timestamp.after.max.ms",
        "How far a record's timestamp may be ahead of the broker's clock.",
    ),
    TopicConfig(
        "message.timestamp.before.max.ms",
        long(0),
        str(LONG_MAX),
        "log.message.timestamp.before.max.ms",
        "How far a record's timestamp may be behind the broker's clock.",
    ),
    TopicConfig(
        "message.timestamp.type",
        one_of("CreateTime", "LogAppendTime"),
        "CreateTime",
        "log.message.timestamp.type",
        "Whether records carry the producer's timestamp or the time of the append.",
    ),
    TopicConfig(
        "message.type",
        one_of("NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"),
        "NORMAL",
        None,
        "RocketMQ message type of the topic. With DELAY or MIXED, headers can "
        "delay a record; with other types they are ordinary headers.",
        is_ours=True,
    ),
    TopicConfig(
        "min.cleanable.dirty.ratio",
        RATIO,
        "0.5",
        "log.cleaner.min.cleanable.ratio",
        "Minimum ratio of uncompacted log to total log for compaction.",
    ),
    TopicConfig(
        "min.compaction.lag.ms",
        long(0),
        "0",
        "log.cleaner.min.compaction.lag.ms",
        "Minimum time a record remains uncompacted.",
        _STORED,
    ),
    _idle(
        "min.insync.replicas",
        number(1),
        "1",
        "min.insync.replicas",
        "Minimum number of in-sync replicas for acks=all.",
        _ONE_NODE,
    ),
    _idle(
        "preallocate",
        BOOLEAN,
        "false",
        "log.preallocate",
        "Whether new segments are preallocated.",
        "log segments always are.",
    ),
    _idle(
        "remote.log.copy.disable",
        BOOLEAN,
        "false",
        None,
        "Whether copying to remote storage is disabled.",
        _NO_TIERS,
    ),
    _idle(
        "remote.log.delete.on.disable",
        BOOLEAN,
        "false",
        None,
        "Whether remote data is deleted when tiered storage is disabled.",
        _NO_TIERS,
    ),
    _idle(
        "remote.storage.enable",
        ConfigType(kind=ConfigKind.BOOLEAN, choices=("false",)),
        "false",
        None,
        "Whether tiered storage is enabled.",
        f"{_NO_TIERS[:-1]}, so only `false` is accepted.",
    ),
    TopicConfig(
        "retention.bytes",
        long(),
        "-1",
        "log.retention.bytes",
        "Maximum size of a partition before its oldest records are deleted; "
        "negative for unlimited.",
    ),
    TopicConfig(
        "retention.ms",
        long(-1),
        "604800000",
        "log.retention.ms",
        "Retention time of records; -1 for unlimited.",
        "Measured from the append and not from the record's timestamp, so records "
        "with old timestamps are not deleted early.",
    ),
    _idle(
        "segment.bytes",
        number(1 << 20),
        "1073741824",
        "log.segment.bytes",
        "Size of a log segment.",
        _ONE_LOG,
    ),
    _idle(
        "segment.index.bytes",
        number(4),
        "10485760",
        "log.index.size.max.bytes",
        "Size of an index file.",
        _ONE_LOG,
    ),
    _idle(
        "segment.jitter.ms",
        long(0),
        "0",
        "log.roll.jitter.ms",
        "Maximum random jitter subtracted from `segment.ms`.",
        _ONE_LOG,
    ),
    _idle(
        "segment.ms",
        long(1),
        "604800000",
        "log.roll.ms",
        "Time after which a segment is rolled even if it is not full.",
        _ONE_LOG,
    ),
    _idle(
        "unclean.leader.election.enable",
        BOOLEAN,
        "false",
        "unclean.leader.election.enable",
        "Whether a replica that is not in sync may become leader.",
        _ONE_NODE,
    ),
    TopicConfig(
        "validate.batches",
        BOOLEAN,
        "false",
        None,
        "Whether every batch is decoded and its records validated before it is appended.",
        is_ours=True,
    ),
)
TOPIC_CONFIGS: Mapping[str, TopicConfig] = {config.name: config for config in _CONFIGS}
