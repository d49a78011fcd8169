"""Messages on the wire: in full in a pull response, abbreviated in a batch send.

A message in a response has the envelope of `protocol.entry`, the format of the log: a server sends
the bytes of the log unchanged. `decode` is for callers that need the fields (the SDK, and sometimes
the gateway); `encode` writes a message that is not in the log.

A batch send's body is its messages one after another in a shorter form:

    size 4 | magic 4 | bodyCRC 4 | flag 4 | body size 4, body | properties size 2, properties
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import Content, Contents, EntryError, parse_properties, unpack_host
from rockgate.protocol.remoting.command import Buffer
from rockgate.protocol.remoting.compression import SIZE_MAX, compression_of, decompress
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.ids import offset_message_id
from rockgate.protocol.remoting.properties import KEY_SEPARATOR, KEYS, TAGS

_BATCHED: Final = struct.Struct(">iIIii")
_U16: Final = struct.Struct(">H")
_ALIKE_SIZE_MAX: Final = 16 * 1024
"""Up to here copying a message's body costs less than handling each message separately."""
_TOPIC_V1: Final = struct.Struct(">b")
_TOPIC_V2: Final = struct.Struct(">h")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A received message: what its producer set, and where and when it was stored."""

    topic: str
    body: bytes
    properties: dict[str, str] = field(default_factory=dict)
    flag: int = 0
    sys_flag: int = 0
    queue_id: int = 0
    queue_offset: int = 0
    position: int = 0
    born_ms: int = 0
    born_host: tuple[bytes, int] = (b"\0\0\0\0", 0)
    store_ms: int = 0
    store_host: tuple[bytes, int] = (b"\0\0\0\0", 0)
    reconsume_times: int = 0
    prepared_offset: int = 0
    body_crc: int = 0
    size: int = 0

    @property
    def offset_message_id(self) -> str:
        """The offset message id."""
        return offset_message_id(*self.store_host, self.position)

    @property
    def message_id(self) -> str:
        """The unique id from its producer, or else the offset message id."""
        return self.properties.get("UNIQ_KEY") or self.offset_message_id

    @property
    def tag(self) -> str | None:
        """The tag that its producer gave it."""
        return self.properties.get(TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys by which it can be looked up."""
        return tuple(filter(None, self.properties.get(KEYS, "").split(KEY_SEPARATOR)))


def decode(data: Buffer, at: int = 0, *, size_max: int = SIZE_MAX) -> Message:
    """The message that starts at `at`, its body decompressed; MalformedContent if it is invalid."""
    try:
        read = envelope.read(data, at)
    except EntryError as wrong:
        raise MalformedContent(f"Message at byte {at} is invalid: {wrong.reason}.") from None
    if read.is_batch:
        raise MalformedContent(f"Message at byte {at} is a batch.")
    body = bytes(data[read.body_at : read.body_at + read.body_size])
    kind = compression_of(read.sys_flag)
    packed = bytes(data[read.properties_at : read.properties_at + read.properties_size])
    return Message(
        topic=read.topic.decode("utf-8", "surrogateescape"),
        body=body if kind is None else decompress(body, kind, size_max=size_max),
        properties=parse_properties(packed),
        flag=read.flag,
        sys_flag=read.sys_flag,
        queue_id=read.queue_id,
        queue_offset=read.queue_offset,
        position=read.position,
        born_ms=read.born_ms,
        born_host=unpack_host(read.born_host),
        store_ms=read.store_ms,
        store_host=unpack_host(read.store_host),
        reconsume_times=read.reconsume_times,
        prepared_offset=read.prepared_offset,
        body_crc=read.body_crc,
        size=read.total_size,
    )


def decode_all(data: Buffer, *, size_max: int = SIZE_MAX) -> Iterator[Message]:
    """All messages of a pull's response; `size_max` bounds their total decompressed size."""
    at, left = 0, size_max
    while at < len(data):
        message = decode(data, at, size_max=left)
        yield message
        left -= len(message.body)
        at += message.size


