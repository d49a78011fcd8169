"""ShareGroupHeartbeat: v1.

Behaviour
- Joins, stays in and leaves a share group. The answer has the member's epoch and, when it has
  changed or the member says what it subscribes to, the partitions that it reads.
- A member subscribes to topics that it may describe: another one in the list refuses the whole
  request.
- What a response tells is in the log before, and flushed where the server flushes.

Departs from Kafka
- Group and rack names of more than 1,000 characters, more than 256 KiB of topic names, and a
  request of more than 4 MiB are INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.kafka.groups.share.coordinator import ShareGroups
from rockgate.gateway.kafka.groups.share.member import ShareBeat, ShareBeatAnswer
from rockgate.gateway.kafka.request.errors import RequestError, coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.kafka.share.acknowledging import MEMBER_ID_CHARS_MAX
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

REQUEST_BYTES_MAX: Final = 4 << 20
ID_CHARS_MAX: Final = 1_000
CLIENT_ID_CHARS_MAX: Final = 255
NAMES_BYTES_MAX: Final = 256 << 10
"""They are written as one record."""


class ShareGroupHeartbeat:
    """Keeps members in their groups."""

    def __init__(
        self, groups: ShareGroups, durability: Durable, permitted: Permitted = UNCHECKED
    ) -> None:
        self._groups = groups
        self._durability = durability
        self._permitted = permitted

    def handle(
        self, request: ShareGroupHeartbeatRequest, call: Call
    ) -> ShareGroupHeartbeatResponse | Awaitable[ShareGroupHeartbeatResponse]:
        """Answer a member."""
        groups = self._groups
        written_count = groups.written_count
        try:
            self._check(request, call)
            answer = groups.beat(request.group_id, _beat(request, call))
        except RequestError as error:
            return ShareGroupHeartbeatResponse(
                error_code=coordinator_code(error.code), error_message=error.reason
            )
        response = _response(answer)
        if groups.written_count == written_count:
            return response
        return self._durability.after_changes(response)

    def refuse(
        self, request: ShareGroupHeartbeatRequest | None, code: ErrorCode
    ) -> ShareGroupHeartbeatResponse:
        """An error; there is no request if it was too large to be decoded."""
        return ShareGroupHeartbeatResponse(
            error_code=coordinator_code(code), error_message=code.meaning
        )

    def _check(self, request: ShareGroupHeartbeatRequest, call: Call) -> None:
        if len(request.member_id) > MEMBER_ID_CHARS_MAX:
            raise RequestError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
        if max(len(request.group_id), len(request.rack_id or "")) > ID_CHARS_MAX:
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
                ApiKey.SHARE_GROUP_HEARTBEAT,
                AclOperation.DESCRIBE,
                AclResourceType.TOPIC,
                name,
            ):
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                raise RequestError(code, code.meaning)


def _beat(request: ShareGroupHeartbeatRequest, call: Call) -> ShareBeat:
    names = request.subscribed_topic_names
    return ShareBeat(
        member_id=request.member_id,
        epoch=request.member_epoch,
        rack_id=request.rack_id,
        names=None if names is None else frozenset(names),
        client_id=(call.client_id or "")[:CLIENT_ID_CHARS_MAX],
        client_host=f"/{call.peer.remote.host}",
    )


def _response(answer: ShareBeatAnswer) -> ShareGroupHeartbeatResponse:
    assigned = answer.assigned
    return ShareGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.interval_ms,
        assignment=None
        if assigned is None
        else Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in assigned.items()
            ]
        ),
    )
