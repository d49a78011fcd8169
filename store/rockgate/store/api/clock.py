"""Time, as the store and its users ask for it."""

from __future__ import annotations

from rockgate.store.clock import Clock
from rockgate.store.upkeep.expiry import BelievedTime

__all__ = ["BelievedTime", "Clock"]
