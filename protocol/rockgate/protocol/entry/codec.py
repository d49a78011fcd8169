"""The hand-written codec of the envelope: packs into a segment, reads and verifies from one."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rockgate.protocol.entry.checksum import crc32
from rockgate.protocol.entry.format import (
    BORN_HOST_V6,
    CHECKSUM_NAME,
    CHECKSUM_SIZE,
    COUNT_MAX,
    HOST_SIZE_V4,
    HOST_SIZE_V6,
    INNER_NUM,
    MAGIC_BATCH,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    PROPERTY_END,
    STORE_HOST_V6,
    TOPIC_SIZE_V1_MAX,
    Buffer,
    EntryError,
)

_HEX_DIGITS_END: Final = 9  # eight digits and the separator, which the checksum does not cover
_COUNTED: Final = struct.Struct(f"{len(INNER_NUM)}s10sc")

# One struct reads everything up to the body, for each width of the two hosts.

_HEADS: Final = {
    flags: struct.Struct(
        f">IIIiiqqiq{HOST_SIZE_V6 if flags & BORN_HOST_V6 else HOST_SIZE_V4}s"
        f"q{HOST_SIZE_V6 if flags & STORE_HOST_V6 else HOST_SIZE_V4}siqI"
    )
    for flags in (0, BORN_HOST_V6, STORE_HOST_V6, BORN_HOST_V6 | STORE_HOST_V6)
}
HOST_FLAGS: Final = BORN_HOST_V6 | STORE_HOST_V6
_HEAD_V4: Final = _HEADS[0]
HEAD_SIZE_V4: Final = _HEAD_V4.size
MESSAGE_SIZE_V4: Final = HEAD_SIZE_V4 + 1 + 2 + CHECKSUM_SIZE
"""The fields that `pack_message` writes around topic, body and properties."""
_SIZE_AND_MAGIC: Final = struct.Struct(">II")
BODY_CRC_AT: Final = 8
POSITION_AT: Final = 28
SYS_FLAG_AT: Final = 36
_U32: Final = struct.Struct(">I")
_I8: Final = struct.Struct(">b")
_I16: Final = struct.Struct(">h")
_TOPIC_SIZES: Final = {MAGIC_V1: _I8, MAGIC_V2: _I16, MAGIC_BATCH: _I16}
_CHECKED: Final = struct.Struct(">III16xqi16xq20xI")
_TAIL_MIN: Final = 2 + 2 + CHECKSUM_SIZE
_new: Final = tuple.__new__  # the function that NamedTuple._make calls, called directly


class Entry(NamedTuple):
    """An entry's envelope as read; places are relative to the buffer it was read from."""

    total_size: int
    magic: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    position: int
    sys_flag: int
    born_ms: int
    born_host: bytes
    store_ms: int
    store_host: bytes
    reconsume_times: int
    prepared_offset: int
    body_size: int
    start: int
    body_at: int
    topic: bytes
    properties_at: int
    properties_size: int
    offset_count: int

    @property
    def end(self) -> int:
        """Where the entry ends in the buffer it was read from."""
        return self.start + self.total_size

    @property
    def is_batch(self) -> bool:
        """Whether this is a batch entry."""
        return self.magic == MAGIC_BATCH


def head_size(sys_flag: int) -> int:
    """Return the size of everything before the body."""
    return _HEADS[sys_flag & HOST_FLAGS].size


def topic_magic(topic: bytes) -> int:
    """Return the magic of a message entry for a topic of this length."""
    return MAGIC_V1 if len(topic) <= TOPIC_SIZE_V1_MAX else MAGIC_V2


def pack_head(
    total_size: int,
    magic: int,
    body_crc: int,
    queue_id: int,
    flag: int,
    queue_offset: int,
    position: int,
    sys_flag: int,
    born_ms: int,
    born_host: bytes,
    store_ms: int,
    store_host: bytes,
    reconsume_times: int,
    prepared_offset: int,
    body_size: int,
) -> bytes:
    """Pack everything before the body. The hosts' widths must agree with `sys_flag`."""
    # The struct would silently truncate or pad a host of another width.
    assert len(born_host) == (HOST_SIZE_V6 if sys_flag & BORN_HOST_V6 else HOST_SIZE_V4)
    assert len(store_host) == (HOST_SIZE_V6 if sys_flag & STORE_HOST_V6 else HOST_SIZE_V4)
    return _HEADS[sys_flag & HOST_FLAGS].pack(
        total_size,
        magic,
        body_crc,
        queue_id,
        flag,
        queue_offset,
        position,
        sys_flag,
        born_ms,
        born_host,
        store_ms,
        store_host,
        reconsume_times,
        prepared_offset,
        body_size,
    )


def tail_size(topic: bytes, properties: bytes, magic: int) -> int:
    """Return the size of everything after the body, checksum included.

    `properties` must be empty or end with PROPERTY_END, and must not hold a checksum yet.
    """
    return _TOPIC_SIZES[magic].size + len(topic) + 2 + len(properties) + CHECKSUM_SIZE


