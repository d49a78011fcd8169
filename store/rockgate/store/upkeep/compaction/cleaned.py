"""How far each queue is compacted: a small record per queue in the state."""

from __future__ import annotations

from typing import Final

from rockgate.store.state.fold import Journal
from rockgate.store.state.keyed import KeyedFold

TOPIC: Final = b"rmq_sys_rockgate_compaction"
NAME: Final = "compaction"

Place = tuple[bytes, int]
"""Topic id and queue id."""


def cleaned_fold(journal: Journal) -> KeyedFold[Place, int]:
    """Create the fold: by queue, the offset up to which the last cleaning came."""
    return KeyedFold(journal, name=NAME, topic=TOPIC, key=Place, value=int)
