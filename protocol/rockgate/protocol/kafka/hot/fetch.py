"""The hand-written Fetch codec: requests in, responses out.

Requests are decoded as in `hot.produce`: the usual shape here, everything else by the declared
codec, which alone rejects a request. Versions before 12 are left to it altogether: a hand-written
decoder was not faster.

A response is a list of buffers for one `writelines`. The fields between two payloads are one small
buffer; payloads are slices of the log, never joined or copied.
"""

import struct
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from rockgate.protocol.kafka.fields import (
    COUNT_MAX,
    NO_TAGS,
    Buffer,
    Leader,
    Node,
    array_head,
    continue_uvarint,
    leader_tag,
    nodes_tags,
    text,
    uvarint,
)
from rockgate.protocol.kafka.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from rockgate.protocol.kafka.schema import ZERO_UUID, decode

VERSION_MIN: Final = 4
LOG_START_OFFSET: Final = 5
SESSIONS: Final = 7
RACKS: Final = 11
FLEXIBLE: Final = 12
TOPIC_IDS: Final = 13
REPLICA_STATE: Final = 15
LEADERS: Final = 16
VERSION_MAX: Final = 18

_new: Final = object.__new__

# Requests

_INT32: Final = Struct(">i")
_LEAD: Final = Struct(">iiibii")
_PARTITION: Final = Struct(">iiqiqiB")
_SIZE_MAX: Final = 64 * 1024
_HIGH_WATERMARK_UNSAID: Final = (1 << 63) - 1

_Row: TypeAlias = tuple[int, int, int, int, int, int, int]
"""Partition, leader epoch, offset, last epoch, log start, size, count of tagged fields."""


def decode_request(version: int, data: Buffer, *, memory_max: int | None = None) -> FetchRequest:
    """The request in `data`; errors and `memory_max` are those of `schema.decode`."""
    request = None
    if len(data) <= _SIZE_MAX and FLEXIBLE <= version <= VERSION_MAX:
        # Copying a small request pays for itself: slices of bytes are cheaper than those of a view.
        try:
            request = walk(bytes(data), version)
        except (struct.error, IndexError, ValueError):
            # The declared codec decodes it, or names the malformed field.
            request = None
    if request is None:
        request = decode(FetchRequest, version, data, memory_max=memory_max)
    return request


def walk(data: bytes, version: int) -> FetchRequest | None:
    """Versions 12 and later: lengths are varints of the length plus one, structs end with tags."""
    request = _blank_request()
    at = 0
    if version < REPLICA_STATE:
        (request.replica_id,) = _INT32.unpack_from(data)
        at = 4
    (
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        request.session_id,
        request.session_epoch,
    ) = _LEAD.unpack_from(data, at)
    at += _LEAD.size
    count = data[at]
    at += 1
    if count > 127:
        count, at = continue_uvarint(data, at, count)
    left = COUNT_MAX
    if not 0 < count <= left:
        return None
    name, topic_id = "", ZERO_UUID
    for _ in range(count - 1):
        if version >= TOPIC_IDS:
            topic_id = data[at : at + 16]
            at += 16
        else:
            end = at + data[at]
            name = str(data[at + 1 : end], "ascii")
            if end == at or end - at > 127:
                return None
            at = end
        count = data[at]
        at += 1
        if count > 127:
            count, at = continue_uvarint(data, at, count)
        left -= count
        if count == 0 or left < 0:
            return None
        end = at + (count - 1) * _PARTITION.size
        rows = _PARTITION.iter_unpack(data[at:end])
        # The topic's own tags follow the last partition; there are none.
        if data[end] or not _add_topic(request, name, topic_id, rows):
            return None
        at = end + 1
    # No forgotten topics, a short rack, no tags.
    size = data[at + 1]
    end = at + 1 + size
    if data[at] != 1 or not 0 < size < 128 or data[end] or end + 1 != len(data):
        return None
    request.rack_id = str(data[at + 2 : end], "ascii")
    return request


def _blank_request() -> FetchRequest:
    state = _new(ReplicaState)
    state.replica_id = -1
    state.replica_epoch = -1
    request = _new(FetchRequest)
    request.cluster_id = None
    request.replica_id = -1
    request.replica_state = state
    request.session_id = 0
    request.session_epoch = -1
    request.topics = []
    request.forgotten_topics_data = []
    request.rack_id = ""
    return request


def _add_topic(request: FetchRequest, name: str, topic_id: bytes, rows: Iterable[_Row]) -> bool:
    """Add a topic with a partition for each row; False if one has tagged fields."""
    partitions = []
    for row in rows:
        partition = _new(FetchPartition)
        (
            partition.partition,
            partition.current_leader_epoch,
            partition.fetch_offset,
            partition.last_fetched_epoch,
            partition.log_start_offset,
            partition.partition_max_bytes,
            tags,
        ) = row
        if tags:
            return False
        partition.replica_directory_id = ZERO_UUID
        partition.high_watermark = _HIGH_WATERMARK_UNSAID
        partitions.append(partition)
    topic = _new(FetchTopic)
    topic.topic = name
    topic.topic_id = topic_id
    topic.partitions = partitions
    request.topics.append(topic)
    return True


