"""Sequences of idempotent producers in one queue, as Kafka checks them.

The last five batches of a producer are remembered, as many as it may have in flight: one that is
sent again has the outcome of the first. What is in the writer's line is assumed to be stored; when
that is unknown, the writer forgets the producers, which are then new again.

A producer that is new here may have batches in the queue that another gateway stored, or this one
without an answer. What the queue's tail shows of it is restored, and it is in doubt until one of
its batches was looked up and not found:

    unknown → doubted     its first batch is assumed, or the tail shows batches of it
    doubted → trusted     a batch was looked up and not found: the next ones are not stored either
    any     → unknown     what was assumed of it does not hold
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import Final

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.rocketmq.queues.batch_marks import UNKNOWN, BatchMark
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.batch import BatchHeader

BATCHES_MAX: Final = 5
PRODUCERS_MAX: Final = 10_000
"""Producers of one queue; the one that was silent longest is forgotten."""
_SEQUENCES: Final = 1 << 31


class SequencePlace(Enum):
    """Where a batch that is no known repeat stands."""

    NEXT = "next"
    """It continues what is known of its producer."""
    DOUBTED = "doubted"
    """The same, but it may be stored already: it has to be looked up."""
    GAP = "gap"
    """It does not continue it; only if it is found it may be confirmed."""


class _Known:
    __slots__ = ("first", "last", "outcome")

    def __init__(self, first: int, last: int | None, outcome: asyncio.Future[int]) -> None:
        self.first = first
        self.last = last
        """None if only its beginning is known."""
        self.outcome = outcome

    def correct(self, outcome: asyncio.Future[int]) -> None:
        """Give repeats another outcome."""
        self.outcome = outcome


class _Producer:
    __slots__ = ("batches", "epoch", "is_trusted")

    def __init__(self, epoch: int, *, is_trusted: bool = False) -> None:
        self.epoch = epoch
        self.batches: deque[_Known] = deque(maxlen=BATCHES_MAX)
        self.is_trusted = is_trusted


class Sequences:
    """The producers of one queue."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        # In the order of their last batches.

    def check(
        self, header: BatchHeader, *, is_behind: bool = False
    ) -> asyncio.Future[int] | SequencePlace:
        """The outcome of the batch if it is a repeat, or its place; RequestError if it has none.

        A producer that is unknown may not begin behind a batch that was refused (`is_behind`).
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return SequencePlace.GAP if is_behind else SequencePlace.DOUBTED
        if header.producer_epoch < producer.epoch:
            raise RequestError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch {header.producer_epoch} of producer {header.producer_id} is older than "
                f"{producer.epoch}.",
            )
        first = header.base_sequence
        if header.producer_epoch == producer.epoch:
            known = _find(producer, first, _last(header))
            if known is not None:
                return known.outcome
        if not self._continues(producer, header):
            if producer.is_trusted:
                raise self.out_of_order(header)
            return SequencePlace.GAP
        return SequencePlace.NEXT if producer.is_trusted else SequencePlace.DOUBTED

    def out_of_order(self, header: BatchHeader) -> RequestError:
        """The error of a batch that does not continue its producer's last one."""
        reason = f"Sequence {header.base_sequence} of producer {header.producer_id} is not the next"
        producer = self._producers.get(header.producer_id)
        if producer is not None and producer.batches and producer.batches[-1].last is not None:
            reason += f", {(producer.batches[-1].last + 1) % _SEQUENCES}"
        return RequestError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"{reason}.")

    def assume(self, header: BatchHeader, outcome: asyncio.Future[int]) -> None:
        """Remember a batch that passed `check` and is in the line."""
        producer = self._producers.pop(header.producer_id, None)
        if producer is None:
            producer = _Producer(header.producer_epoch)
        elif header.producer_epoch > producer.epoch:
            # Only a producer that is trusted here cannot have used its new epoch elsewhere.
            producer = _Producer(header.producer_epoch, is_trusted=producer.is_trusted)
        producer.batches.append(_Known(header.base_sequence, _last(header), outcome))
        self._keep(header.producer_id, producer)

    def is_trusted(self, header: BatchHeader) -> bool:
        """Whether a batch of this producer was looked up and not found."""
        producer = self._producers.get(header.producer_id)
        return (
            producer is not None and producer.is_trusted and producer.epoch == header.producer_epoch
        )

    def trust(self, header: BatchHeader) -> None:
        """A batch of this producer was looked up and is not in the queue."""
        producer = self._producers.get(header.producer_id)
        if producer is not None and producer.epoch == header.producer_epoch:
            producer.is_trusted = True

    def restore(self, batches: Iterable[BatchMark]) -> None:
        """Remember what the queue's tail shows, in order; in doubt, for it may not show all."""
        for each in batches:
            outcome: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            outcome.set_result(each.offset)
            producer = self._producers.pop(each.producer_id, None)
            if producer is None or each.epoch > producer.epoch:
                producer = _Producer(each.epoch)
            if each.epoch == producer.epoch:
                last = (
                    None if each.record_count == UNKNOWN else each.sequence + each.record_count - 1
                )
                known = _Known(each.sequence, None if last is None else last % _SEQUENCES, outcome)
                producer.batches.append(known)
            self._keep(each.producer_id, producer)

    def correct(self, header: BatchHeader, outcome: asyncio.Future[int]) -> None:
        """Give repeats of a batch another outcome."""
        producer = self._producers.get(header.producer_id)
        if producer is not None and producer.epoch == header.producer_epoch:
            known = _find(producer, header.base_sequence, _last(header))
            if known is not None:
                known.correct(outcome)

    def forget(self) -> None:
        """Forget all producers: it is unknown what of theirs was stored."""
        self._producers.clear()

    def drop(self, header: BatchHeader) -> None:
        """Forget one producer, because a batch of its was not stored."""
        self._producers.pop(header.producer_id, None)

    # Private

    @staticmethod
    def _continues(producer: _Producer, header: BatchHeader) -> bool:
        if header.producer_epoch > producer.epoch:
            return header.base_sequence == 0
        last = producer.batches[-1].last if producer.batches else None
        return last is None or header.base_sequence == (last + 1) % _SEQUENCES

    def _keep(self, producer_id: int, producer: _Producer) -> None:
        self._producers[producer_id] = producer
        if len(self._producers) > PRODUCERS_MAX:
            del self._producers[next(iter(self._producers))]


def _find(producer: _Producer, first: int, last: int) -> _Known | None:
    for known in producer.batches:
        if known.first == first and known.last in (last, None):
            return known
    return None


def _last(header: BatchHeader) -> int:
    return (header.base_sequence + header.record_count - 1) % _SEQUENCES
