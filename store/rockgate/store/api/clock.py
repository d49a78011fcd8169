"""Time as the store and its users ask for it, and what is said of work that is put off."""

from __future__ import annotations

from rockgate.store.clock import Clock
from rockgate.store.problem_log import Complaint, Remembered
from rockgate.store.upkeep.expiry import BelievedTime

__all__ = [
    "BelievedTime",
    "Clock",
    "Complaint",
    "Remembered",
]
