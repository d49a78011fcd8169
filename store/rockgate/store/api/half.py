"""Half messages: undecided until somebody commits them or rolls them back."""

from __future__ import annotations

from rockgate.store.half.changes import HALF_TOPIC, Checked, Decided, Outcome, Prepared, encode
from rockgate.store.half.fold import MESSAGES, Half, HalfMessages

__all__ = [
    "HALF_TOPIC",
    "MESSAGES",
    "Checked",
    "Decided",
    "Half",
    "HalfMessages",
    "Outcome",
    "Prepared",
    "encode",
]
