"""ConsumerGroupHeartbeat: v0-1.

Behaviour
- Joins, stays in and leaves a consumer group. The answer has the member's epoch and, when it has
  changed or the member says everything about itself, what it may read.
- A member subscribes to topics that it may describe: another one in the list refuses the whole
  request, and one that a pattern finds is passed over.
- What a response tells is in the log before, and flushed where the server flushes.

Versions
- v0: a client without a member id is given one.  v1: it has its own; subscriptions by pattern.

Departs from Kafka
- Ids of more than 1,000 characters, more than 256 KiB of topic names, and a request of more than
  4 MiB are INVALID_REQUEST; patterns of more than 4,096 characters INVALID_REGULAR_EXPRESSION.
- Patterns do not find internal topics.
- A group with RocketMQ consumers is GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.kafka.groups.consumer.coordinator import ConsumerGroups
from rockgate.gateway.kafka.groups.consumer.heartbeats import Beat, HeartbeatOutcome
from rockgate.gateway.kafka.groups.consumer.member import JOIN_EPOCH, Owned
from rockgate.gateway.kafka.request.errors import RequestError, coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

REQUEST_BYTES_MAX: Final = 4 << 20
ID_CHARS_MAX: Final = 1_000
CLIENT_ID_CHARS_MAX: Final = 255
NAMES_BYTES_MAX: Final = 256 << 10
"""They are written as one record."""
_OWN_IDS: Final = 1


class ConsumerGroupHeartbeat:
    """Keeps members in their groups."""

    def __init__(
        self, groups: ConsumerGroups, durability: Durable, permitted: Permitted = UNCHECKED
    ) -> None:
        self._groups = groups
        self._durability = durability
        self._permitted = permitted

    def handle(
        self, request: ConsumerGroupHeartbeatRequest, call: Call
    ) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
        """Answer a member."""
        groups = self._groups
        written_count = groups.written_count
        try:
            self._check(request, call)
            outcome = groups.beat(request.group_id, self._beat(request, call))
        except RequestError as error:
            return ConsumerGroupHeartbeatResponse(
                error_code=coordinator_code(error.code), error_message=error.reason
            )
        response = _response(outcome)
        if groups.written_count == written_count:
            return response
        return self._durability.after_changes(response)

    def refuse(
        self, request: ConsumerGroupHeartbeatRequest | None, code: ErrorCode
    ) -> ConsumerGroupHeartbeatResponse:
        """An error; there is no request if it was too large to be decoded."""
        return ConsumerGroupHeartbeatResponse(
            error_code=coordinator_code(code), error_message=code.meaning
        )

    def _check(self, request: ConsumerGroupHeartbeatRequest, call: Call) -> None:
        ids = (request.group_id, request.member_id, request.instance_id, request.rack_id)
        if max(len(each or "") for each in ids) > ID_CHARS_MAX:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"An id has more than {ID_CHARS_MAX:,} characters."
            )
        names = request.subscribed_topic_names or ()
        if sum(len(name.encode("utf-8", "surrogatepass")) + 1 for name in names) > NAMES_BYTES_MAX:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"The subscribed topics have more than {NAMES_BYTES_MAX:,} bytes.",
            )
        for name in names:
            if not self._permitted.permit(
                call.peer,
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                AclOperation.DESCRIBE,
                AclResourceType.TOPIC,
                name,
            ):
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                raise RequestError(code, code.meaning)

    def _beat(self, request: ConsumerGroupHeartbeatRequest, call: Call) -> Beat:
        member_id = request.member_id
        if not member_id and call.version < _OWN_IDS and request.member_epoch == JOIN_EPOCH:
            member_id = self._groups.new_member_id()
        names, owned = request.subscribed_topic_names, request.topic_partitions
        peer, may = call.peer, self._permitted.may
        return Beat(
            member_id=member_id,
            epoch=request.member_epoch,
            instance_id=request.instance_id,
            rack_id=request.rack_id,
            rebalance_ms=request.rebalance_timeout_ms,
            names=None if names is None else frozenset(names),
            regex=request.subscribed_topic_regex,
            assignor=request.server_assignor,
            owned=None
            if owned is None
            else {each.topic_id: frozenset(each.partitions) for each in owned},
            client_id=(call.client_id or "")[:CLIENT_ID_CHARS_MAX],
            client_host=f"/{peer.remote.host}",
            sees=lambda name: may(peer, AclOperation.DESCRIBE, AclResourceType.TOPIC, name),
        )


def _response(outcome: HeartbeatOutcome) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=outcome.member_id,
        member_epoch=outcome.epoch,
        heartbeat_interval_ms=outcome.interval_ms,
        assignment=None if outcome.assigned is None else _assignment(outcome.assigned),
    )


def _assignment(assigned: Owned) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(held))
            for topic_id, held in assigned.items()
        ]
    )
