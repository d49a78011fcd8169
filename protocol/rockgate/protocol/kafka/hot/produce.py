"""The hand-written Produce codec: requests in, responses out.

A request is decoded in one pass; each partition's records are a slice of the frame. Only the usual
shape is decoded here. Everything else (text beyond ASCII, null records, tagged fields, padded
varints, more than `COUNT_MAX` elements, any kind of damage) goes to the declared codec, which
decodes it or names the malformed field. So this module never rejects a request itself; it must only
accept nothing that the declaration would reject.

Responses are built from small tuples: the usual fields of a partition are packed by one call. A
request with a single batch, the most common one, is decoded and answered in one step each.
"""

import struct
from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

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
    nullable_text,
    text,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.schema import ZERO_UUID, decode

VERSION_MIN: Final = 3
FLEXIBLE: Final = 9
TOPIC_IDS: Final = 13
VERSION_MAX: Final = 13

_new: Final = object.__new__

# Requests

_PLAIN_LEAD: Final = Struct(">hhii")
_PLAIN_REST: Final = Struct(">hii")
_PLAIN_PARTITION: Final = Struct(">ii")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_FLEXIBLE_REST: Final = Struct(">hi")
_FLEXIBLE_PARTITION: Final = Struct(">iBBB")


def decode_request(version: int, data: Buffer) -> ProduceRequest:
    """The request in `data`, records as views of it; errors are those of `schema.decode`."""
    request = walk_request(version, data)
    return decode(ProduceRequest, version, data) if request is None else request


def walk_request(version: int, data: Buffer) -> ProduceRequest | None:
    """The request in `data`, if it has the usual shape; None leaves it to the declared codec."""
    view = memoryview(data).toreadonly()
    try:
        if FLEXIBLE <= version <= VERSION_MAX:
            return walk_flexible(view, version >= TOPIC_IDS)
        if VERSION_MIN <= version < FLEXIBLE:
            return walk_plain(view)
    except (struct.error, IndexError, ValueError):
        # The declared codec decodes it, or names the malformed field.
        pass
    return None


def walk_plain(view: memoryview) -> ProduceRequest | None:
    """Versions 3 to 8: lengths are int16 for text and int32 for everything else."""
    size = len(view)
    text_size, acks, timeout_ms, topic_count = _PLAIN_LEAD.unpack_from(view)
    at = 12
    transactional_id = None
    if text_size >= 0:
        at = 2 + text_size
        transactional_id = str(view[2:at], "ascii")
        acks, timeout_ms, topic_count = _PLAIN_REST.unpack_from(view, at)
        at += 10
    if text_size < -1 or not 0 <= topic_count <= COUNT_MAX:
        return None
    left = COUNT_MAX
    topics = []
    for _ in range(topic_count):
        (text_size,) = _INT16.unpack_from(view, at)
        end = at + 2 + text_size
        name = str(view[at + 2 : end], "ascii")
        (count,) = _INT32.unpack_from(view, end)
        at = end + 4
        left -= count
        if text_size < 0 or count < 0 or left < 0:
            return None
        partitions = []
        for _ in range(count):
            index, length = _PLAIN_PARTITION.unpack_from(view, at)
            at += 8
            end = at + length
            if length < 0 or end > size:
                return None
            partition = _new(PartitionProduceData)
            partition.index = index
            partition.records = view[at:end]
            partitions.append(partition)
            at = end
        topic = _new(TopicProduceData)
        topic.name = name
        topic.topic_id = ZERO_UUID
        topic.partition_data = partitions
        topics.append(topic)
    return _request(transactional_id, acks, timeout_ms, topics) if at == size else None


def walk_flexible(view: memoryview, has_ids: bool) -> ProduceRequest | None:
    """Versions 9 and later: lengths are varints of the length plus one, structs end with tags."""
    text_size = view[0]
    at = text_size or 1
    if text_size > 127:
        return None
    transactional_id = str(view[1:at], "ascii") if text_size else None
    acks, timeout_ms = _FLEXIBLE_REST.unpack_from(view, at)
    count = view[at + 6]
    at += 7
    if count > 127:
        count, at = continue_uvarint(view, at, count)
    left = COUNT_MAX
    if not 0 < count <= left:
        return None
    topics = []
    name, topic_id = "", ZERO_UUID
    for _ in range(count - 1):
        if has_ids:
            topic_id = bytes(view[at : at + 16])
            at += 16
        else:
            end = at + view[at]
            name = str(view[at + 1 : end], "ascii")
            if end == at or end - at > 127:
                return None
            at = end
        count = view[at]
        at += 1
        if count > 127:
            count, at = continue_uvarint(view, at, count)
        left -= count
        if count == 0 or left < 0:
            return None
        partitions = []
        for _ in range(count - 1):
            # Three bytes of the length at once: enough for two megabytes of records.
            index, n, second, third = _FLEXIBLE_PARTITION.unpack_from(view, at)
            if n < 128:
                at += 5
            elif second < 128:
                n = n & 127 | second << 7
                at += 6
            elif third < 128:
                n = n & 127 | (second & 127) << 7 | third << 14
                at += 7
            else:
                n, at = continue_uvarint(view, at + 5, n)
            end = at + n - 1
            if n == 0 or view[end]:
                return None
            partition = _new(PartitionProduceData)
            partition.index = index
            partition.records = view[at:end]
            partitions.append(partition)
            at = end + 1
        if view[at]:
            return None
        at += 1
        topic = _new(TopicProduceData)
        topic.name = name
        topic.topic_id = topic_id
        topic.partition_data = partitions
        topics.append(topic)
    if view[at] or at + 1 != len(view):
        return None
    return _request(transactional_id, acks, timeout_ms, topics)


