"""Whether a produced batch may be written, as far as transactions are concerned.

batch                                         answer
plain, its producer has a transaction open    INVALID_TXN_STATE
transactional, request without an id          TRANSACTIONAL_ID_AUTHORIZATION_FAILED
of another producer id than the id's          INVALID_PRODUCER_ID_MAPPING
of another epoch                              INVALID_PRODUCER_EPOCH
while the transaction is being ended          CONCURRENT_TRANSACTIONS; NOT_ENOUGH_REPLICAS to v11
to a partition that was not added             to v10 INVALID_TXN_STATE, v11 TRANSACTION_ABORTABLE,
                                              from v12 on it is added
v12, the producer's first here, not number 0  OUT_OF_ORDER_SEQUENCE_NUMBER
"""

from __future__ import annotations

from typing import Final

from rockgate.gateway.kafka.produce.producers import Producers
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.transaction import Partition, ProducerIdAndEpoch
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.records.batch import BatchHeader

ABORTABLE: Final = 11
"""The version of Produce that knows TRANSACTION_ABORTABLE; the next one adds partitions."""


class TransactionalWrites:
    """Checks batches of transactions, and records those that were appended."""

    def __init__(
        self, *, coordinator: Coordinator, stable_offsets: StableOffsets, producers: Producers
    ) -> None:
        self._coordinator = coordinator
        self._stable_offsets = stable_offsets
        self._producers = producers

    def check_plain(self, partition: Partition, header: BatchHeader) -> None:
        """Reject a batch outside of the transaction that its producer has open."""
        if self._stable_offsets.first_of(*partition, header.producer_id) is not None:
            raise RequestError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} has an open transaction in this partition.",
            )

    def check(
        self, id_: str | None, partition: Partition, header: BatchHeader, version: int
    ) -> None:
        """Reject a batch that may not be written in its transaction."""
        if id_ is None:
            raise RequestError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "Transactional batch in a request without a transactional id.",
            )
        producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
        try:
            self._include(id_, producer, partition, version)
        except RequestError as error:
            raise RequestError(_code_for(error.code, version), error.reason) from error
        if version > ABORTABLE and header.base_sequence:
            self._check_first(partition, header)

    def wrote(self, partition: Partition, header: BatchHeader, offset: int) -> None:
        """Record a batch of a transaction."""
        self._stable_offsets.wrote(*partition, header.producer_id, offset)

    def _include(
        self, id_: str, producer: ProducerIdAndEpoch, partition: Partition, version: int
    ) -> None:
        if self._coordinator.verify(id_, producer, partition):
            return
        if version > ABORTABLE:
            self._coordinator.add(id_, producer, (partition,))
            return
        code = ErrorCode.INVALID_TXN_STATE
        if version == ABORTABLE:
            code = ErrorCode.TRANSACTION_ABORTABLE
        raise RequestError(code, f"Partition has not been added to the transaction of '{id_}'.")

    def _check_first(self, partition: Partition, header: BatchHeader) -> None:
        if not self._producers.knows(*partition, header.producer_id):
            raise RequestError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Producer {header.producer_id} must start with sequence 0, not "
                f"{header.base_sequence}.",
            )


def _code_for(code: ErrorCode, version: int) -> ErrorCode:
    """The code as the clients of a version expect it of Produce."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and version <= ABORTABLE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code
