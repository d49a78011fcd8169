"""Builds batches for Kafka from messages, and from batches with delayed records.

A run of message entries becomes a batch, which is cached for the next reader; a batch with delayed
records is sent without them. The entries after either are read as usual, up to the next such one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from rockgate.gateway.kafka.fetch.leader_epochs import LeaderEpochs
from rockgate.protocol.kafka.fields import Buffer
from rockgate.store.api.log import Place
from rockgate.store.api.queues import Queue
from rockgate.store.api.read import BATCHES_MAX, Alike, Batches, Reader, Slice

RUN_BYTES_MAX: Final = 1 << 20
"""Message entries that are converted to a batch for one response: about a millisecond."""


class MadeBatches(Protocol):
    """Batches that were made of messages, by the position of the first."""

    def get(self, position: int) -> tuple[bytearray, int] | None:
        """Return a batch, and the offset after it."""

    def put(self, position: int, batch: bytearray, next_offset: int) -> None:
        """Cache a batch for the next reader."""


class MessageTranscoder(Protocol):
    """Converts messages to records."""

    @property
    def cache(self) -> MadeBatches:
        """Recently built batches."""

    def batch(self, queue: Queue, run: Sequence[Slice], epoch: int) -> tuple[bytearray, int]:
        """Return one record batch of the first messages of a run, all of one epoch.

        Also their count: as many as are available at once. With none there is no batch yet; the
        queue is reported as changed when there is.
        """

    def alike(self, run: Alike, epoch: int) -> bytearray | None:
        """Return one record batch of similar messages; None if they are not similar enough."""


class VisibleParts(Protocol):
    """Has the visible parts of batches with delayed records."""

    def batch(self, found: Slice, later: list[Place] | None) -> Buffer | None:
        """Return it; None if it has to be built first, which is noted in `later` unless None."""


class ConvertedBatches:
    """Continues a read at entries that have to be converted. Stateless."""

    def __init__(
        self,
        *,
        reader: Reader,
        epochs: LeaderEpochs,
        transcoder: MessageTranscoder,
        visible_batches: VisibleParts,
    ) -> None:
        self._reader = reader
        self._epochs = epochs
        self._transcoder = transcoder
        self._visible_batches = visible_batches

    def behind(
        self,
        found: Batches,
        queue: Queue,
        end: int,
        size_max: int,
        at_least_one: bool,
        cold: list[Place] | None,
    ) -> tuple[list[Buffer], int]:
        """Return the batches from there on, and the offset after the last one."""
        records: list[Buffer] = [*found.bodies]
        size, offset = found.size, found.next_offset
        while found.is_at_delayed:
            visible, following = self._delayed(queue, offset, cold)
            is_first = at_least_one and not records
            if visible is None or (size + len(visible) > size_max and not is_first):
                return records, offset
            records.append(visible)
            size, offset = size + len(visible), following
            if size >= size_max or len(records) >= BATCHES_MAX:
                return records, offset
            found = self._reader.batches(
                queue, offset, end, size_max - size, at_least_one=False, cold=cold
            )
            records += found.bodies
            size, offset = size + found.size, found.next_offset
        if found.is_at_message:
            is_first = at_least_one and not records
            offset = self._messages(queue, offset, end, size_max - size, is_first, cold, records)
        return records, offset

    def _delayed(
        self, queue: Queue, offset: int, cold: list[Place] | None
    ) -> tuple[Buffer | None, int]:
        """Return the visible part of a batch with delayed records, and the offset after it."""
        unit = queue.find(offset)
        assert unit is not None, "there is an entry where the run ended"
        visible = self._visible_batches.batch(self._reader.entry(queue, unit), cold)
        return visible, unit.base + unit.offset_count

    def _messages(
        self,
        queue: Queue,
        offset: int,
        end: int,
        size_max: int,
        at_least_one: bool,
        cold: list[Place] | None,
        records: list[Buffer],
    ) -> int:
        """Add a run of messages as batches to a response, and return the offset after it.

        One run is enough: the next response continues after it.
        """
        first, cache = queue.find(offset), self._transcoder.cache
        assert first is not None, "there is an entry where the run ended"
        made = cache.get(first.position)
        if made is not None and made[1] <= end and len(made[0]) <= size_max:
            records.append(made[0])
            return made[1]
        size_max = min(size_max, RUN_BYTES_MAX)
        alike = self._reader.alike(queue, offset, end, size_max, may_be_cold=cold is not None)
        if alike is not None:
            epoch = self._epochs.of(queue, alike.first)
            if epoch == self._epochs.of(queue, alike.last):
                whole = self._transcoder.alike(alike, epoch)
                if whole is not None:
                    cache.put(first.position, whole, alike.last.base + 1)
                    records.append(whole)
                    return alike.last.base + 1
        run = self._reader.messages(
            queue, offset, end, size_max, at_least_one=at_least_one, cold=cold
        )
        for epoch, part in self._by_epoch(queue, run):
            batch, count = self._transcoder.batch(queue, part, epoch)
            if count:
                records.append(batch)
                offset = part[count - 1].unit.base + 1
                cache.put(part[0].unit.position, batch, offset)
            if count < len(part):
                break
        return offset

    def _by_epoch(self, queue: Queue, run: list[Slice]) -> Iterator[tuple[int, list[Slice]]]:
        """Split a run where a new epoch begins: a batch can have only one."""
        start = 0
        while start < len(run):
            epoch = self._epochs.of(queue, run[start].unit)
            stop = len(run)
            if self._epochs.of(queue, run[-1].unit) != epoch:
                stop = start + 1
                while self._epochs.of(queue, run[stop].unit) == epoch:
                    stop += 1
            yield epoch, run[start:stop]
            start = stop
