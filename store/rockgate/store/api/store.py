"""The store as a whole."""

from __future__ import annotations

from rockgate.store.store import Store

__all__ = [
    "Store",
]
