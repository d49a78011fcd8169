"""First batches of producers that were refused for now, and what must not overtake them.

A producer that a partition does not know may begin anywhere: its state may have been forgotten. So
when its first batch is refused with a retriable error, the next one, which is in flight already,
would be accepted in its place, and the first could no longer be accepted. The next one is held back
here until the first is in.
"""

from __future__ import annotations

from typing import Final

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.batch import BatchHeader

COUNT_MAX: Final = 10_000
"""Refused ones that are remembered; beyond it the oldest is forgotten."""
RETRIABLE: Final = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)
"""Errors after which a client sends the same batch again."""

Key = tuple[bytes, int, int]
"""Topic id, queue and producer id."""


class FirstBatches:
    """Remembers epoch and lowest sequence of each."""

    def __init__(self) -> None:
        self._refused: dict[Key, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._refused)

    def refused(self, key: Key, header: BatchHeader) -> None:
        """Note that a batch of an unknown producer was refused for now."""
        epoch, sequence = self._refused.pop(key, (-1, 0))
        if epoch != header.producer_epoch or header.base_sequence < sequence:
            epoch, sequence = header.producer_epoch, header.base_sequence
        self._refused[key] = epoch, sequence
        if len(self._refused) > COUNT_MAX:
            del self._refused[next(iter(self._refused))]

    def check(self, key: Key, header: BatchHeader) -> None:
        """Refuse a batch that would overtake one."""
        epoch, sequence = self._refused.get(key, (-1, 0))
        if epoch == header.producer_epoch and header.base_sequence > sequence:
            raise RequestError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Producer {header.producer_id} sent sequence {header.base_sequence}, but "
                f"{sequence} was rejected before and must be sent first.",
            )

    def taken(self, key: Key) -> None:
        """Forget it: the producer is known from now on."""
        self._refused.pop(key, None)
