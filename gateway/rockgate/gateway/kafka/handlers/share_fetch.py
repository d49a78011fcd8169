"""ShareFetch: v1-2.

Behaviour
- Acquires records for a member of a share group, for the lock duration, and answers with the
  batches that have them; acknowledges others before. docs/internals/groups-share.md specifies it.
- Waits until a record can be acquired or `max_wait_ms` are over. An error ends the wait.
- Sessions as in that page: their partitions are those of the requests before.
- A topic that the client may not read is TOPIC_AUTHORIZATION_FAILED, also when that changes while
  it waits.
- Acknowledgements are answered when they are flushed where the server flushes.

Versions
- v1: a batch is acquired whole even beyond `max_records`.  v2: `share_acquire_mode` 1 cuts it;
  locks can be renewed.

Departs from Kafka
- Waits for any record, not for `min_bytes`; answers with 8 MiB at most, or one batch.
- A batch of more records than there are locks left is acquired in parts.
- A group that is no share group is GROUP_ID_NOT_FOUND as a whole.
- A session of more than 5,000 partitions, and a request with more than 10,000 acknowledgements, are
  INVALID_REQUEST.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from rockgate.gateway.kafka.groups.share.config import SharePolicy
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call, Peer
from rockgate.gateway.kafka.request.now import Durable
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.kafka.share.acknowledging import Acknowledging, Acks, asked_of
from rockgate.gateway.kafka.share.fetching import Found, Look, ShareAsked, ShareFetching
from rockgate.gateway.kafka.share.sessions import (
    CLOSING,
    OPENING,
    Partition,
    ShareSession,
    ShareSessions,
)
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.share_fetch import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

STRICT: Final = 1
REQUEST_BYTES_MAX: Final = 4 << 20
RECORDS_MAX: Final = 100_000
FORGOTTEN_MAX: Final = 5_000
TRIES_MAX: Final = 8
"""How often a request looks again after something was loaded for it."""


class ShareFetch:
    """Acquires records, and waits for some."""

    def __init__(
        self,
        *,
        is_share: Callable[[str], bool],
        policy: Callable[[str], SharePolicy],
        sessions: ShareSessions,
        fetching: ShareFetching,
        acknowledging: Acknowledging,
        poll_registry: PollRegistry,
        durability: Durable,
        bytes_max: int,
        permitted: Permitted = UNCHECKED,
    ) -> None:
        """`is_share` says whether there is a share group of a name."""
        self._is_share = is_share
        self._policy = policy
        self._sessions = sessions
        self._fetching = fetching
        self._acknowledging = acknowledging
        self._poll_registry = poll_registry
        self._durability = durability
        self._bytes_max = bytes_max
        self._permitted = permitted

    def handle(
        self, request: ShareFetchRequest, call: Call
    ) -> ShareFetchResponse | Awaitable[ShareFetchResponse]:
        """Acknowledge, then acquire what there is, or wait for it."""
        try:
            session, acks = self._open(request, call)
        except RequestError as error:
            return ShareFetchResponse(error_code=error.code, error_message=error.reason)
        group = request.group_id or ""
        policy = self._policy(group)
        wants_none = request.max_records <= 0 or request.max_bytes <= 0
        if session is None or request.is_renew_ack or wants_none:
            return self._respond(Look(), acks, policy)
        wanted = ShareAsked(
            group=group,
            member_id=session.member_id,
            policy=policy,
            bytes_max=min(request.max_bytes, self._bytes_max),
            records_max=min(request.max_records, RECORDS_MAX),
            is_strict=call.version >= 2 and request.share_acquire_mode == STRICT,
        )
        look = self._look(wanted, session, call.peer, may_be_cold=True)
        if _is_enough(look) or (request.max_wait_ms <= 0 and not _is_open(look)):
            return self._respond(look, acks, policy)
        return self._wait(wanted, session, call.peer, look, request.max_wait_ms, acks)

    def refuse(self, request: ShareFetchRequest | None, code: ErrorCode) -> ShareFetchResponse:
        """An error for the whole request; there is none if it was too large to be decoded."""
        return ShareFetchResponse(error_code=code, error_message=code.meaning)

    # Sessions and acknowledgements

    def _open(self, request: ShareFetchRequest, call: Call) -> tuple[ShareSession | None, Acks]:
        """Find the session, and take acknowledgements; no session if this closes it."""
        group, member_id = self._acknowledging.identify(request.group_id, request.member_id)
        if not self._is_share(group):
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group} is not a share group.")
        if request.is_renew_ack:
            _check_renewal(request)
        epoch = request.share_session_epoch
        asked = asked_of(request.topics)
        if sum(len(topic.partitions) for topic in request.forgotten_topics_data) > FORGOTTEN_MAX:
            raise RequestError(ErrorCode.INVALID_REQUEST, "Too many partitions are forgotten.")
        has_acks = any(batches for _, _, batches in asked)
        if epoch == OPENING:
            if has_acks:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, "A new share session has nothing to acknowledge."
                )
            session = self._sessions.open(group, member_id, call.peer)
        elif epoch == CLOSING:
            session = self._sessions.find(group, member_id)
        else:
            session = self._sessions.proceed(group, member_id, epoch, call.peer)
        if epoch != CLOSING:
            forgotten = (
                (topic.topic_id, number)
                for topic in request.forgotten_topics_data
                for number in topic.partitions
            )
            added = ((topic_id, number) for topic_id, number, _ in asked)
            self._sessions.change(session, added, forgotten)
        acks = self._acknowledging.take(
            group, member_id, asked, call.peer, may_renew=request.is_renew_ack
        )
        if epoch == CLOSING:
            self._sessions.close(group, member_id)
            return None, acks
        return session, acks

    # Looking and waiting

    def _look(
        self,
        wanted: ShareAsked,
        session: ShareSession,
        peer: Peer,
        *,
        may_be_cold: bool,
        rest: Sequence[Partition] = (),
    ) -> Look:
        """Read the partitions that are left from before, or all of them."""
        readable, refused = self._readable(rest or list(session.in_turn()), peer)
        look = self._fetching.look(wanted, readable, may_be_cold=may_be_cold)
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        look.found += [Found(each, [], b"", code, code.meaning) for each in refused]
        return look

    def _readable(
        self, partitions: Sequence[Partition], peer: Peer
    ) -> tuple[Sequence[Partition], list[Partition]]:
        """Which partitions the client may read, and which not."""
        if self._permitted is UNCHECKED:
            return partitions, []
        allowed: dict[bytes, bool] = {}
        readable: list[Partition] = []
        refused: list[Partition] = []
        for partition in partitions:
            topic_id = partition[0]
            if topic_id not in allowed:
                allowed[topic_id] = self._acknowledging.may_read(peer, topic_id)
            (readable if allowed[topic_id] else refused).append(partition)
        return readable, refused

    async def _wait(
        self,
        wanted: ShareAsked,
        session: ShareSession,
        peer: Peer,
        look: Look,
        wait_ms: int,
        acks: Acks,
    ) -> ShareFetchResponse:
        clock, epoch = self._poll_registry.clock, session.epoch
        until = clock.time() + wait_ms / 1000
        tries = 0
        while not _is_enough(look):
            if look.rest and not (look.cold or look.beginning):
                await asyncio.sleep(0)
                if not self._sessions.is_current(session, epoch):
                    break
                look = self._look(wanted, session, peer, may_be_cold=True, rest=look.rest)
                continue
            if _is_open(look) and tries < TRIES_MAX:
                tries += 1
                await self._fetching.prepare(wanted, look)
                look = self._look(wanted, session, peer, may_be_cold=tries < TRIES_MAX)
                continue
            left_ms = int((until - clock.time()) * 1000)
            if left_ms <= 0 or not self._sessions.is_current(session, epoch):
                break
            tries = 0
            look = await self._poll(wanted, session, epoch, peer, left_ms)
        return await _awaited(self._respond(look, acks, wanted.policy))

    def _poll(
        self, wanted: ShareAsked, session: ShareSession, epoch: int, peer: Peer, wait_ms: int
    ) -> asyncio.Future[Look]:
        def retry(is_last: bool) -> Look | None:
            if not self._sessions.is_current(session, epoch):
                return Look()
            look = self._look(wanted, session, peer, may_be_cold=True)
            return look if is_last or _is_enough(look) or _is_open(look) else None

        queues = (self._fetching.queue(*each) for each in session.partitions)
        return self._poll_registry.poll(
            (each for each in queues if not isinstance(each, ErrorCode)), wait_ms, retry
        )

    # Answering

    def _respond(
        self, look: Look, acks: Acks, policy: SharePolicy
    ) -> ShareFetchResponse | Awaitable[ShareFetchResponse]:
        partitions: dict[Partition, PartitionData] = {}
        for found in look.found:
            partitions[found.partition] = _data(found)
        for partition, (code, reason) in acks.codes.items():
            data = partitions.setdefault(partition, PartitionData(partition_index=partition[1]))
            data.acknowledge_error_code, data.acknowledge_error_message = code, reason
        topics: dict[bytes, list[PartitionData]] = {}
        for (topic_id, _), data in partitions.items():
            topics.setdefault(topic_id, []).append(data)
        response = ShareFetchResponse(
            acquisition_lock_timeout_ms=policy.lock_ms,
            responses=[
                ShareFetchableTopicResponse(topic_id=topic_id, partitions=some)
                for topic_id, some in topics.items()
            ],
        )
        return self._durability.after_changes(response) if acks.has_changes else response


def _check_renewal(request: ShareFetchRequest) -> None:
    wants = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
    if any(wants):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "A request that renews locks reads nothing: max bytes, min bytes, max records and max "
            "wait must be 0.",
        )


def _is_enough(look: Look) -> bool:
    """Whether there is a reason to answer now."""
    return bool(look.found)


def _is_open(look: Look) -> bool:
    """Whether something has to be loaded, or looked at, before it is known what there is."""
    return bool(look.cold or look.beginning or look.rest)


def _data(found: Found) -> PartitionData:
    return PartitionData(
        partition_index=found.partition[1],
        error_code=found.code,
        error_message=found.reason,
        records=_records(found),
        acquired_records=[
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=deliveries)
            for first, last, deliveries in found.acquired
        ],
    )


def _records(found: Found) -> bytes | memoryview:
    body = found.records
    return bytes(body) if isinstance(body, bytearray) else body


async def _awaited(
    response: ShareFetchResponse | Awaitable[ShareFetchResponse],
) -> ShareFetchResponse:
    return response if isinstance(response, ShareFetchResponse) else await response
