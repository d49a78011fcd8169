"""What the members of a group subscribe to, as far as the server can tell.

Subscriptions belong to the clients. Those of protocol type `consumer` have a form that all clients
share: version, topics, and more that does not matter here. One that cannot be decoded counts as
empty.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rockgate.gateway.kafka.groups.view import GroupView

CONSUMER: Final = "consumer"
_HEAD: Final = struct.Struct(">hi")
_SIZE: Final = struct.Struct(">h")


def topics_of(metadata: bytes) -> list[str]:
    """The topics in a consumer's subscription; none if it cannot be decoded."""
    if len(metadata) < _HEAD.size:
        return []
    version, count = _HEAD.unpack_from(metadata)
    # Each name takes two bytes at least, which bounds the count by the size.
    if version < 0 or not 0 <= count <= len(metadata) // _SIZE.size:
        return []
    topics = []
    at = _HEAD.size
    for _ in range(count):
        if len(metadata) - at < _SIZE.size:
            return []
        (size,) = _SIZE.unpack_from(metadata, at)
        at += _SIZE.size
        name = metadata[at : at + size] if size >= 0 else b""
        if len(name) != size:
            return []
        topics.append(name.decode("utf-8", "replace"))
        at += size
    return topics


def subscribed(view: GroupView) -> frozenset[str] | None:
    """The topics that a group reads; None if that is unknown for some members."""
    if view.state.value == "Empty":
        return frozenset()
    if view.topics is not None:
        return view.topics()
    if view.protocol_type != CONSUMER:
        return None
    found: set[str] = set()
    for member in view.members:
        # Before the vote any of its protocols may count; usually they name the same topics.
        for _, metadata in member.protocols:
            found.update(topics_of(metadata))
    return frozenset(found)
