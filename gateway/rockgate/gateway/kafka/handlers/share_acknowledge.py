"""ShareAcknowledge: v1-2.

Behaviour
- Acknowledges records that a member of a share group holds: accepts, releases, rejects, renews.
  docs/internals/groups-share.md specifies it. All acknowledgements for one partition take effect,
  or none.
- Session epoch -1 closes the member's session, and what it still holds is available again.
- Answered when that is flushed where the server flushes.

Versions
- v2: locks can be renewed; the answer has their duration.

Departs from Kafka
- A request with more than 5,000 partitions or 10,000 acknowledgements is INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from rockgate.gateway.kafka.groups.share.config import SharePolicy
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.now import Durable
from rockgate.gateway.kafka.share.acknowledging import Acknowledging, Acks, asked_of
from rockgate.gateway.kafka.share.sessions import CLOSING, OPENING, ShareSessions
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.share_acknowledge import (
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

REQUEST_BYTES_MAX: Final = 4 << 20


class ShareAcknowledge:
    """Takes acknowledgements without fetching."""

    def __init__(
        self,
        *,
        policy: Callable[[str], SharePolicy],
        sessions: ShareSessions,
        acknowledging: Acknowledging,
        durability: Durable,
    ) -> None:
        self._policy = policy
        self._sessions = sessions
        self._acknowledging = acknowledging
        self._durability = durability

    def handle(
        self, request: ShareAcknowledgeRequest, call: Call
    ) -> ShareAcknowledgeResponse | Awaitable[ShareAcknowledgeResponse]:
        """Take what can be taken."""
        epoch = request.share_session_epoch
        try:
            asked = asked_of(request.topics)
            group, member_id = self._acknowledging.identify(request.group_id, request.member_id)
            if epoch == OPENING:
                raise RequestError(
                    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                    "A new share session has nothing to acknowledge.",
                )
            if epoch == CLOSING:
                self._sessions.find(group, member_id)
            else:
                self._sessions.proceed(group, member_id, epoch, call.peer)
        except RequestError as error:
            return ShareAcknowledgeResponse(error_code=error.code, error_message=error.reason)
        acks = self._acknowledging.take(
            group, member_id, asked, call.peer, may_renew=request.is_renew_ack
        )
        if epoch == CLOSING:
            self._sessions.close(group, member_id)
        response = _response(acks, self._policy(group).lock_ms)
        return self._durability.after_changes(response) if acks.has_changes else response

    def refuse(
        self, request: ShareAcknowledgeRequest | None, code: ErrorCode
    ) -> ShareAcknowledgeResponse:
        """An error for the whole request; there is none if it was too large to be decoded."""
        return ShareAcknowledgeResponse(error_code=code, error_message=code.meaning)


def _response(acks: Acks, lock_ms: int) -> ShareAcknowledgeResponse:
    topics: dict[bytes, list[PartitionData]] = {}
    for (topic_id, index), (code, reason) in acks.codes.items():
        topics.setdefault(topic_id, []).append(
            PartitionData(partition_index=index, error_code=code, error_message=reason)
        )
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_ms,
        responses=[
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=some)
            for topic_id, some in topics.items()
        ],
    )