def pack_tail(head: bytes, topic: bytes, properties: bytes, magic: int) -> bytes:
    """Pack everything after the body; the head must be final, because the checksum covers it."""
    prefix = _TOPIC_SIZES[magic].pack(len(topic))
    size = _I16.pack(len(properties) + CHECKSUM_SIZE)
    covered = b"".join((prefix, topic, size, properties, CHECKSUM_NAME))
    return b"%b%08x\x02" % (covered, crc32(covered, crc32(head)))


def pack_message(
    size: int,
    topic: bytes,
    queue_id: int,
    offset: int,
    body: Buffer,
    properties: bytes,
    born_ms: int,
    born_host: bytes,
    flag: int,
    sys_flag: int,
    reconsume_times: int,
    prepared_offset: int,
    position: int,
    store_ms: int,
    store_host: bytes,
) -> bytes:
    """Pack a whole message of a short topic, with two IPv4 hosts; its size must be right."""
    assert len(born_host) == len(store_host) == HOST_SIZE_V4
    head = _HEAD_V4.pack(
        size,
        MAGIC_V1,
        crc32(body) & 0x7FFFFFFF,
        queue_id,
        flag,
        offset,
        position,
        sys_flag,
        born_ms,
        born_host,
        store_ms,
        store_host,
        reconsume_times,
        prepared_offset,
        len(body),
    )
    return b"".join((head, body, pack_tail(head, topic, properties, MAGIC_V1)))


def batch_properties(count: int, base_offset: int, properties: bytes = b"") -> bytes:
    """Return a batch entry's properties: its count first, in ten digits, then its base offset."""
    return b"INNER_NUM\x01%010d\x02INNER_BASE\x01%d\x02%b" % (count, base_offset, properties)


def body_checksum(body: Buffer) -> int:
    """Return bodyCRC as RocketMQ computes it: CRC-32 without its highest bit."""
    return crc32(body) & 0x7FFFFFFF


def pack_blank(size: int) -> bytes:
    """Return the filler that ends a segment: its size covers the rest of the segment."""
    return _SIZE_AND_MAGIC.pack(size, MAGIC_BLANK)


def peek(buffer: Buffer, at: int) -> tuple[int, int]:
    """Return size and magic of the entry at `at`, unchecked; eight bytes must be available."""
    return _SIZE_AND_MAGIC.unpack_from(buffer, at)


def read(buffer: Buffer, at: int = 0, limit: int | None = None) -> Entry:
    """Read the envelope that starts at `at` and ends at or before `limit`.

    Every length is checked against the entry's own size and the available bytes. The checksums are
    not computed; `check` does that.
    """
    end_max = len(buffer) if limit is None else limit
    if end_max - at < HEAD_SIZE_V4:
        raise EntryError(f"{end_max - at} bytes left; an entry head is {HEAD_SIZE_V4}")
    fields = _HEAD_V4.unpack_from(buffer, at)
    body_at = at + HEAD_SIZE_V4
    if fields[7] & HOST_FLAGS:
        fields = _read_wide_head(buffer, at, end_max, fields[7])
        body_at = at + _HEADS[fields[7] & HOST_FLAGS].size
    total_size, magic, body_size = fields[0], fields[1], fields[14]
    end = at + total_size
    if end > end_max:
        raise EntryError(f"entry size {total_size} exceeds the {end_max - at} bytes left")
    if (topic_sizes := _TOPIC_SIZES.get(magic)) is None:
        raise EntryError(f"unknown magic {magic:#010x}")
    topic_at = body_at + body_size + topic_sizes.size
    if topic_at > end:
        raise EntryError(f"body size {body_size} exceeds the entry size {total_size}")
    (topic_size,) = topic_sizes.unpack_from(buffer, topic_at - topic_sizes.size)
    topic_end = topic_at + topic_size
    if topic_size < 0 or topic_end + 2 > end:
        raise EntryError(f"topic size {topic_size} exceeds the entry size {total_size}")
    (properties_size,) = _I16.unpack_from(buffer, topic_end)
    properties_at = topic_end + 2
    if properties_at + properties_size != end:
        raise EntryError(f"properties size {properties_size} does not match the end of the entry")
    count = _read_count(buffer, properties_at, end) if magic == MAGIC_BATCH else 1
    topic = bytes(buffer[topic_at:topic_end])
    places = (at, body_at, topic, properties_at, properties_size, count)
    return _new(Entry, fields + places)


def _read_wide_head(buffer: Buffer, at: int, end_max: int, flags: int) -> tuple[Any, ...]:
    head = _HEADS[flags & HOST_FLAGS]
    if at + head.size > end_max:
        raise EntryError(f"{end_max - at} bytes left; its head is {head.size}")
    return head.unpack_from(buffer, at)


