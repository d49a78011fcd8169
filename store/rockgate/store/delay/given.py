"""The callbacks of delivery: how delayed entries become the entries that are appended.

The store does not know what an entry contains, so it asks the gateway through these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from rockgate.store.delay.changes import DelayChangeKind, Ended, encode_ended
from rockgate.store.delay.fold import Due, Key
from rockgate.store.read.slices import Slice
from rockgate.store.write.append import Intake

ORIGIN: Final = b"__ORIGIN"
"""Property of a delivered entry: where it was while it was delayed."""

Redeliver = Callable[[Slice, int], Intake | None]
"""Converts a delayed entry, and an offset in it, to what is appended; None to retry later.

UnknownTopic if its destination topic no longer exists.
"""


class Opening(Protocol):
    """Work that must be done on entries before their records can be delivered."""

    def run(self) -> None:
        """Do the work, on a thread."""

    def keep(self) -> None:
        """Store the result, on the store's thread."""


class Records(Protocol):
    """Knows the contents of batch entries with delayed records."""

    def prepare(self, wanted: Sequence[tuple[Slice, Sequence[int]]]) -> Opening | None:
        """Return the work that a thread must do first for these offsets; None if there is none.

        Called once per step, before anything is delivered.
        """

    def redeliver(self, run: Sequence[tuple[Slice, int]]) -> tuple[Intake, int] | None:
        """Convert records of one queue to what is appended; return it and how many it contains.

        Each record is an entry and an offset in it, in delivery order. At least one is converted;
        None leaves the rest to the next step.
        """


def with_origin(intake: Intake, dues: Sequence[Due]) -> Intake:
    """Return a delivery with the property that identifies its origin."""
    topic_id, queue_id, _, _ = dues[0].waiting
    offsets = ",".join([str(due.waiting.offset) for due in dues])
    origin = f"{topic_id.hex()}:{queue_id}:{offsets}".encode()
    queue, draft = intake
    properties = b"%b%b\x01%b\x02" % (draft.properties, ORIGIN, origin)
    return Intake(queue, draft._replace(properties=properties))


def end_of(kind: DelayChangeKind, dues: Sequence[Due]) -> bytes:
    """Return the change that ends the delay of items of any queues."""
    by_queue: dict[Key, list[int]] = {}
    for due in dues:
        topic_id, queue_id, offset, _ = due.waiting
        by_queue.setdefault((topic_id, queue_id), []).append(offset)
    return encode_ended(kind, [Ended(*key, offsets) for key, offsets in by_queue.items()])
