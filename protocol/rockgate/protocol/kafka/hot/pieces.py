"""Shared parts of the hand-written codecs: a limit, and the small fields of a response."""

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from rockgate.protocol.kafka.varint import uvarint

COUNT_MAX: Final = 1000
"""Elements that a hand decoder takes in all. The declared codec charges every element against the
memory that a message may use; up to this many, no message can come near that limit."""

TEXT_SIZE_MAX: Final = 0x7FFF
NO_TAGS: Final = b"\x00"

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_LEADER_TAG: Final = Struct(">BBiiB")


class Leader(NamedTuple):
    """Who leads a partition now, told to a client that asked the wrong broker."""

    leader_id: int
    leader_epoch: int


class Node(NamedTuple):
    """Where to reach a leader that a partition named."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


def text(value: str, is_flexible: bool) -> bytes:
    """A string behind its length."""
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
    """What leads an array of `count` elements."""
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
