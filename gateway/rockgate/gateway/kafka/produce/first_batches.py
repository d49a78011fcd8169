"""First batches of producers that were refused for now, and what must not overtake them.

A producer that is unknown in a partition may start with any sequence: its state may have expired.
So when its first batch is rejected with a retriable error, the next one, which is already in
flight, would be accepted in its place, and the first could no longer be. The next one is rejected
until the first was appended.
"""

from __future__ import annotations

from typing import Final

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.batch import BatchHeader

COUNT_MAX: Final = 10_000
"""Rejected batches that are tracked; beyond it the oldest is dropped."""
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
"""Errors after which a client retries the same batch."""

Key = tuple[bytes, int, int]
"""Topic id, queue and producer id."""


class FirstBatches:
    """Tracks epoch and lowest sequence of each."""

    def __init__(self) -> None:
        self._refused: dict[Key, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._refused)

    def refused(self, key: Key, header: BatchHeader) -> None:
        """Note that the first batch of an unknown producer was rejected with a retriable error."""
        epoch, sequence = self._refused.pop(key, (-1, 0))
        if epoch != header.producer_epoch or header.base_sequence < sequence:
            epoch, sequence = header.producer_epoch, header.base_sequence
        self._refused[key] = epoch, sequence
        if len(self._refused) > COUNT_MAX:
            del self._refused[next(iter(self._refused))]

    def check(self, key: Key, header: BatchHeader) -> None:
        """Reject a batch that would overtake one."""
        epoch, sequence = self._refused.get(key, (-1, 0))
        if epoch == header.producer_epoch and header.base_sequence > sequence:
            raise RequestError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Producer {header.producer_id} sent sequence {header.base_sequence}, but "
                f"{sequence} was rejected before and must be sent first.",
            )

    def taken(self, key: Key) -> None:
        """Drop it: the producer is known from now on."""
        self._refused.pop(key, None)
