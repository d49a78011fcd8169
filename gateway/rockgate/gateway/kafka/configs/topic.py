"""Every topic config, Kafka 4.3's and our own. docs/reference/protocol.md is made of it.

One line of the table says all there is to say of a config: its type, what holds when nobody sets
it, the broker's name for that default, what it means, and what it does here where that differs from
Kafka. Handlers, the data path and the documentation read it and know no config of their own.
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
    """What the same is called among a broker's own settings."""
    about: str
    """What it means."""
    here: str = ""
    """How that differs in this server."""
    has_effect: bool = True
    is_ours: bool = False
    """Whether Kafka does not know it."""

    @property
    def documentation(self) -> str:
        """What DescribeConfigs says of it."""
        return f"{self.about} {self.here}" if self.here else self.about


def _idle(
    name: str, type_: ConfigType, default: str, broker: str | None, about: str, here: str
) -> TopicConfig:
    """A config of Kafka's that is checked, kept and described, and changes nothing here."""
    return TopicConfig(name, type_, default, broker, about, f"No effect here: {here}", False)


_ONE_NODE = "there is one replica, on this node."
_ONE_LOG = "all topics share one log, laid out by the server's `store` settings."
_NO_COMPACTION = "topics are not compacted yet."
_NO_TIERS = "there is no tiered storage."
_NO_LEVEL = "what the server compresses anew takes the codec's usual level."

