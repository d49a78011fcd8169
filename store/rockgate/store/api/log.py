"""The log below all queues: positions, and what of it is in memory."""

from __future__ import annotations

from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.page_residency import Place, Warmth

__all__ = [
    "CommitLog",
    "Place",
    "Warmth",
]
