"""The clock of the store and its users, and the log of deferred work."""

from __future__ import annotations

from rockgate.store.clock import Clock
from rockgate.store.upkeep.expiry import TrustedTime

__all__ = ["Clock", "TrustedTime"]
