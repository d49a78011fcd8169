"""What a standby answers on Kafka's wire: each API is read or refused, and none is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from rockgate.gateway.compose.kafka.table import HANDLERS
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.server.standby import REFUSED, Refusing
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey

READ = {
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.LIST_GROUPS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.API_VERSIONS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
}
"""What changes nothing."""
NOTHING_TO_DO = {ApiKey.ALTER_REPLICA_LOG_DIRS, ApiKey.WRITE_TXN_MARKERS}
"""What is refused by its own handler, on every server."""


def test_every_api_is_read_or_refused() -> None:
    served = {row.key for row in HANDLERS}
    assert served - REFUSED.keys() - NOTHING_TO_DO <= READ
    assert not REFUSED.keys() & READ


def test_a_refusal_has_the_code_of_a_follower_and_the_shape_of_the_handler() -> None:
    class Handler:
        def handle(self, request: Any, call: Call) -> Any:
            raise AssertionError("it is refused before")

        def refuse(self, request: Any, code: ErrorCode) -> Any:
            return request, code

    refusing = Refusing(Handler(), REFUSED[ApiKey.PRODUCE])
    with pytest.raises(RequestError) as caught:
        refusing.handle("request", Call(0, None, Peer.__new__(Peer)))
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusing.refuse("request", caught.value.code) == ("request", caught.value.code)
