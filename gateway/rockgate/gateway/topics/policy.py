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
    )


def expires(config: Mapping[str, str]) -> bool:
    """Say whether messages of a topic expire at all; those of a compacted one do not."""
    policies = config.get(CLEANUP_POLICY, "delete").split(",")
    return any(policy.strip() == "delete" for policy in policies)


def _limit(text: str | None) -> int | None:
    try:
        return None if text is None else max(-1, int(text))
    except ValueError:
        return None
