"""The callbacks of delivery: how delayed entries become the entries that are appended.

The store does not know what is in an entry. These are the questions that it has for the gateway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from rockgate.store.delay.changes import DelayChangeKind, Ended, encode_ended
from rockgate.store.delay.fold import Due, Key
from rockgate.store.read.slices import Slice
from rockgate.store.write.append import Intake

ORIGIN: Final = b"__ORIGIN"
"""Property of a delivered entry: what it was while it waited."""

Redeliver = Callable[[Slice, int], Intake | None]
"""Makes of an entry that waited, and an offset in it, what is to be appended; None: not now.

UnknownTopic if the topic that it is for is not there any more.
"""


class Opening(Protocol):
    """Work that is to be done on entries before anything in them can be delivered."""

    def run(self) -> None:
        """Do it, in a thread."""

    def keep(self) -> None:
        """Take its outcome, on the store's thread."""


class Records(Protocol):
    """Knows what is in batch entries of which records wait."""

    def prepare(self, wanted: Sequence[tuple[Slice, Sequence[int]]]) -> Opening | None:
        """Return what a thread has to do first for offsets of entries; None if nothing.

        Asked once in each step, before anything is delivered.
        """

    def redeliver(self, run: Sequence[tuple[Slice, int]]) -> tuple[Intake, int] | None:
        """Make of records of one queue what is to be appended, and say of how many: one at least.

        Each is an entry and an offset in it, in the order in which they are to be read. None: the
        rest of them in the next step.
        """


def with_origin(intake: Intake, dues: Sequence[Due]) -> Intake:
    """Return a delivery with the property that names what it was."""
    topic_id, queue_id, _, _ = dues[0].waiting
    offsets = ",".join([str(due.waiting.offset) for due in dues])
    origin = f"{topic_id.hex()}:{queue_id}:{offsets}".encode()
    queue, draft = intake
    properties = b"%b%b\x01%b\x02" % (draft.properties, ORIGIN, origin)
    return Intake(queue, draft._replace(properties=properties))


def end_of(kind: DelayChangeKind, dues: Sequence[Due]) -> bytes:
    """Return the change that ends the waiting of items of any queues."""
    by_queue: dict[Key, list[int]] = {}
    for due in dues:
        topic_id, queue_id, offset, _ = due.waiting
        by_queue.setdefault((topic_id, queue_id), []).append(offset)
    return encode_ended(kind, [Ended(*key, offsets) for key, offsets in by_queue.items()])