def verify(view: memoryview, at: int, limit: int, position: int) -> tuple[int, int, int]:
    """Read and check the entry expected at a position; return size, flags and store time.

    This is `read` and `check` for scans of millions of entries: no object is created for a valid
    entry of the usual shape, and any other is passed to those two. Raises EntryError as they do.
    """
    if limit - at > HEAD_SIZE_V4:
        head = _CHECKED.unpack_from(view, at)
        size, magic, body_crc, its_position, flags, store_ms, body_size = head
        topic_sizes = _TOPIC_SIZES.get(magic)
        tail_at = at + HEAD_SIZE_V4 + body_size
        end = at + size
        if (
            topic_sizes is not None
            and its_position == position
            and not flags & HOST_FLAGS
            and tail_at + _TAIL_MIN <= end <= limit
        ):
            (topic_size,) = topic_sizes.unpack_from(view, tail_at)
            topic_end = tail_at + topic_sizes.size + topic_size
            if (
                topic_size >= 0
                and topic_end + 2 + CHECKSUM_SIZE <= end
                and _I16.unpack_from(view, topic_end)[0] == end - topic_end - 2
                and (magic != MAGIC_BATCH or _read_count(view, topic_end + 2, end))
            ):
                body_at = at + HEAD_SIZE_V4
                digits_at = end - _HEX_DIGITS_END
                computed = crc32(view[tail_at:digits_at], crc32(view[at:body_at]))
                if (
                    view[digits_at:end] == b"%08x\x02" % computed
                    and crc32(view[body_at:tail_at]) & 0x7FFFFFFF == body_crc
                ):
                    return size, flags, store_ms
    entry = read(view, at, limit)
    if entry.position != position:
        raise EntryError(f"entry claims position {entry.position}")
    check(view, entry)
    return entry.total_size, entry.sys_flag, entry.store_ms


# Loops of readers inspect every entry with one of these two. They are methods of a struct and not
# functions, because a call would cost more than the read.
identify: Final[Callable[..., tuple[int, int, int, int]]] = struct.Struct(">II4xi4xq").unpack_from
"""Return size, magic, queue id and offset of the entry in a buffer, at 0 or at a given place."""

identify_body: Final[Callable[..., tuple[int, int, int, int, int, int]]] = struct.Struct(
    f">II4xi4xq8xi{HEAD_SIZE_V4 - SYS_FLAG_AT - 8}xI"
).unpack_from
"""Return the same, the flags, and the size of the body, if no flag is one of `HOST_FLAGS`: with
longer hosts in the head the body starts later, and `places` computes where."""


def places(buffer: Buffer, at: int) -> tuple[int, int, int, int, int, int]:
    """Return size, magic, queue id, offset, and place and size of the body of the entry at `at`.

    Only the room for a head is checked: a reader compares the fields it knows, and trusts the rest
    of an entry that was complete when it was written.
    """
    size, magic, queue_id, offset, flags, body_size = identify_body(buffer, at)
    if not flags & HOST_FLAGS:
        return size, magic, queue_id, offset, at + HEAD_SIZE_V4, body_size
    body_at = at + _HEADS[flags & HOST_FLAGS].size
    (body_size,) = _U32.unpack_from(buffer, body_at - 4)
    return size, magic, queue_id, offset, body_at, body_size


def body_of(view: memoryview) -> memoryview:
    """Return the body of one complete entry that is known to be valid."""
    (flags,) = _U32.unpack_from(view, SYS_FLAG_AT)
    body_at = _HEADS[flags & HOST_FLAGS].size
    (size,) = _U32.unpack_from(view, body_at - 4)
    return view[body_at : body_at + size]


def _read_count(buffer: Buffer, at: int, end: int) -> int:
    if at + _COUNTED.size <= end:
        name, digits, last = _COUNTED.unpack_from(buffer, at)
        if name == INNER_NUM and last == PROPERTY_END:
            if not digits.isdigit() or not 0 < (count := int(digits)) <= COUNT_MAX:
                raise EntryError(f"INNER_NUM {digits!r} is not a count")
            return count
    raise EntryError("properties of a batch entry do not start with INNER_NUM")


def check(buffer: Buffer, entry: Entry) -> None:
    """Compare both checksums of an entry that `read` returned; raise EntryError if one differs."""
    end = entry.end
    digits_at = end - _HEX_DIGITS_END
    if entry.properties_size < CHECKSUM_SIZE:
        raise EntryError("entry has no checksum")
    view = memoryview(buffer)
    tail_at = entry.body_at + entry.body_size
    computed = crc32(view[tail_at:digits_at], crc32(view[entry.start : entry.body_at]))
    if bytes(view[digits_at:end]) != b"%08x\x02" % computed:
        raise EntryError(f"entry checksum mismatch, computed {computed:08x}")
    if body_checksum(view[entry.body_at : tail_at]) != entry.body_crc:
        raise EntryError(f"body checksum mismatch, stored {entry.body_crc:08x}")
