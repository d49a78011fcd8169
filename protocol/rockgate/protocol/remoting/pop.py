"""The strings of pop: handles of messages, and the offsets acquired from each queue.

A client returns a handle to acknowledge a message or to change its invisible time:

    first offset | pop time | invisible time | revive queue | kind | broker | queue | offset

separated by spaces; clients before 5.0.1 omit the last one. Clients build it from the response to a
pop; for messages of a retry topic the broker writes it into the property POP_CK.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from rockgate.protocol import entry as envelope
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.command import Buffer
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.system_topics import RETRY_PREFIX

ORDER_REVIVE_QUEUE: Final = 999
"""The revive queue in handles of messages that are consumed in order."""
NORMAL: Final = "0"
RETRY: Final = "1"
RETRY_V2: Final = "2"
ACKS_BYTES_MAX: Final = 1 << 20
BITS_BYTES_MAX: Final = 64
"""The most bits of one entry: a pop has at most 32 messages, but a filter may skip many between."""
OFFSETS_MAX: Final = 32_768
"""Acknowledgements in one request."""
_NUMBER: Final = "(-?[0-9]{1,19})"
_WORD: Final = "([^ ]*)"
# One pattern for the whole: it is read for every message that is acknowledged.
_HANDLE: Final = re.compile(
    f"{_NUMBER} {_NUMBER} {_NUMBER} {_NUMBER} {_WORD} {_WORD} {_NUMBER}(?: {_NUMBER})?"
)


_new = tuple.__new__  # skips NamedTuple's constructor, which is as slow as the pattern


class Handle(NamedTuple):
    """One delivery of one message."""

    first_offset: int
    pop_ms: int
    invisible_ms: int
    revive_queue: int
    kind: str
    broker: str
    queue_id: int

    @property
    def deadline_ms(self) -> int:
        """Until when the message is invisible to others."""
        return self.pop_ms + self.invisible_ms

    @property
    def is_ordered(self) -> bool:
        """Whether the message is consumed in order."""
        return self.revive_queue == ORDER_REVIVE_QUEUE


def read_handle(text: str, request: str) -> Handle:
    """Parse a handle; MalformedRequest if it is invalid."""
    found = _HANDLE.fullmatch(text)
    if found is None:
        raise MalformedRequest(request, f"extraInfo {text[:100]!r} is not a handle")
    first, pop_ms, invisible_ms, revive, kind, broker, queue_id, _ = found.groups()
    numbers = int(first), int(pop_ms), int(invisible_ms), int(revive)
    return _new(Handle, (*numbers, kind, broker, int(queue_id)))


def write_handle(handle: Handle, offset: int) -> str:
    """Return the text of a handle for one offset."""
    return " ".join(map(str, (*handle, offset)))


def retry_topic(topic: str, group: str) -> str:
    """Return the retry topic of a group for a topic."""
    return f"{RETRY_PREFIX}{group}_{topic}"


def topic_of(topic: str, group: str, kind: str) -> str:
    """Return the topic of a message, by the kind in its handle."""
    if kind == NORMAL:
        return topic
    return f"{RETRY_PREFIX}{group}{'+' if kind == RETRY_V2 else '_'}{topic}"


def messages_in(buffers: Iterable[Buffer]) -> Iterator[tuple[int, memoryview]]:
    """Yield queue offset and bytes of each message of a response."""
    for buffer in buffers:
        view = memoryview(buffer)
        at = 0
        while at < len(view):
            size, _, _, offset = envelope.identify(view, at)
            yield offset, view[at : at + size]
            at += size


def offsets_in(buffers: Iterable[Buffer]) -> list[int]:
    """Return the queue offset of each message of a response."""
    identify = envelope.identify
    found = []
    for buffer in buffers:
        at, end = 0, len(buffer)
        while at < end:
            size, _, _, offset = identify(buffer, at)
            found.append(offset)
            at += size
    return found


class Acquired(NamedTuple):
    """What a pop acquired of one queue."""

    kind: str
    queue_id: int
    first_offset: int
    """Where the pop began to read."""
    offsets: Sequence[int]
    deliveries: Sequence[int] = ()
    """How often each was delivered before; only for ordered consumption."""


def start_offset_info(acquired: Iterable[Acquired]) -> str:
    """Return where the pop began in each queue."""
    return ";".join(f"{each.kind} {each.queue_id} {each.first_offset}" for each in acquired)


def message_offset_info(acquired: Iterable[Acquired]) -> str:
    """Return the offsets of each queue."""
    return ";".join(
        f"{each.kind} {each.queue_id} {','.join(map(str, each.offsets))}" for each in acquired
    )


def order_count_info(acquired: Iterable[Acquired]) -> str:
    """Return how often messages were delivered before, by offset and by queue.

    Clients before 5.1 use the number by queue only.
    """
    parts = []
    for each in acquired:
        for offset, count in zip(each.offsets, each.deliveries, strict=True):
            if count:
                parts.append(f"{each.kind} qo{each.queue_id}%{offset} {count}")
        parts.append(f"{each.kind} {each.queue_id} {min(each.deliveries, default=0)}")
    return ";".join(parts)


class BatchAck(msgspec.Struct, frozen=True, kw_only=True):
    """Acknowledgements of one pop of one queue: a bit set that starts at its first offset."""

    consumer_group: str = msgspec.field(name="c")
    topic: str = msgspec.field(name="t")
    retry: str = msgspec.field(name="r", default=NORMAL)
    start_offset: int = msgspec.field(name="so")
    queue_id: int = msgspec.field(name="q")
    revive_queue_id: int = msgspec.field(name="rq", default=0)
    pop_time: int = msgspec.field(name="pt")
    invisible_time: int = msgspec.field(name="it")
    bit_set: str = msgspec.field(name="b")
    """Java's BitSet as bytes, in base64."""

    def offsets(self) -> Iterator[int]:
        """Yield the offsets whose bits are set; MalformedRequest if they cannot be read."""
        try:
            bits = base64.b64decode(self.bit_set, validate=True)
        except (binascii.Error, ValueError):
            raise MalformedRequest("BATCH_ACK_MESSAGE", "b is not base64") from None
        if len(bits) > BITS_BYTES_MAX:
            raise MalformedRequest("BATCH_ACK_MESSAGE", f"b is {len(bits):,} bytes long")
        number = int.from_bytes(bits, "little")
        while number:
            low = number & -number
            yield self.start_offset + low.bit_length() - 1
            number ^= low


class BatchAckBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """200151: acknowledgements of many messages."""

    broker_name: str | None = None
    acks: list[BatchAck] = []


def read_batch_ack(body: Buffer) -> list[tuple[BatchAck, list[int]]]:
    """Decode 200151: each entry with its offsets; MalformedRequest if there are too many."""
    read = javajson.decode(body, BatchAckBody, "BATCH_ACK_MESSAGE", size_max=ACKS_BYTES_MAX)
    found = []
    count = 0
    for each in read.acks:
        offsets = list(each.offsets())
        count += len(offsets)
        if count > OFFSETS_MAX:
            raise MalformedRequest(
                "BATCH_ACK_MESSAGE", f"more than {OFFSETS_MAX:,} messages are acknowledged"
            )
        found.append((each, offsets))
    return found
