"""Batches of which records are due later: they are held back until it is known when."""

from __future__ import annotations

from rockgate.store.delay.held import (
    HELD_TOPIC,
    NOBODY,
    UNDECIDED,
    Held,
    HeldEntries,
    Hold,
    Kind,
    Scheduled,
    encode,
)

__all__ = [
    "HELD_TOPIC",
    "NOBODY",
    "UNDECIDED",
    "Held",
    "HeldEntries",
    "Hold",
    "Kind",
    "Scheduled",
    "encode",
]
