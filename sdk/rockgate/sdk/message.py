"""Messages to send, their results, and the checks against what no broker accepts.

    Message("orders", b"…", tag="paid", keys=["o-1"], delay=timedelta(minutes=30))

A message is validated before anything is sent: names, sizes and settings that a broker would reject
raise InvalidMessage, which says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec

from rockgate.protocol.entry import pack_properties
from rockgate.protocol.remoting import properties as names
from rockgate.sdk.errors import InvalidMessage

Delay: TypeAlias = int | timedelta | datetime
"""One of RocketMQ's 18 levels, how long, or when (with its time zone)."""

TOPIC_SIZE_MAX: Final = 127
GROUP_SIZE_MAX: Final = 255
PROPERTIES_SIZE_MAX: Final = 32_767
LEVEL_MAX: Final = 18
_NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
RESERVED: Final = frozenset(
    value
    for name, value in vars(names).items()
    if name.isupper() and isinstance(value, str) and name != "KEY_SEPARATOR"
)
"""Properties with a meaning in RocketMQ: they are set through fields and methods only."""
RETRY_PREFIX: Final = "%RETRY%"
RETRY_COUNTS: Final = frozenset((names.RECONSUME_TIME, names.MAX_RECONSUME_TIMES))
"""Only messages of retry topics have these; they travel in the request's header."""
CHECKED_TOPICS_MAX: Final = 4096
_checked_topics: Final[set[str]] = set()
"""Names that were validated before: one topic is sent to many times."""


class _Addressed(msgspec.Struct, frozen=True):
    """What every message has."""

    topic: str
    body: bytes


class Message(_Addressed, frozen=True, kw_only=True):
    """A message to send. Sending does not change it."""

    tag: str | None = None
    keys: Sequence[str] = ()
    """Keys by which it can be looked up."""
    properties: Mapping[str, str] = {}
    delay: Delay | None = None
    flag: int = 0
    """A number of the application's own."""


def check_group(group: str) -> None:
    """Refuse a name that no group can have."""
    _check_name("group", group, GROUP_SIZE_MAX)


def check_topic(topic: str) -> None:
    """Refuse a name that no topic can have."""
    _check_name("topic", topic, TOPIC_SIZE_MAX)


def check(message: Message, body_size_max: int) -> None:
    """Refuse what no broker would accept."""
    topic, body = message.topic, message.body
    if topic not in _checked_topics:
        check_topic(topic)
        if len(_checked_topics) < CHECKED_TOPICS_MAX:
            _checked_topics.add(topic)
    if not isinstance(body, bytes | bytearray | memoryview):
        raise InvalidMessage(f"Body must be bytes, not {type(body).__name__}.")
    size = len(body)
    if not size:
        raise InvalidMessage("Body is empty.")
    if size > body_size_max:
        raise InvalidMessage(f"Body is {size:,} bytes; the maximum is {body_size_max:,}.")
    if message.flag and not -(2**31) <= message.flag < 2**31:
        raise InvalidMessage(f"Flag {message.flag} is not a 32-bit integer.")
    if message.keys:
        _check_keys(message.keys)
    if message.tag is not None and (not message.tag.strip() or "|" in message.tag):
        raise InvalidMessage(f"Tag {message.tag!r} is blank or contains |.")
    if message.properties:
        allowed = RETRY_COUNTS if topic.startswith(RETRY_PREFIX) else ()
        for name in message.properties:
            if name in RESERVED and name not in allowed:
                raise InvalidMessage(f"Property {name} is reserved by RocketMQ.")


def pack(
    message: Message, message_id: str, now_ms: int, more: Mapping[str, str] | None = None
) -> str:
    """The properties of a message on the wire, with more than the application's."""
    text = f"UNIQ_KEY\x01{message_id}\x02WAIT\x01true\x02"
    if message.properties or more or message.tag or message.keys or message.delay is not None:
        found = {
            name: value
            for name, value in message.properties.items()
            if name not in RETRY_COUNTS or not message.topic.startswith(RETRY_PREFIX)
        }
        if message.tag is not None:
            found[names.TAGS] = message.tag
        if message.keys:
            found[names.KEYS] = names.KEY_SEPARATOR.join(message.keys)
        if message.delay is not None:
            found.update(_delaying(message.delay, now_ms))
        if more:
            found.update(more)
        try:
            text = pack_properties(found.items()).decode() + text
        except UnicodeDecodeError:
            raise InvalidMessage("Properties contain invalid Unicode.") from None
        except (ValueError, AttributeError, TypeError) as wrong:
            raise InvalidMessage(f"Invalid properties: {str(wrong).rstrip('.')}.") from None
        size = len(text) if text.isascii() else len(text.encode())
        if size > PROPERTIES_SIZE_MAX:
            raise InvalidMessage(
                f"Properties are {size:,} bytes; the maximum is {PROPERTIES_SIZE_MAX:,}."
            )
    return text


def retry_counts(message: Message) -> tuple[int, int | None]:
    """How often a message of a retry topic was retried, and how often it may be."""
    if not message.properties or not message.topic.startswith(RETRY_PREFIX):
        return 0, None
    found: list[int | None] = []
    for name in (names.RECONSUME_TIME, names.MAX_RECONSUME_TIMES):
        text = message.properties.get(name)
        if text is not None and not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise InvalidMessage(f"Property {name} must be a count, not {text!r}.")
        found.append(None if text is None else int(text))
    return found[0] or 0, found[1]


def _delaying(delay: Delay, now_ms: int) -> dict[str, str]:
    if isinstance(delay, datetime):
        if delay.tzinfo is None:
            raise InvalidMessage(f"Delivery time {delay} has no time zone.")
        return {names.TIMER_DELIVER_MS: str(round(delay.timestamp() * 1000))}
    if isinstance(delay, timedelta):
        if delay < timedelta():
            raise InvalidMessage(f"Delay {delay} is negative.")
        return {names.TIMER_DELIVER_MS: str(now_ms + delay // timedelta(milliseconds=1))}
    if isinstance(delay, bool) or not isinstance(delay, int) or not 1 <= delay <= LEVEL_MAX:
        raise InvalidMessage(f"Delay level must be 1 to {LEVEL_MAX}, not {delay!r}.")
    return {names.DELAY_LEVEL: str(delay)}


def _check_keys(keys: Sequence[str]) -> None:
    if isinstance(keys, str):
        raise InvalidMessage("Keys must be a sequence of strings, not a string.")
    for key in keys:
        if not key or names.KEY_SEPARATOR in key:
            raise InvalidMessage(f"Key {key!r} is empty or contains a space.")


def _check_name(what: str, name: str, size_max: int) -> None:
    if not name or not name.strip():
        raise InvalidMessage(f"{what.capitalize()} name is blank.")
    if len(name) > size_max:
        raise InvalidMessage(
            f"{what.capitalize()} name is {len(name):,} characters; the maximum is {size_max}."
        )
    if _NAME.fullmatch(name):
        return
    if _NAME.fullmatch(name.replace(".", "|")):
        there = name.replace(".", "|")
        raise InvalidMessage(
            f"{what.capitalize()} name {name!r} contains a dot. Its RocketMQ name is {there!r}."
        )
    raise InvalidMessage(
        f"{what.capitalize()} name {name!r} contains characters other than %|a-zA-Z0-9_-."
    )
