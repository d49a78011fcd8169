"""Dead letters that were resent: a fold, so that none is resent twice by mistake.

docs/internals/state.md has the shape of its records: a topic's id, a queue and a stretch of 1,024
offsets, with a bit for each of them. A resend appends its message and the new record in one atomic
group.
"""

from __future__ import annotations

from typing import Final

from rockgate.store.api.folds import Fold, Journal, KeyedFold
from rockgate.store.api.queues import Queue, Queues

TOPIC: Final = b"rmq_sys_rockgate_resent"
STRETCH: Final = 1_024
_SIZE: Final = STRETCH // 8

Key = tuple[bytes, int, int]
"""Topic id, queue id, number of the stretch."""


class Resent:
    """Dead letters that were resent."""

    def __init__(self, journal: Journal) -> None:
        self._fold: KeyedFold[Key, bytes] = KeyedFold(
            journal, name="resent", topic=TOPIC, key=Key, value=bytes
        )

    @property
    def fold(self) -> Fold:
        """The fold."""
        return self._fold

    def has(self, queue: Queue, offset: int) -> bool:
        """Whether a dead letter was resent."""
        number, at = divmod(offset, STRETCH)
        bits = self._fold.find((queue.topic_id, queue.queue_id, number))
        return bits is not None and bool(bits[at >> 3] & 1 << (at & 7))

    def change(self, queue: Queue, offset: int, queues: Queues) -> bytes:
        """Return the change for a resend; what retention deleted is dropped with it."""
        number, at = divmod(offset, STRETCH)
        key = (queue.topic_id, queue.queue_id, number)
        bits = bytearray(self._fold.find(key) or bytes(_SIZE))
        bits[at >> 3] |= 1 << (at & 7)
        items: dict[Key, bytes | None] = {
            each: None for each, _ in self._fold.items() if _is_gone(each, queues)
        }
        items[key] = bytes(bits)
        return self._fold.change(items)


def _is_gone(key: Key, queues: Queues) -> bool:
    topic_id, queue_id, number = key
    queue = queues.find(topic_id, queue_id)
    return queue is None or (number + 1) * STRETCH <= queue.log_start
