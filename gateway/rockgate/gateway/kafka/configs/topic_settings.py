"""A topic's settings as the data path uses them: typed, with defaults filled in.

A topic's config is a mapping of strings that is replaced as a whole when it changes; what was
parsed from it is kept as long as it is the same mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.configs.types import items_of
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.store.api.topics import Topic

_CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
_DELAYING = frozenset(("DELAY", "MIXED"))


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
    is_indexed: bool
    """Whether records are found by their key."""
    lets_wait: bool
    """Whether a record's headers may delay it."""

    @property
    def opens_batches(self) -> bool:
        """Whether a batch is looked through, or rewritten."""
        return self.needs_keys or self.is_validating or self.compression is not None

    @property
    def examines(self) -> bool:
        """Whether a batch cannot simply pass through."""
        return self.lets_wait or self.opens_batches


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
        def text(name: str) -> str:
            return self._defaults.text(config, name)

        return TopicSettings(
            message_bytes_max=int(text("max.message.bytes")),
            timestamp_after_ms_max=int(text("message.timestamp.after.max.ms")),
            timestamp_before_ms_max=int(text("message.timestamp.before.max.ms")),
            is_append_time=text("message.timestamp.type") == "LogAppendTime",
            compression=_CODECS.get(text("compression.type")),
            needs_keys="compact" in items_of(text("cleanup.policy")),
            is_validating=text("validate.batches") == "true",
            is_indexed=text("message.index") == "true",
            lets_wait=text("message.type") in _DELAYING,
        )
