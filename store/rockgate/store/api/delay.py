"""Messages that are due later: what waits, and how it is delivered."""

from __future__ import annotations

from rockgate.store.delay.changes import DELAY_TOPIC, Kind, decode
from rockgate.store.delay.changes import FORMAT as DELAY_FORMAT
from rockgate.store.delay.fold import Listed
from rockgate.store.delay.given import ORIGIN
from rockgate.store.delay.offset_set import OffsetSet
from rockgate.store.delay.times import after as due_after
from rockgate.store.delay.times import at as due_at

__all__ = [
    "DELAY_FORMAT",
    "DELAY_TOPIC",
    "ORIGIN",
    "Kind",
    "Listed",
    "OffsetSet",
    "decode",
    "due_after",
    "due_at",
]
