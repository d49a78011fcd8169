"""A topic's settings as the data path uses them: typed, with defaults filled in.

A topic's config is a mapping of strings that is replaced as a whole when it changes; what was
parsed from it is kept as long as it is the same mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rockgate.protocol.kafka.records.batch import Compression
from rockgate.store.topic import Topic

LONG_MAX = (1 << 63) - 1
_CODECS = {
    "uncompressed": Compression.NONE,
    "none": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDefaults:
    """What the server's own settings say for topics that do not say it themselves."""

    message_bytes_max: int = 1_048_588
    timestamp_after_ms_max: int = 3_600_000
    timestamp_before_ms_max: int = LONG_MAX
    is_append_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """One topic's settings for producing."""

    message_bytes_max: int
    timestamp_after_ms_max: int
    timestamp_before_ms_max: int
    is_append_time: bool
    compression: Compression | None
    """What every batch is compressed with; None leaves the producer's choice."""
    needs_keys: bool
    """Whether a record without a key is refused, as compaction could never place it."""
    is_validating: bool
    """Whether every batch is opened and each of its records checked."""

    @property
    def opens_batches(self) -> bool:
        """Whether a batch cannot simply pass through."""
        return self.needs_keys or self.is_validating or self.compression is not None


class SettingsCache:
    """Settings by topic, parsed once per config."""

    def __init__(self, defaults: TopicDefaults) -> None:
        self._defaults = defaults
        self._parsed: dict[bytes, tuple[Mapping[str, str], TopicSettings]] = {}

    def of(self, topic: Topic) -> TopicSettings:
        """Return a topic's settings."""
        known = self._parsed.get(topic.id)
        if known is not None and known[0] is topic.config:
            return known[1]
        settings = self._parse(topic.config)
        self._parsed[topic.id] = (topic.config, settings)
        return settings

    def forget(self, topic: Topic) -> None:
        """Let go of a deleted topic's."""
        self._parsed.pop(topic.id, None)

    def _parse(self, config: Mapping[str, str]) -> TopicSettings:
        defaults = self._defaults
        kind = config.get("message.timestamp.type")
        after = config.get("message.timestamp.after.max.ms")
        before = config.get("message.timestamp.before.max.ms")
        size = config.get("max.message.bytes")
        return TopicSettings(
            message_bytes_max=defaults.message_bytes_max if size is None else int(size),
            timestamp_after_ms_max=defaults.timestamp_after_ms_max if after is None else int(after),
            timestamp_before_ms_max=(
                defaults.timestamp_before_ms_max if before is None else int(before)
            ),
            is_append_time=(defaults.is_append_time if kind is None else kind == "LogAppendTime"),
            compression=_CODECS.get(config.get("compression.type", "producer")),
            needs_keys="compact" in config.get("cleanup.policy", "delete"),
            is_validating=config.get("validate.batches") == "true",
        )
