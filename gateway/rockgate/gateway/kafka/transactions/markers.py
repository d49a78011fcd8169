"""Markers: the control batches that end a transaction in the partitions it wrote to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rockgate.gateway.kafka.produce.producers import Producers
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.transactions.transaction import Ending, Partition
from rockgate.gateway.visibility.stable_offsets import FIRST, StableOffsets
from rockgate.protocol.entry import pack_properties
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.batch import stamp
from rockgate.protocol.kafka.records.control import Marker, MarkerType, build_marker
from rockgate.store.api.append import Appender, Draft, Intake
from rockgate.store.api.clock import Clock
from rockgate.store.api.delay import Deliveries, HeldEntries
from rockgate.store.api.log import Epochs
from rockgate.store.api.queues import Queues
from rockgate.store.api.read import Reader

COORDINATOR_EPOCH: Final = 0
"""There is one coordinator, and it is never replaced."""


class Markers:
    """Writes markers, and notifies what tracks open transactions."""

    def __init__(
        self,
        *,
        appender: Appender,
        queues: Queues,
        reader: Reader,
        clock: Clock,
        epochs: Epochs,
        deliveries: Deliveries,
        stable_offsets: StableOffsets,
        producers: Producers,
        held: HeldEntries,
    ) -> None:
        self._appender = appender
        self._queues = queues
        self._reader = reader
        self._clock = clock
        self._epoch = epochs.current
        self._stable_offsets = stable_offsets
        self._producers = producers
        self._held = held
        self._delay_ms = deliveries.now_ms

    def wanted(self, producer_id: int) -> list[Partition]:
        """Return the partitions in which a producer's transaction is open."""
        return self._stable_offsets.partitions_of(producer_id)

    def is_sync(self, partition: Partition) -> bool:
        """Whether writes to a partition count only once they are on disk."""
        queue = self._queues.find(*partition)
        return queue is not None and queue.is_sync

    def check_epoch(self, partition: Partition, producer_id: int, epoch: int) -> None:
        """Reject a marker of an older epoch than its producer's in a partition."""
        known = self._producers.epoch_of(*partition, producer_id)
        if epoch < known:
            raise RequestError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Producer {producer_id} is at epoch {known} in this partition; the marker "
                f"has epoch {epoch}.",
            )

    def marker(self, producer_id: int, ending: Ending) -> Marker:
        """Return the marker for the outcome of a producer's transaction."""
        kind = MarkerType.COMMIT if ending.is_commit else MarkerType.ABORT
        return Marker(kind, producer_id, ending.marker_epoch, COORDINATOR_EPOCH)

    def append(
        self, marker: Marker, partitions: Sequence[Partition], states: Sequence[Intake]
    ) -> None:
        """Write a marker to partitions, in one atomic group with changes of state.

        Records that wait begin to do so with it, or never do.
        """
        now_ms = self._clock.now_ms()
        body = bytes(build_marker(marker, timestamp=now_ms))
        intakes = [*states, *self._decisions(marker, partitions)]
        state_count = len(intakes)
        firsts = []
        for topic_id, queue_id in partitions:
            first = self._stable_offsets.first_of(topic_id, queue_id, marker.producer_id)
            assert first is not None, "a marker ends an open transaction"
            queue = self._queues.of(topic_id)[queue_id]
            properties = pack_properties(((FIRST.decode(), str(first)),))
            draft = Draft(
                topic=queue.topic,
                queue_id=queue_id,
                offset=-1,
                body=body,
                properties=properties,
                batch_count=1,
                born_ms=now_ms,
                stamp=self._stamp,
            )
            intakes.append(Intake(queue, draft))
            firsts.append((queue, first))
        appended = self._appender.group(intakes, is_upkeep=True)
        is_abort = marker.type is MarkerType.ABORT
        for (queue, first), done in zip(firsts, appended[state_count:], strict=True):
            key = queue.topic_id, queue.queue_id
            self._producers.marked(
                key,
                marker.producer_id,
                marker.producer_epoch,
                position=done.position,
                store_ms=done.store_ms,
            )
            self._stable_offsets.ended(
                key,
                marker.producer_id,
                first=first,
                offset=done.offset,
                is_abort=is_abort,
                high_watermark=self._reader.high_watermark(queue),
            )

    def _decisions(self, marker: Marker, partitions: Sequence[Partition]) -> list[Intake]:
        """Return the change for batches that are held until their transaction is decided."""
        if not len(self._held):
            return []
        decided = self._held.decisions(
            partitions,
            marker.producer_id,
            is_commit=marker.type is MarkerType.COMMIT,
            now_ms=self._delay_ms(),
        )
        return [
            Intake(None, Draft(topic=topic, queue_id=0, offset=-1, body=body))
            for topic, body in decided
        ]

    def _stamp(self, view: memoryview, offset: int) -> None:
        stamp(view, offset, self._epoch)
