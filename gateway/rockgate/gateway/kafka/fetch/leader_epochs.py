"""Leader epochs: which epoch an offset was written in, and where an epoch ends in a queue.

Kafka's leader epoch is the store's epoch, one for each start of the server. A batch carries its own
in its header; a message entry has the one that contains its position, or, once it was moved, the
one that was stored with it. Along a queue epochs never decrease, so ends are found by searching.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rockgate.protocol import entry as envelope
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.batch import read_header
from rockgate.store.api.log import Epochs
from rockgate.store.api.queues import Queue, Unit
from rockgate.store.api.read import EPOCH, EntryReader


class EpochEnd(NamedTuple):
    """The largest epoch up to the requested one, and the offset after its last."""

    epoch: int
    offset: int


UNDEFINED: Final = EpochEnd(-1, -1)


class LeaderEpochs:
    """Answers queries about epochs for Kafka."""

    def __init__(self, epochs: Epochs, reader: EntryReader) -> None:
        self._epochs = epochs
        self._reader = reader
        self.current = epochs.current
        """The epoch of this run, which is the leader's for every partition."""

    def refusal(self, epoch: int) -> ErrorCode | None:
        """The error for a client with `epoch` as the current one; below 0 it has none."""
        if epoch < 0 or epoch == self.current:
            return None
        if epoch < self.current:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def of(self, queue: Queue, unit: Unit) -> int:
        """Return the epoch that an entry was first appended in."""
        view = self._reader.entry(queue, unit).entry
        entry = envelope.read(view)
        if entry.is_batch:
            return read_header(view, entry.body_at).leader_epoch
        if entry.sys_flag & envelope.MOVED:
            stored = envelope.get_property(envelope.properties_of(view, entry), EPOCH)
            if stored is not None:
                return int(stored)
        return self._epochs.at(unit.position)

    def at(self, queue: Queue, offset: int) -> int:
        """Return the epoch of the record at or after an offset; the current one if there is none.

        A queue that is empty was empty in this epoch too.
        """
        unit = queue.find(offset)
        if unit is None or unit.base >= self._reader.high_watermark(queue):
            # A start flushes all it found: what is not yet visible was written in this run.
            return self.current
        return self.of(queue, unit)

    def end(self, queue: Queue, epoch: int) -> EpochEnd:
        """Return where an epoch ends; UNDEFINED for an unknown one.

        As in Kafka the answer names the largest epoch, up to the one asked for, that has records
        here, and the epoch itself when nothing of that time is left.
        """
        if epoch == self.current:
            return EpochEnd(epoch, queue.next_offset)
        if not 0 <= epoch < self.current:
            return UNDEFINED
        end = self._first_after(queue, epoch)
        if end > queue.log_start:
            last = queue.find(end - 1)
            if last is not None and last.base < end:
                epoch = min(epoch, self.of(queue, last))
        return EpochEnd(epoch, end)

    def _first_after(self, queue: Queue, epoch: int) -> int:
        """Return the first offset of a later epoch, or the end of what is visible.

        The result is nearly always near the end, so the search begins there.
        """
        low, high = queue.log_start, self._reader.high_watermark(queue)
        step = 1
        is_near = True
        while low < high:
            probe = max(low, high - step) if is_near else (low + high) >> 1
            unit = queue.find(probe)
            if unit is None or self.of(queue, unit) > epoch:
                high = probe if unit is None else max(low, min(probe, unit.base))
                step *= 2
            else:
                low = min(high, unit.base + unit.offset_count)
                is_near = False
        return low
