"""InitProducerId over a RocketMQ cluster: v0-5.

Behaviour
- Without a transactional id every call gets a random producer id, with epoch 0.
- With one it is refused, so that clients fail at once: there are no transactions.

Versions
- v2: flexible.  v3: the client may name the id and epoch it has, and gets a new one.

Departs from Kafka
- Ids are random and not counted: gateways share nothing that could count them.
"""

from __future__ import annotations

import secrets

from rockgate.gateway.kafka.request.handler import Call
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


class ClusterInitProducerId:
    """Assigns producer ids."""

    def handle(self, request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
        """Assign a new one."""
        if request.transactional_id is not None:
            return self.refuse(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return InitProducerIdResponse(producer_id=secrets.randbits(62), producer_epoch=0)

    def refuse(self, request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
        """An error and no id."""
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