# Responses

_RESPONSE_4: Final = Struct(">i")
_RESPONSE_7: Final = Struct(">ihi")
_FIXED_4: Final = Struct(">ihqq")
_FIXED_5: Final = Struct(">ihqqq")
_FIXED_11: Final = Struct(">ihqqqiii")
_FIXED_12: Final = Struct(">ihqqqBi")
_ABORTED: Final = Struct(">qq")
_ABORTED_12: Final = Struct(">qqB")
_DIVERGING_TAG: Final = Struct(">BBiqB")


class Diverging(NamedTuple):
    """Where this epoch ends, for a client whose own log diverges after it."""

    epoch: int
    end_offset: int


class FetchedPartition(NamedTuple):
    """What was read of one partition."""

    partition_index: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Sequence[Buffer] | None = ()
    """Consecutive slices of the log, sent without copying."""
    aborted: Sequence[tuple[int, int]] | None = None
    """Producer id and first offset of each aborted transaction; None unless read_committed."""
    preferred_read_replica: int = -1
    diverging: Diverging | None = None
    leader: Leader | None = None


class FetchedTopic(NamedTuple):
    """What was read of one topic; a version writes its name or its id."""

    name: str
    topic_id: bytes
    partitions: Sequence[FetchedPartition]


def encode_response(
    version: int,
    topics: Sequence[FetchedTopic],
    *,
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    nodes: Sequence[Node] = (),
) -> list[Buffer]:
    """The body of a response, as buffers for `ServerConnection.respond`."""
    out: list[Buffer] = []
    if version < SESSIONS:
        head = _RESPONSE_4.pack(throttle_time_ms)
    else:
        head = _RESPONSE_7.pack(throttle_time_ms, error_code, session_id)
    pieces = [head, array_head(len(topics), version >= FLEXIBLE)]
    if version < FLEXIBLE:
        _write_plain(out, pieces, version, topics)
    else:
        _write_flexible(out, pieces, version >= TOPIC_IDS, topics)
        pieces.append(nodes_tags(nodes) if version >= LEADERS else NO_TAGS)
    if pieces:
        out.append(b"".join(pieces))
    return out


def _write_plain(
    out: list[Buffer], pieces: list[bytes], version: int, topics: Sequence[FetchedTopic]
) -> None:
    """Versions 4 to 11. `pieces` is what has been written since the last payload."""
    for name, _, partitions in topics:
        pieces += (text(name, False), _INT32.pack(len(partitions)))
        for index, code, high, stable, log_start, records, aborted, replica, _, _ in partitions:
            count = -1 if aborted is None else len(aborted)
            size = -1 if records is None else sum(map(len, records))
            if version >= RACKS and count <= 0:
                pieces.append(
                    _FIXED_11.pack(index, code, high, stable, log_start, count, replica, size)
                )
            else:
                if version < LOG_START_OFFSET:
                    pieces.append(_FIXED_4.pack(index, code, high, stable))
                else:
                    pieces.append(_FIXED_5.pack(index, code, high, stable, log_start))
                pieces.append(_INT32.pack(count))
                pieces += [_ABORTED.pack(*transaction) for transaction in aborted or ()]
                if version >= RACKS:
                    pieces.append(_INT32.pack(replica))
                pieces.append(_INT32.pack(size))
            if records:
                out.append(b"".join(pieces))
                out += records
                pieces.clear()


def _write_flexible(
    out: list[Buffer], pieces: list[bytes], has_ids: bool, topics: Sequence[FetchedTopic]
) -> None:
    """Versions 12 and later; a partition's tags follow its payload."""
    for name, topic_id, partitions in topics:
        pieces += (topic_id if has_ids else text(name, True), uvarint(len(partitions) + 1))
        for partition in partitions:
            index, code, high, stable, log_start, records, aborted, replica, epoch, leader = (
                partition
            )
            if aborted:
                pieces.append(_FIXED_5.pack(index, code, high, stable, log_start))
                pieces.append(uvarint(len(aborted) + 1))
                pieces += [_ABORTED_12.pack(*transaction, 0) for transaction in aborted]
                pieces.append(_INT32.pack(replica))
            else:
                count = 0 if aborted is None else 1
                pieces.append(_FIXED_12.pack(index, code, high, stable, log_start, count, replica))
            if records:
                pieces.append(uvarint(sum(map(len, records)) + 1))
                out.append(b"".join(pieces))
                out += records
                pieces.clear()
            else:
                pieces.append(b"\x00" if records is None else b"\x01")
            pieces.append(NO_TAGS if epoch is None and leader is None else _tags(epoch, leader))
        pieces.append(NO_TAGS)


def _tags(diverging: Diverging | None, leader: Leader | None) -> bytes:
    """The tagged fields of a partition with a diverging epoch or another leader."""
    count = (diverging is not None) + (leader is not None)
    parts = [bytes((count,))]
    if diverging is not None:
        parts.append(_DIVERGING_TAG.pack(0, 13, diverging.epoch, diverging.end_offset, 0))
    if leader is not None:
        parts.append(leader_tag(1, leader))
    return b"".join(parts)
