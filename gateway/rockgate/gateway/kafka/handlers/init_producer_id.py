"""InitProducerId: v0-5.

Behaviour
- Without a transactional id every call gets a producer id that nobody has had, with epoch 0.
- With one it is refused: transactions are not served yet, and their APIs are not advertised.

Versions
- v2: flexible.  v3: the client may name the id and epoch it has (for transactions only).  v4, v5:
  more errors.

Departs from Kafka
- Transactional ids, until transactions exist here.
"""

from __future__ import annotations

import asyncio

from rockgate.gateway.kafka.durability import Durability
from rockgate.gateway.kafka.peer import Call
from rockgate.gateway.kafka.producers import Producers
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


class InitProducerId:
    """Gives out producer ids."""

    def __init__(self, producers: Producers, durability: Durability) -> None:
        self._producers = producers
        self._durability = durability

    def handle(
        self, request: InitProducerIdRequest, call: Call
    ) -> InitProducerIdResponse | asyncio.Future[InitProducerIdResponse]:
        """Give out a new one; its reservation is as durable as the server's setting says."""
        if request.transactional_id is not None:
            return self.refuse(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        answer = InitProducerIdResponse(producer_id=self._producers.new_id(), producer_epoch=0)
        return self._durability.after_changes(answer)

    def refuse(self, request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
        """An error and no id."""
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
