"""The typed settings of a topic that the store needs, independent of how they are written.

A topic's config lies in the log as texts whose names are a protocol's. Whoever opens the store says
how a policy is read from them; that is done once for each change of a config.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePolicy:
    """What holds for the queues of one topic."""

    expires: bool = True
    """Whether entries go at all once they are old, or too many."""
    retention_ms: int | None = None
    """How long they stay; -1 for ever, None as long as the store's config says."""
    retention_bytes: int | None = None
    """How much of them stays; -1 everything, None as much as the store's config says."""
    is_sync: bool = False
    """Whether they become visible, and are confirmed, only once they are on disk."""


DEFAULT_POLICY: Final = QueuePolicy()

PolicyOf = Callable[[Mapping[str, str]], QueuePolicy]
"""Reads a policy from the texts of a topic's config."""


def default_policy(config: Mapping[str, str]) -> QueuePolicy:
    """Return the policy of a store that reads no settings of topics."""
    return DEFAULT_POLICY
