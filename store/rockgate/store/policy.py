"""The typed settings of a topic that the store needs, independent of how they are written.

The log stores a topic's config as strings whose names belong to a protocol. Whoever opens the store
passes a function that derives a policy from them, once per change of a config.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePolicy:
    """The policy of one topic's queues."""

    expires: bool = True
    """Whether entries expire at all, by age or size."""
    retention_ms: int | None = None
    """Retention time; -1 for unlimited, None for the store's setting."""
    retention_bytes: int | None = None
    """Retention size; -1 for unlimited, None for the store's setting."""
    is_sync: bool = False
    """Whether entries are visible and acknowledged only once they are on disk."""
    compacts: bool = False
    """Whether records are dropped that a later one with the same key supersedes."""
    compaction_lag_ms: int = 0
    """How long a record stays as it is."""
    compaction_lag_ms_max: int = (1 << 63) - 1
    """How long a record may wait for compaction, however little is dirty."""
    dirty_ratio: float = 0.5
    """How much of a queue must be dirty for a cleaning."""
    delete_retention_ms: int = 86_400_000
    """How long a record that deletes its key remains after its first cleaning."""


DEFAULT_POLICY: Final = QueuePolicy()

PolicyOf = Callable[[Mapping[str, str]], QueuePolicy]
"""Derives a policy from a topic's config."""


def default_policy(config: Mapping[str, str]) -> QueuePolicy:
    """Return the policy of a store that ignores configs of topics."""
    return DEFAULT_POLICY
