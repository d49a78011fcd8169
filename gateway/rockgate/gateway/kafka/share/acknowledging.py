"""Acknowledgements of a request, partition by partition, and who may send them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from rockgate.gateway.kafka.request.errors import RequestError, explain
from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.kafka.share.acknowledgements import AckBatch, ranges_of
from rockgate.gateway.kafka.share.fetching import ShareFetching
from rockgate.gateway.kafka.share.records import ShareRecords
from rockgate.gateway.kafka.share.sessions import SESSION_PARTITIONS_MAX, Partition
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.errors import StoreError

ACKNOWLEDGEMENTS_MAX: Final = 10_000
"""Acknowledgements of one request, of ranges or of single offsets: as many as may be in flight of
one partition. Each takes microseconds."""
MEMBER_ID_CHARS_MAX: Final = 36
GROUP_CHARS_MAX: Final = 1_000
Asked = tuple[bytes, int, Sequence[AckBatch]]
"""Topic id, partition, acknowledgements."""


class AskedTopic(Protocol):
    """What a request asks of one topic."""

    topic_id: bytes
    partitions: list[Any]


def asked_of(topics: Sequence[AskedTopic]) -> list[Asked]:
    """Return what a request asks; RequestError if that is more than one request may."""
    if sum(len(topic.partitions) for topic in topics) > SESSION_PARTITIONS_MAX:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"A request may have {SESSION_PARTITIONS_MAX:,} partitions at most.",
        )
    asked: list[Asked] = []
    count = 0
    for topic in topics:
        for each in topic.partitions:
            asked.append((topic.topic_id, each.partition_index, each.acknowledgement_batches))
            count += sum(len(batch.acknowledge_types) for batch in each.acknowledgement_batches)
            if count > ACKNOWLEDGEMENTS_MAX:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST,
                    f"A request may have {ACKNOWLEDGEMENTS_MAX:,} acknowledgements at most.",
                )
    return asked


class Acks(NamedTuple):
    """What became of a request's acknowledgements."""

    codes: dict[Partition, tuple[ErrorCode, str | None]]
    has_changes: bool
    """Whether any was taken, so that the answer has to wait until it is flushed."""


class Acknowledging:
    """Takes acknowledgements."""

    def __init__(
        self,
        *,
        records: ShareRecords,
        fetching: ShareFetching,
        permitted: Permitted = UNCHECKED,
    ) -> None:
        self._records = records
        self._fetching = fetching
        self._permitted = permitted

    def identify(self, group: str | None, member_id: str | None) -> tuple[str, str]:
        """Check the names of group and member; RequestError if they cannot be any."""
        if not group or len(group) > GROUP_CHARS_MAX:
            raise RequestError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
        if not member_id or len(member_id) > MEMBER_ID_CHARS_MAX:
            raise RequestError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
        return group, member_id

    def may_read(self, peer: Peer, topic_id: bytes) -> bool:
        """Whether a client may read a topic; of an unknown id it learns that it is unknown."""
        topic = self._fetching.topic(topic_id)
        return topic is None or self._permitted.may_read(peer, topic_id, topic.name)

    def take(
        self,
        group: str,
        member_id: str,
        asked: Iterable[Asked],
        peer: Peer,
        *,
        may_renew: bool,
    ) -> Acks:
        """Take what can be taken."""
        codes: dict[Partition, tuple[ErrorCode, str | None]] = {}
        has_changes = False
        for topic_id, index, batches in asked:
            if not batches:
                continue
            code, reason = self._take(
                group, member_id, (topic_id, index), batches, peer, may_renew=may_renew
            )
            codes[topic_id, index] = code, reason
            has_changes = has_changes or not code
        return Acks(codes, has_changes)

    def _take(
        self,
        group: str,
        member_id: str,
        partition: Partition,
        batches: Sequence[AckBatch],
        peer: Peer,
        *,
        may_renew: bool,
    ) -> tuple[ErrorCode, str | None]:
        ranges = ranges_of(batches, may_renew=may_renew)
        if ranges is None:
            return _meaning(ErrorCode.INVALID_REQUEST)
        if not self.may_read(peer, partition[0]):
            return _meaning(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        queue = self._fetching.queue(*partition)
        if isinstance(queue, ErrorCode):
            return _meaning(queue)
        window = self._records.find(group, queue)
        if window is None:
            return _meaning(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        try:
            code = self._records.acknowledge(window, member_id, ranges)
        except StoreError as error:
            return explain(error)
        return _meaning(code) if code else (code, None)


def _meaning(code: ErrorCode) -> tuple[ErrorCode, str]:
    return code, code.meaning