_CONFIGS = (
    TopicConfig(
        "cleanup.policy",
        ConfigType(kind=ConfigKind.LIST, choices=("compact", "delete")),
        "delete",
        "log.cleanup.policy",
        "What happens to old records: `delete` lets them expire by age and size, `compact` keeps"
        " the last one of each key, and without either they stay.",
        "`compact` refuses records without a key and keeps every record, as there is no compaction"
        " yet; with `delete` beside it they still expire.",
    ),
    _idle(
        "compression.gzip.level",
        number(1, 9, also=-1),
        "-1",
        "compression.gzip.level",
        "How hard gzip tries where `compression.type` is gzip; -1 leaves it to the codec.",
        _NO_LEVEL,
    ),
    _idle(
        "compression.lz4.level",
        number(1, 17),
        "9",
        "compression.lz4.level",
        "How hard lz4 tries where `compression.type` is lz4.",
        _NO_LEVEL,
    ),
    TopicConfig(
        "compression.type",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "producer",
        "compression.type",
        "How batches are compressed in the log. `producer` keeps each as it came.",
        "Any other value opens every batch that came in another form, which costs time.",
    ),
    _idle(
        "compression.zstd.level",
        number(-131_072, 22),
        "3",
        "compression.zstd.level",
        "How hard zstd tries where `compression.type` is zstd.",
        _NO_LEVEL,
    ),
    _idle(
        "delete.retention.ms",
        long(0),
        "86400000",
        "log.cleaner.delete.retention.ms",
        "How long compaction keeps the mark of a deleted key.",
        _NO_COMPACTION,
    ),
    _idle(
        "file.delete.delay.ms",
        long(0),
        "60000",
        "log.segment.delete.delay.ms",
        "How long a removed file stays on disk.",
        _ONE_LOG,
    ),
    TopicConfig(
        "flush.messages",
        long(1),
        str(LONG_MAX),
        "log.flush.interval.messages",
        "After how many records the log is brought to disk.",
        "1 answers a producer only once its batch is on disk, by an fsync that many share, as"
        " `store.flush` = `sync` does for all topics. Any other value leaves it to the server.",
    ),
    _idle(
        "flush.ms",
        long(0),
        str(LONG_MAX),
        "log.flush.interval.ms",
        "After how long the log is brought to disk.",
        "`store.flush_interval_ms` says it for all topics.",
    ),
    _idle(
        "follower.replication.throttled.replicas",
        REPLICAS,
        "",
        None,
        "Which followers copy at a limited rate.",
        _ONE_NODE,
    ),
    _idle(
        "index.interval.bytes",
        number(0),
        "4096",
        "log.index.interval.bytes",
        "How many bytes of log lie between two entries of the offset index.",
        "every batch is indexed.",
    ),
    _idle(
        "leader.replication.throttled.replicas",
        REPLICAS,
        "",
        None,
        "Which replicas are served at a limited rate.",
        _ONE_NODE,
    ),
    _idle(
        "local.retention.bytes",
        long(-2),
        "-2",
        "log.local.retention.bytes",
        "How much of a tiered partition stays on local disk; -2 takes `retention.bytes`.",
        _NO_TIERS,
    ),
    _idle(
        "local.retention.ms",
        long(-2),
        "-2",
        "log.local.retention.ms",
        "How long records of a tiered partition stay on local disk; -2 takes `retention.ms`.",
        _NO_TIERS,
    ),
    _idle(
        "max.compaction.lag.ms",
        long(1),
        str(LONG_MAX),
        "log.cleaner.max.compaction.lag.ms",
        "The longest a record may wait for compaction.",
        _NO_COMPACTION,
    ),
    TopicConfig(
        "max.message.bytes",
        number(0),
        "1048588",
        "message.max.bytes",
        "The largest record batch that is taken, compressed as it comes.",
    ),
    TopicConfig(
        "message.index",
        BOOLEAN,
        "false",
        None,
        "Whether records inside batches can be found by their key, as messages of RocketMQ clients"
        " always can.",
        "Every batch is opened when it comes, which costs time; those that came before are as they"
        " were.",
        is_ours=True,
    ),
    TopicConfig(
        "message.timestamp.after.max.ms",
        long(0),
        "3600000",
        "log.message.timestamp.after.max.ms",
        "How far ahead of the server's clock a record's own timestamp may be.",
    ),
    TopicConfig(
        "message.timestamp.before.max.ms",
        long(0),
        str(LONG_MAX),
        "log.message.timestamp.before.max.ms",
        "How far behind the server's clock a record's own timestamp may be.",
    ),
    TopicConfig(
        "message.timestamp.type",
        one_of("CreateTime", "LogAppendTime"),
        "CreateTime",
        "log.message.timestamp.type",
        "Whose time a record carries: its producer's, or that of its arrival.",
    ),
    TopicConfig(
        "message.type",
        one_of("NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"),
        "NORMAL",
        None,
        "What the topic is for, in RocketMQ's words. On DELAY and MIXED a record's headers can"
        " delay it; on the others they are ordinary headers.",
        is_ours=True,
    ),
    _idle(
        "min.cleanable.dirty.ratio",
        RATIO,
        "0.5",
        "log.cleaner.min.cleanable.ratio",
        "Which share of a log must be new before compaction is worth it.",
        _NO_COMPACTION,
    ),
    _idle(
        "min.compaction.lag.ms",
        long(0),
        "0",
        "log.cleaner.min.compaction.lag.ms",
        "The least time a record is left alone by compaction.",
        _NO_COMPACTION,
    ),
    _idle(
        "min.insync.replicas",
        number(1),
        "1",
        "min.insync.replicas",
        "How many replicas must have a batch before acks=all is answered.",
        _ONE_NODE,
    ),
    _idle(
        "preallocate",
        BOOLEAN,
        "false",
        "log.preallocate",
        "Whether a new file gets all its space at once.",
        "files of the log always do.",
    ),
    _idle(
        "remote.log.copy.disable",
        BOOLEAN,
        "false",
        None,
        "Whether nothing more is copied to remote storage.",
        _NO_TIERS,
    ),
    _idle(
        "remote.log.delete.on.disable",
        BOOLEAN,
        "false",
        None,
        "Whether what lies in remote storage goes when that is switched off.",
        _NO_TIERS,
    ),
    _idle(
        "remote.storage.enable",
        ConfigType(kind=ConfigKind.BOOLEAN, choices=("false",)),
        "false",
        None,
        "Whether old records move to remote storage.",
        f"{_NO_TIERS[:-1]}, so only `false` is taken.",
    ),
    TopicConfig(
        "retention.bytes",
        long(),
        "-1",
        "log.retention.bytes",
        "How many bytes a partition keeps before its oldest records go; negative is without limit.",
    ),
    TopicConfig(
        "retention.ms",
        long(-1),
        "604800000",
        "log.retention.ms",
        "How long records are kept; -1 is for ever.",
        "Counted from when a record arrived and not from its own timestamp, so that records with"
        " old timestamps do not vanish at once.",
    ),
    _idle(
        "segment.bytes",
        number(1 << 20),
        "1073741824",
        "log.segment.bytes",
        "How large one file of a partition's log gets.",
        _ONE_LOG,
    ),
    _idle(
        "segment.index.bytes",
        number(4),
        "10485760",
        "log.index.size.max.bytes",
        "How large one file of a partition's index gets.",
        _ONE_LOG,
    ),
    _idle(
        "segment.jitter.ms",
        long(0),
        "0",
        "log.roll.jitter.ms",
        "How much earlier, at random, a new file may be begun.",
        _ONE_LOG,
    ),
    _idle(
        "segment.ms",
        long(1),
        "604800000",
        "log.roll.ms",
        "After how long a new file is begun, full or not.",
        _ONE_LOG,
    ),
    _idle(
        "unclean.leader.election.enable",
        BOOLEAN,
        "false",
        "unclean.leader.election.enable",
        "Whether a replica that lags may lead when no other is left.",
        _ONE_NODE,
    ),
    TopicConfig(
        "validate.batches",
        BOOLEAN,
        "false",
        None,
        "Whether every batch is opened and each of its records checked before it is taken.",
        is_ours=True,
    ),
)
TOPIC_CONFIGS: Mapping[str, TopicConfig] = {config.name: config for config in _CONFIGS}
