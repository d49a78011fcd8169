"""What the log is told of work that is put off, again and again: once, and when it changes."""

from __future__ import annotations

from rockgate.store.problem_log import Complaint, Remembered

__all__ = ["Complaint", "Remembered"]
