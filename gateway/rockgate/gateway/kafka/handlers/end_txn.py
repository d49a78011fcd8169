"""EndTxn: v0-5.

Behaviour
- Commits or aborts: the decision, the committed offsets and the markers of all partitions are one
  append, so the answer comes when all of it is done. Markers of a transaction of more than two
  hundred partitions, and offsets beyond 256 KiB, are written gradually, after the answer, as in
  Kafka.
- A repeated end is answered in the same way. So is an abort (v5) by a producer whose transaction
  was aborted before, because it timed out: it gets its next epoch and continues.

Versions
- v2: PRODUCER_FENCED.  v3: flexible.  v5: transaction version 2: the epoch is raised and answered.
"""

from __future__ import annotations

import asyncio

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.transactions.answers import fenced_code
from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.transaction import ProducerIdAndEpoch
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.end_txn import EndTxnRequest, EndTxnResponse

_FENCED = 2
_V2 = 5


class EndTxn:
    """Ends transactions."""

    def __init__(self, *, coordinator: Coordinator, durability: Durability) -> None:
        self._coordinator = coordinator
        self._durability = durability

    def handle(
        self, request: EndTxnRequest, call: Call
    ) -> EndTxnResponse | asyncio.Future[EndTxnResponse]:
        """End the transaction; a repetition waits for the disk as the first time does."""
        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        try:
            ended = self._coordinator.end(
                request.transactional_id, producer, request.committed, call.version >= _V2
            )
        except RequestError as error:
            return self.refuse(request, fenced_code(error.code, call.version >= _FENCED))
        id_, epoch = ended.producer
        response = EndTxnResponse(producer_id=id_, producer_epoch=epoch)
        return self._durability.after_changes(response, is_sync=ended.is_sync)

    def refuse(self, request: EndTxnRequest, code: ErrorCode) -> EndTxnResponse:
        """The error."""
        return EndTxnResponse(error_code=fenced_code(code, True))
