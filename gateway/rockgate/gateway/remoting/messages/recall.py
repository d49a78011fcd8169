"""Recall handles: how a client identifies a delayed message that it may recall.

A handle is base64 of five words, `v1 topic broker time id`, as RocketMQ 5.4 writes it; a client
reads the broker's name out of it. The id here is the unique key and, behind `@`, the offset at
which the message waits. A handle proves nothing: the message found there is compared with it.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NamedTuple

from rockgate.gateway.delay.headers import AT, FROM_NOW, LEVEL
from rockgate.protocol.entry import parse_properties

VERSION: Final = "v1"
SIZE_MAX: Final = 4096
_TIMES: Final = (*FROM_NOW, *AT)


class Handle(NamedTuple):
    """A decoded handle."""

    topic: str
    unique_key: str
    offset: int


def make_handle(topic: str, broker: str, properties: str, offset: int, store_ms: int) -> str | None:
    """Return the handle of a message; None if it is not delayed to a time."""
    if not any(name in properties for name in _TIMES):
        return None
    found = parse_properties(properties.encode("utf-8", "surrogatepass"))
    key = found.get("UNIQ_KEY", "")
    if found.get(LEVEL, "0") != "0" or not key or " " in key or "@" in key:
        return None
    time = next((found[name] for name in AT if name in found), str(store_ms))
    words = f"{VERSION} {topic} {broker} {time} {key}@{offset}"
    return urlsafe_b64encode(words.encode()).decode()


def read_handle(text: str) -> Handle | None:
    """Decode a handle; None if it is not one of ours."""
    if len(text) > SIZE_MAX:
        return None
    try:
        words = urlsafe_b64decode(text.encode()).decode().split(" ")
    except ValueError:
        return None
    if len(words) != 5 or words[0] != VERSION:
        return None
    key, _, offset = words[4].rpartition("@")
    if not key or not offset.isascii() or not offset.isdigit() or len(offset) > 18:
        return None
    return Handle(words[1], key, int(offset))
