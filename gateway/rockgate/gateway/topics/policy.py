"""A topic's policy for the store, read from its config's texts, which have Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rockgate.store.api.topics import QueuePolicy

CLEANUP_POLICY: Final = "cleanup.policy"
RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"
FLUSH_EACH: Final = "flush.messages"
"""The topic config that, at 1, makes one topic sync on a server that is not."""

_SILENT: Final = QueuePolicy()
"""Most topics have no config, and share this."""


def queue_policy(config: Mapping[str, str]) -> QueuePolicy:
    """Return what a config means for the store; what it says badly it does not say."""
    if not config:
        return _SILENT
    return QueuePolicy(
        expires=expires(config),
        retention_ms=_limit(config.get(RETENTION_MS)),
        retention_bytes=_limit(config.get(RETENTION_BYTES)),
        is_sync=config.get(FLUSH_EACH) == "1",
        compacts=compacts(config),
        compaction_lag_ms=_number(config, "min.compaction.lag.ms", _SILENT.compaction_lag_ms),
        compaction_lag_ms_max=_number(
            config, "max.compaction.lag.ms", _SILENT.compaction_lag_ms_max
        ),
        dirty_ratio=_ratio(config, "min.cleanable.dirty.ratio", _SILENT.dirty_ratio),
        delete_retention_ms=_number(config, "delete.retention.ms", _SILENT.delete_retention_ms),
    )


def expires(config: Mapping[str, str]) -> bool:
    """Say whether messages of a topic expire at all; those of a compacted one do not."""
    policies = config.get(CLEANUP_POLICY, "delete").split(",")
    return any(policy.strip() == "delete" for policy in policies)


def compacts(config: Mapping[str, str]) -> bool:
    """Say whether records are dropped that a later one with the same key supersedes."""
    policies = config.get(CLEANUP_POLICY, "delete").split(",")
    return any(policy.strip() == "compact" for policy in policies)


def _number(config: Mapping[str, str], name: str, default: int) -> int:
    try:
        return max(0, int(config[name]))
    except (KeyError, ValueError):
        return default


def _ratio(config: Mapping[str, str], name: str, default: float) -> float:
    try:
        ratio = float(config[name])
    except (KeyError, ValueError):
        return default
    return ratio if 0 <= ratio <= 1 else default


def _limit(text: str | None) -> int | None:
    try:
        return None if text is None else max(-1, int(text))
    except ValueError:
        return None
