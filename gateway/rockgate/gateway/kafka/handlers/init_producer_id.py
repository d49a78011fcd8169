"""InitProducerId: v0-5.

Behaviour
- Without a transactional id every call gets a new, unique producer id, with epoch 0.
- With one it gets that id's producer with the next epoch, which fences the previous producer. A
  transaction that was left open is aborted first.
- A producer that names the id and epoch it has (v3) is refused if another one has taken over. One
  whose transaction was aborted because it timed out continues, with the epoch after its own.

Versions
- v2: flexible.  v3: the client may name the id and epoch it has.  v4: PRODUCER_FENCED.  v5: more
  errors.

Departs from Kafka
- An open transaction is aborted within this request; Kafka returns CONCURRENT_TRANSACTIONS and lets
  the client retry.
- A retry, while the first response is in use for an open transaction, is PRODUCER_FENCED; Kafka
  aborts that transaction first.
"""

from __future__ import annotations

import asyncio

from rockgate.gateway.kafka.produce.producers import Producers
from rockgate.gateway.kafka.request.errors import RequestError, coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.transactions.answers import fenced_code
from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

_FENCED = 4
ID_SIZE_MAX = 1_000


class InitProducerId:
    """Assigns producer ids."""

    def __init__(
        self, *, producers: Producers, coordinator: Coordinator, durability: Durability
    ) -> None:
        self._producers = producers
        self._coordinator = coordinator
        self._durability = durability

    def handle(
        self, request: InitProducerIdRequest, call: Call
    ) -> InitProducerIdResponse | asyncio.Future[InitProducerIdResponse]:
        """Assign a new one; its reservation is as durable as the server's setting requires."""
        try:
            producer = self._init(request)
        except RequestError as error:
            return self.refuse(request, fenced_code(error.code, call.version >= _FENCED))
        answer = InitProducerIdResponse(producer_id=producer.id, producer_epoch=producer.epoch)
        return self._durability.after_changes(answer)

    def _init(self, request: InitProducerIdRequest) -> ProducerIdAndEpoch:
        id_ = request.transactional_id
        if id_ is None:
            return ProducerIdAndEpoch(self._producers.new_id(), 0)
        asked = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        if not id_ or (asked.id < 0) != (asked.epoch < 0):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "Transactional id is empty, or a producer id was sent without an epoch.",
            )
        if len(id_) > ID_SIZE_MAX:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"Transactional id of {len(id_):,} characters is too long.",
            )
        timeout_ms = request.transaction_timeout_ms
        return self._coordinator.init(id_, timeout_ms, asked if asked.id >= 0 else None)

    def refuse(self, request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
        """An error and no id."""
        code = coordinator_code(code)
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
