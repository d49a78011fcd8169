"""Hand-written codecs of small fields: varints, strings, array lengths, and tags with a leader.

A varint has seven bits a byte, least significant first, the top bit set while more follow. Flexible
messages use it for every length, count and tag. It is bounded here: five bytes, 32 bits. A peer may
pad one with empty groups, as Kafka allows; it may not go past the fifth byte.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

UVARINT_SIZE_MAX = 5
_UVARINT_MAX = 0xFFFFFFFF

Buffer = bytes | bytearray | memoryview

_SHORT = tuple(bytes((value,)) for value in range(128))

COUNT_MAX: Final = 1000
"""The most elements that a hand-written decoder accepts. The declared codec charges every element
against the memory that a message may use; up to this many, no message can come near that limit."""

TEXT_SIZE_MAX: Final = 0x7FFF
NO_TAGS: Final = b"\x00"

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_LEADER_TAG: Final = Struct(">BBiiB")


# Varints


def read_uvarint(data: Buffer, at: int) -> tuple[int, int]:
    """Read the varint at `at`: its value and the place after it.

    IndexError when the bytes end first, ValueError when it is longer than five bytes or 32 bits.
    """
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    return continue_uvarint(data, at + 1, byte)


def continue_uvarint(data: Buffer, at: int, first: int) -> tuple[int, int]:
    """Read the rest of a varint whose first byte was read already and has its top bit set."""
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > _UVARINT_MAX:
                raise ValueError("varint over 32 bits")
            return value, at
    raise ValueError("varint over 5 bytes")


def uvarint(value: int) -> bytes:
    """The shortest varint of `value`, which must fit 32 bits."""
    if 0 <= value < 128:
        return _SHORT[value]
    if not 0 <= value <= _UVARINT_MAX:
        raise ValueError(f"varint out of range: {value}")
    # Two and three bytes hold the size of nearly every record batch.
    if value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    if value < 1 << 21:
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


# Responses


class Leader(NamedTuple):
    """The current leader of a partition, for a client that asked the wrong broker."""

    leader_id: int
    leader_epoch: int


class Node(NamedTuple):
    """The address of a leader that a partition names."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


def text(value: str, is_flexible: bool) -> bytes:
    """A string preceded by its length."""
    data = value.encode()
    size = len(data)
    if size > TEXT_SIZE_MAX:
        raise ValueError(f"text of {size} bytes")
    return (uvarint(size + 1) if is_flexible else _INT16.pack(size)) + data


def nullable_text(value: str | None, is_flexible: bool) -> bytes:
    """A string that may be null."""
    if value is None:
        return b"\x00" if is_flexible else b"\xff\xff"
    return text(value, is_flexible)


def array_head(count: int, is_flexible: bool) -> bytes:
    """The length field of an array of `count` elements."""
    return uvarint(count + 1) if is_flexible else _INT32.pack(count)


def leader_tag(tag: int, leader: Leader) -> bytes:
    """A partition's current leader as a tagged field."""
    return _LEADER_TAG.pack(tag, 9, leader.leader_id, leader.leader_epoch, 0)


def nodes_tags(nodes: Sequence[Node]) -> bytes:
    """The tags that end a response: none, or the endpoints of the leaders it names as tag 0."""
    if not nodes:
        return NO_TAGS
    parts = [uvarint(len(nodes) + 1)]
    for node_id, host, port, rack in nodes:
        parts += (
            _INT32.pack(node_id),
            text(host, True),
            _INT32.pack(port),
            nullable_text(rack, True),
            NO_TAGS,
        )
    body = b"".join(parts)
    return b"\x01\x00" + uvarint(len(body)) + body
