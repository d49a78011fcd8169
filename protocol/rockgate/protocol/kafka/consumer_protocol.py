"""The consumer protocol of classic groups: subscription and assignment.

To JoinGroup and SyncGroup these are opaque bytes. A server decodes them only to see which topics a
group reads (OffsetDelete refuses those) or to take over a classic group's state. They start with
their version. One above 3 is read as 3, because newer versions only append fields.
"""

from struct import Struct
from typing import Any, TypeVar

from rockgate.protocol.kafka.errors import MalformedMessage
from rockgate.protocol.kafka.fields import Buffer
from rockgate.protocol.kafka.schema import (
    Array,
    Int32,
    NullableBytes,
    NullableString,
    String,
    decode,
    encode,
    field,
    message,
    struct,
)

T = TypeVar("T")

VERSION_MAX = 3
_VERSION = Struct(">h")


@struct
class TopicPartition:
    """Partitions of one topic."""

    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(versions="0-3", flexible="none")
class ConsumerProtocolSubscription:
    """The topics a member wants, and what it owned before."""

    topics: list[str] = field(Array(String))
    user_data: bytes | None = field(NullableBytes, default=None)
    owned_partitions: list[TopicPartition] = field(Array(TopicPartition), "1+")
    generation_id: int = field(Int32, "2+", default=-1)
    rack_id: str | None = field(NullableString, "3+", default=None)


@message(versions="0-3", flexible="none")
class ConsumerProtocolAssignment:
    """What the leader gave to a member."""

    assigned_partitions: list[TopicPartition] = field(Array(TopicPartition))
    user_data: bytes | None = field(NullableBytes, default=None)


def decode_subscription(data: Buffer) -> ConsumerProtocolSubscription:
    """The metadata of a JoinGroup protocol; MalformedMessage if it is something else."""
    return _decode(ConsumerProtocolSubscription, data)


def decode_assignment(data: Buffer) -> ConsumerProtocolAssignment:
    """The assignment of a SyncGroup; MalformedMessage if it is something else."""
    return _decode(ConsumerProtocolAssignment, data)


def encode_versioned(value: Any, version: int) -> bytes:
    """A subscription or an assignment preceded by its version."""
    return _VERSION.pack(version) + encode(value, version)


def _decode(message_type: type[T], data: Buffer) -> T:
    name = message_type.__name__
    if len(data) < _VERSION.size:
        raise MalformedMessage(name, 0, "", f"truncated at {len(data)} bytes")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise MalformedMessage(name, version, "", "negative version")
    return decode(message_type, min(version, VERSION_MAX), memoryview(data)[_VERSION.size :])
