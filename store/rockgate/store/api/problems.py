"""Logs repeatedly deferred work once, and again when its reason changes."""

from __future__ import annotations

from rockgate.store.problem_log import DeferralLog, Remembered

__all__ = ["DeferralLog", "Remembered"]
