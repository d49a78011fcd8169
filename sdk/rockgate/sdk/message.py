"""What is sent, what came of it, and what no broker would take.

    Message("orders", b"…", tag="paid", keys=["o-1"], delay=timedelta(minutes=30))

A message is checked before anything is sent: names, sizes and settings that a broker would refuse
are InvalidMessage here, and say what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Final, TypeAlias

from rockgate.protocol.entry import pack_properties
from rockgate.protocol.remoting import properties as names
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.sdk.errors import InvalidMessage
from rockgate.sdk.routes import Queue

Delay: TypeAlias = int | timedelta | datetime
"""One of RocketMQ's 18 levels, how long, or when (with its time zone)."""

TOPIC_SIZE_MAX: Final = 127
GROUP_SIZE_MAX: Final = 255
PROPERTIES_SIZE_MAX: Final = 32_767
LEVEL_MAX: Final = 18
_NAME: Final = re.compile(r"[%|a-zA-Z0-9_.-]+")
RESERVED: Final = frozenset(
    value
    for name, value in vars(names).items()
    if name.isupper() and isinstance(value, str) and name != "KEY_SEPARATOR"
)
"""Properties that RocketMQ gives a meaning: they are set by what has that meaning here."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to send. Nothing of it is changed by sending it."""

    topic: str
    body: bytes
    tag: str | None = field(default=None, kw_only=True)
    keys: Sequence[str] = field(default=(), kw_only=True)
    """By these it can be looked up."""
    properties: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    delay: Delay | None = field(default=None, kw_only=True)
    flag: int = field(default=0, kw_only=True)
    """A number of the application's own."""


class SendStatus(IntEnum):
    """How safe a message is that was stored."""

    OK = ResponseCode.SUCCESS
    FLUSH_DISK_TIMEOUT = ResponseCode.FLUSH_DISK_TIMEOUT
    SLAVE_NOT_AVAILABLE = ResponseCode.SLAVE_NOT_AVAILABLE
    FLUSH_SLAVE_TIMEOUT = ResponseCode.FLUSH_SLAVE_TIMEOUT


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """Where a message lies now."""

    status: SendStatus
    message_id: str
    """Made here before it was sent."""
    offset_message_id: str
    """Where it lies, as its broker says it."""
    queue: Queue
    offset: int
    transaction_id: str | None = None
    recall_handle: str | None = None


def check_group(group: str) -> None:
    """Refuse a name that no group can have."""
    _check_name("group", group, GROUP_SIZE_MAX)


def check(message: Message, body_size_max: int) -> None:
    """Refuse what no broker would take."""
    _check_name("topic", message.topic, TOPIC_SIZE_MAX)
    if not isinstance(message.body, bytes | bytearray | memoryview):
        raise InvalidMessage(f"the body is {type(message.body).__name__}, not bytes")
    if not len(message.body):
        raise InvalidMessage("the body is empty")
    if len(message.body) > body_size_max:
        raise InvalidMessage(f"the body has {len(message.body)} bytes, {body_size_max} may be")
    if not -(2**31) <= message.flag < 2**31:
        raise InvalidMessage(f"flag {message.flag} is no 32-bit number")
    if isinstance(message.keys, str):
        raise InvalidMessage("keys is a text, not a list of texts")
    for key in message.keys:
        if not key or names.KEY_SEPARATOR in key:
            raise InvalidMessage(f"key {key!r} is empty or holds a space")
    if message.tag is not None and (not message.tag.strip() or "|" in message.tag):
        raise InvalidMessage(f"tag {message.tag!r} is blank or holds |")
    for name in message.properties:
        if name in RESERVED:
            raise InvalidMessage(f"property {name} has a meaning of its own in RocketMQ")


def pack(message: Message, message_id: str, now_ms: int, more: Mapping[str, str]) -> bytes:
    """The properties of a message as they travel."""
    found = dict(message.properties)
    if message.tag is not None:
        found[names.TAGS] = message.tag
    if message.keys:
        found[names.KEYS] = names.KEY_SEPARATOR.join(message.keys)
    if message.delay is not None:
        found.update(_delaying(message.delay, now_ms))
    found[names.UNIQUE_KEY] = message_id
    found[names.WAIT_STORE_OK] = "true"
    found.update(more)
    try:
        packed = pack_properties(found.items())
        packed.decode()
    except UnicodeDecodeError:
        raise InvalidMessage("a property holds what is no text") from None
    except (ValueError, AttributeError, TypeError) as wrong:
        raise InvalidMessage(str(wrong)) from None
    if len(packed) > PROPERTIES_SIZE_MAX:
        raise InvalidMessage(
            f"the properties have {len(packed)} bytes, {PROPERTIES_SIZE_MAX} may be"
        )
    return packed


def _delaying(delay: Delay, now_ms: int) -> dict[str, str]:
    if isinstance(delay, datetime):
        if delay.tzinfo is None:
            raise InvalidMessage(f"delay until {delay}: it has no time zone")
        return {names.TIMER_DELIVER_MS: str(round(delay.timestamp() * 1000))}
    if isinstance(delay, timedelta):
        if delay < timedelta():
            raise InvalidMessage(f"delay of {delay}: it is negative")
        return {names.TIMER_DELIVER_MS: str(now_ms + delay // timedelta(milliseconds=1))}
    if isinstance(delay, bool) or not isinstance(delay, int) or not 1 <= delay <= LEVEL_MAX:
        raise InvalidMessage(f"delay level {delay!r} is none of 1 to {LEVEL_MAX}")
    return {names.DELAY_LEVEL: str(delay)}


def _check_name(what: str, name: str, size_max: int) -> None:
    if not name or not name.strip():
        raise InvalidMessage(f"the {what} is blank")
    if len(name) > size_max:
        raise InvalidMessage(f"the {what} has {len(name)} characters, {size_max} may be")
    if not _NAME.fullmatch(name):
        raise InvalidMessage(f"the {what} {name!r} has characters other than %|a-zA-Z0-9_.-")
