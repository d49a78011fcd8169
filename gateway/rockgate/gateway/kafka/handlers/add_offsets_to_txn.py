"""AddOffsetsToTxn: v0-4.

Behaviour
- A group's offsets become part of the transaction, which begins if there is none.

Versions
- v2: PRODUCER_FENCED.  v3: flexible.
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
from rockgate.protocol.kafka.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

_FENCED = 2


class AddOffsetsToTxn:
    """Adds groups to transactions."""

    def __init__(self, *, coordinator: Coordinator, durability: Durability) -> None:
        self._coordinator = coordinator
        self._durability = durability

    def handle(
        self, request: AddOffsetsToTxnRequest, call: Call
    ) -> AddOffsetsToTxnResponse | asyncio.Future[AddOffsetsToTxnResponse]:
        """Add the group."""
        if not request.group_id:
            return self.refuse(request, ErrorCode.INVALID_GROUP_ID)
        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        try:
            self._coordinator.add(request.transactional_id, producer, groups=(request.group_id,))
        except RequestError as error:
            return self.refuse(request, fenced_code(error.code, call.version >= _FENCED))
        return self._durability.after_changes(AddOffsetsToTxnResponse())

    def refuse(self, request: AddOffsetsToTxnRequest, code: ErrorCode) -> AddOffsetsToTxnResponse:
        """The error."""
        return AddOffsetsToTxnResponse(error_code=fenced_code(code, True))
