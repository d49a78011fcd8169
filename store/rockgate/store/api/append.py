"""The way in: drafts, and what became of them."""

from __future__ import annotations

from rockgate.store.log.draft import NO_HOST, NOTHING_ELSE, Draft, Stamp
from rockgate.store.write.append import Appended, AppendedMessages, Appender, Intake

__all__ = [
    "NOTHING_ELSE",
    "NO_HOST",
    "Appended",
    "AppendedMessages",
    "Appender",
    "Draft",
    "Intake",
    "Stamp",
]
