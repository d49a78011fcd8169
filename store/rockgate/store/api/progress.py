"""Progress: up to where groups have read."""

from __future__ import annotations

from rockgate.store.progress.progress import Commit, Committed, Key, Progress
from rockgate.store.progress.records import Removed, check_group

__all__ = [
    "Commit",
    "Committed",
    "Key",
    "Progress",
    "Removed",
    "check_group",
]