def encode(
    *,
    topic: bytes,
    body: Buffer,
    properties: bytes,
    queue_id: int,
    queue_offset: int,
    position: int,
    born_ms: int,
    born_host: bytes,
    store_ms: int,
    store_host: bytes,
    flag: int = 0,
    sys_flag: int = 0,
    reconsume_times: int = 0,
    prepared_offset: int = 0,
) -> bytes:
    """A message's bytes for a response, without the checksum that ends an entry in the log.

    Hosts are packed (`entry.pack_host`); their widths must agree with `sys_flag`.
    """
    magic = envelope.topic_magic(topic)
    prefix = _TOPIC_V1 if magic == envelope.MAGIC_V1 else _TOPIC_V2
    tail = prefix.pack(len(topic)) + topic + _U16.pack(len(properties)) + properties
    head = envelope.pack_head(
        total_size=envelope.head_size(sys_flag) + len(body) + len(tail),
        magic=magic,
        body_crc=envelope.body_checksum(body),
        queue_id=queue_id,
        flag=flag,
        queue_offset=queue_offset,
        position=position,
        sys_flag=sys_flag,
        born_ms=born_ms,
        born_host=born_host,
        store_ms=store_ms,
        store_host=store_host,
        reconsume_times=reconsume_times,
        prepared_offset=prepared_offset,
        body_size=len(body),
    )
    return b"".join((head, body, tail))


def decode_batch(data: Buffer, *, count_max: int = 1_000_000) -> Contents:
    """The messages of a batch send's body; every size is checked before it is used."""
    view = memoryview(data)
    alike = _decode_alike(view, count_max)
    if alike is not None:
        return alike
    found: list[Content] = []
    at, end, least = 0, len(view), _BATCHED.size + 2
    while at < end:
        if len(found) == count_max:
            raise MalformedContent(f"Batch has more than {count_max:,} messages.")
        if end - at < least:
            raise MalformedContent(f"Message {len(found)} of the batch is truncated at byte {at}.")
        size, _, _, flag, body_size = _BATCHED.unpack_from(view, at)
        if not least <= size <= end - at or not 0 <= body_size <= size:
            raise MalformedContent(
                f"Message {len(found)} of the batch has size {size} at byte {at}."
            )
        body_at = at + _BATCHED.size
        body_end = body_at + body_size
        at += size
        if body_end + 2 > at:
            raise MalformedContent(
                f"Message {len(found)} of the batch has a body of {body_size} bytes."
            )
        properties = bytes(view[body_end:at])
        if int.from_bytes(properties[:2], "big") != len(properties) - 2:
            raise MalformedContent(
                f"Message {len(found)} of the batch has properties of "
                f"{int.from_bytes(properties[:2], 'big')} bytes."
            )
        found.append((flag, view[body_at:body_end], properties[2:]))
    return Contents.of(found)


def _decode_alike(view: memoryview, count_max: int) -> Contents | None:
    """The messages, if all their parts have the same sizes, as they often do."""
    if len(view) < _BATCHED.size + 2:
        return None
    size, _, _, _, body_size = _BATCHED.unpack_from(view)
    properties_size = size - _BATCHED.size - 2 - body_size
    if size <= 0 or body_size < 0 or properties_size < 0 or len(view) % size:
        return None
    if len(view) // size > count_max or size > _ALIKE_SIZE_MAX:
        return None
    rows = struct.iter_unpack(f">i8xii{body_size}sH{properties_size}s", view)
    sizes, flags, body_sizes, bodies, rests, properties = zip(*rows, strict=True)
    count = len(sizes)
    if (
        sizes.count(size) != count
        or body_sizes.count(body_size) != count
        or rests.count(properties_size) != count
    ):
        return None
    return Contents(flags, bodies, properties, is_alike=True)


def encode_batch(messages: Iterable[tuple[int, bytes, bytes]]) -> bytes:
    """The body of a batch send, from each message's flag, body and packed properties."""
    parts: list[bytes] = []
    for flag, body, properties in messages:
        size = _BATCHED.size + len(body) + 2 + len(properties)
        parts += (
            _BATCHED.pack(size, 0, 0, flag, len(body)),
            body,
            _U16.pack(len(properties)),
            properties,
        )
    return b"".join(parts)
