"""A standby's answers on Kafka's wire: it reads, and refuses whatever would be written.

The codes are those of a follower, which clients take as a reason to look for the leader, the
coordinator or the controller, and to try again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import AnyHandler, Call
from rockgate.gateway.kafka.server.dispatch import Dispatcher
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey

WHY: Final = "This server is a standby: it follows a primary, and writes nothing."

_LEADERS: Final = (ApiKey.PRODUCE, ApiKey.DELETE_RECORDS)
_COORDINATORS: Final = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
)
_SHARES: Final = (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)
_CONTROLLERS: Final = (
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.ELECT_LEADERS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.UPDATE_FEATURES,
)
REFUSED: Final[Mapping[ApiKey, ErrorCode]] = {
    **dict.fromkeys((*_LEADERS, *_SHARES), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    **dict.fromkeys(_COORDINATORS, ErrorCode.NOT_COORDINATOR),
    **dict.fromkeys(_CONTROLLERS, ErrorCode.NOT_CONTROLLER),
    ApiKey.FIND_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""What a standby does not do, and its answer."""


class Refusing:
    """Stands in for a handler, and refuses every request."""

    def __init__(self, handler: AnyHandler, code: ErrorCode) -> None:
        self._handler = handler
        self._code = code

    def handle(self, request: Any, call: Call) -> NoReturn:
        """Refuse it."""
        raise RequestError(self._code, WHY)

    def refuse(self, request: Any, code: ErrorCode) -> Any:
        """The refusal that the handler would give."""
        return self._handler.refuse(request, code)


def answer_as_standby(dispatcher: Dispatcher) -> None:
    """Refuse what a standby does not do."""
    for key, code in REFUSED.items():
        with suppress(KeyError):  # an API that is not served
            dispatcher.replace(key, Refusing(dispatcher.handler_of(key), code))