def _request(
    transactional_id: str | None, acks: int, timeout_ms: int, topics: list[TopicProduceData]
) -> ProduceRequest:
    request = _new(ProduceRequest)
    request.transactional_id = transactional_id
    request.acks = acks
    request.timeout_ms = timeout_ms
    request.topic_data = topics
    return request


# Responses

LOG_START_OFFSET: Final = 5
RECORD_ERRORS: Final = 8
LEADERS: Final = 10

_OUTCOME_3: Final = Struct(">ihqq")
_OUTCOME_5: Final = Struct(">ihqqq")


class ProducedPartition(NamedTuple):
    """The outcome for one partition: where its batch begins, or why it was refused."""

    partition_index: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: Sequence[tuple[int, str | None]] = ()
    """Records that were refused: their place in the batch, and why."""
    leader: Leader | None = None


class ProducedTopic(NamedTuple):
    """The outcome for one topic; a version writes its name or its id."""

    name: str
    topic_id: bytes
    partitions: Sequence[ProducedPartition]


def encode_response(
    version: int,
    topics: Sequence[ProducedTopic],
    *,
    throttle_time_ms: int = 0,
    nodes: Sequence[Node] = (),
) -> list[Buffer]:
    """The body of a response, as buffers for `ServerConnection.respond`."""
    is_flexible = version >= FLEXIBLE
    # An outcome without details ends with these bytes: no record errors, no message, no tags.
    ending = b"\x01\x00\x00" if is_flexible else b"\x00\x00\x00\x00\xff\xff"
    parts = [array_head(len(topics), is_flexible)]
    for name, topic_id, partitions in topics:
        parts.append(topic_id if version >= TOPIC_IDS else text(name, is_flexible))
        parts.append(array_head(len(partitions), is_flexible))
        for partition in partitions:
            index, code, base_offset, append_time, log_start, message, errors, leader = partition
            if version < LOG_START_OFFSET:
                parts.append(_OUTCOME_3.pack(index, code, base_offset, append_time))
            elif version < RECORD_ERRORS:
                parts.append(_OUTCOME_5.pack(index, code, base_offset, append_time, log_start))
            elif message is None and not errors and leader is None:
                parts += (
                    _OUTCOME_5.pack(index, code, base_offset, append_time, log_start),
                    ending,
                )
            else:
                _write_details(parts, version, partition)
        if is_flexible:
            parts.append(NO_TAGS)
    parts.append(_INT32.pack(throttle_time_ms))
    if is_flexible:
        parts.append(nodes_tags(nodes) if version >= LEADERS else NO_TAGS)
    return [b"".join(parts)]


def _write_details(parts: list[bytes], version: int, partition: ProducedPartition) -> None:
    """A partition, from v8 on, with record errors, a message or tagged fields."""
    index, code, base_offset, append_time, log_start, message, errors, leader = partition
    is_flexible = version >= FLEXIBLE
    parts.append(_OUTCOME_5.pack(index, code, base_offset, append_time, log_start))
    parts.append(array_head(len(errors), is_flexible))
    for batch_index, reason in errors:
        parts += (_INT32.pack(batch_index), nullable_text(reason, is_flexible))
        if is_flexible:
            parts.append(NO_TAGS)
    parts.append(nullable_text(message, is_flexible))
    if leader is not None and version >= LEADERS:
        parts += (b"\x01", leader_tag(0, leader))
    elif is_flexible:
        parts.append(NO_TAGS)


# One batch

Single = tuple[int, bytes, str | bytes, int, memoryview]
"""Acks; the topic as a response names it; its name, or its id from v13 on; partition; records."""

_LEAD: Final = Struct(">BhiBB")
_TOPICS_AT: Final = 7
_TOPIC_AT: Final = 8
_UUID_SIZE: Final = 16
_PARTITION: Final = Struct(">BiBBB")
_ONE: Final = 2
"""The length of a compact array with one element."""
_NO_TAGS: Final = memoryview(b"\x00\x00\x00")
"""The end of the partition, the topic and the request."""
# Partition, error code, base offset, append time, log start; neither record errors nor a message
# nor tags; the topic's tags; throttle time; tags.
_OUTCOME: Final = Struct(">ihqqqB2xxiB")


def decode_single(version: int, view: memoryview) -> Single | None:
    """The one batch of a request without a transactional id; None for any other request."""
    if not FLEXIBLE <= version <= VERSION_MAX:
        return None
    try:
        text_size, acks, _, topics, name_size = _LEAD.unpack_from(view)
        if text_size or topics != _ONE:
            return None
        topic: str | bytes
        if version >= TOPIC_IDS:
            at = _TOPIC_AT + _UUID_SIZE
            topic = bytes(view[_TOPIC_AT:at])
        else:
            if not 0 < name_size < 128:
                return None
            at = _TOPIC_AT + name_size
            topic = str(view[_TOPIC_AT + 1 : at], "ascii")
        partitions, index, n, second, third = _PARTITION.unpack_from(view, at)
    except (struct.error, ValueError):
        return None
    if n < 128:
        start = at + 6
    elif second < 128:
        n = n & 127 | second << 7
        start = at + 7
    elif third < 128:
        n = n & 127 | (second & 127) << 7 | third << 14
        start = at + 8
    else:
        return None
    end = start + n - 1
    if partitions != _ONE or n == 0 or view[end:] != _NO_TAGS:
        return None
    return acks, bytes(view[_TOPICS_AT : at + 1]), topic, index, view[start:end]


def encode_single(
    topic: bytes, index: int, base_offset: int, append_time_ms: int, log_start: int
) -> list[Buffer]:
    """The body of a response with the base offset of the batch."""
    outcome = _OUTCOME.pack(index, 0, base_offset, append_time_ms, log_start, 1, 0, 0)
    return [topic + outcome]
