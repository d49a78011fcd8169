"""Key, headers and null value of a record as message properties, and back, without loss.

docs/internals/mapping.md has the table. A header whose name and value are text is a property of
that name. One that is named like a property of RocketMQ's own gets a prefix, so that it is never
mistaken for it; one that cannot be text (null, empty, binary, a repeated name) is encoded, with its
place. All names of our own begin with `__KAFKA_`, and a header that begins with `__` is prefixed
too, so no header can be mistaken for one of them.

Both directions accept any bytes and never fail: an invalid encoding is an ordinary header.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from rockgate.protocol.entry import PROPERTIES_SIZE_MAX, get_property
from rockgate.protocol.kafka.records.record import Header
from rockgate.protocol.remoting.properties import (
    DELAY_LEVEL,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TIMER_DELAY_MS,
    TIMER_DELAY_S,
    TIMER_DELIVER_MS,
)

KEYS: Final = b"KEYS"
TAGS: Final = "TAGS"

OWN: Final = b"__KAFKA_"
NAMED: Final = b"__KAFKA_H_"
"""Prefix of a header's name that would otherwise be read as a system property."""
CODED: Final = b"__KAFKA_X_"
"""Before a header's place: `.`, base64 of its name and, unless null, `:`, base64 of its value."""
EXACT_KEY: Final = b"__KAFKA_KEY"
"""`:` and base64 of a key that is not one word of text."""
NULL: Final = b"__KAFKA_NULL"
"""1 for a record whose value is null: a tombstone."""
DROPPED: Final = b"__KAFKA_DROPPED"
"""What of the record did not fit."""
SKIPPED: Final = b"__KAFKA_SKIPPED"
"""The size of a message too large for any client; its body is left out."""

SIZE_MAX: Final = PROPERTIES_SIZE_MAX - 1280
"""Maximum size of the properties of one record, and of a message when it is sent.

What is left is for those that are added later: by a delay, a half message, a send-back, a dead
letter, a move. With the longest names of topic and group they take about 1,100 bytes.
"""

SYSTEM: Final = frozenset(
    {
        "1ST_POP_TIME",
        "ARRIVE_TIME",
        "BORN_TIMESTAMP",
        "BUYER_ID",
        "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "CLUSTER",
        "CONSUME_START_TIME",
        "CORRECTION_FLAG",
        "CORRELATION_ID",
        DELAY_LEVEL,
        "DLQ_ORIGIN_MESSAGE_ID",
        "DLQ_ORIGIN_TOPIC",
        "DUP_INFO",
        "EXTEND_UNIQ_INFO",
        "INNER_BASE",
        "INNER_MULTI_DISPATCH",
        "INNER_MULTI_QUEUE_OFFSET",
        "INNER_NUM",
        "INSTANCE_ID",
        "KEYS",
        "MAX_OFFSET",
        "MAX_RECONSUME_TIMES",
        "MIN_OFFSET",
        "MQ2_FLAG",
        "MSG_REGION",
        "MSG_TYPE",
        "ORIGIN_MESSAGE_ID",
        "PGROUP",
        "POP_CK",
        "POP_CK_OFFSET",
        "PROPERTY_FORWARD_QUEUE_ID",
        "PUSH_REPLY_TIME",
        REAL_QUEUE_ID,
        REAL_TOPIC,
        "RECONSUME_TIME",
        "REDIRECT",
        "REPLY_TO_CLIENT",
        "RETRY_TOPIC",
        "TIMER_DELAY_LEVEL",
        TIMER_DELAY_MS,
        TIMER_DELAY_S,
        TIMER_DELIVER_MS,
        "TIMER_DEL_UNIQKEY",
        "TIMER_DEQUEUE_MS",
        "TIMER_ENQUEUE_MS",
        "TIMER_OUT_MS",
        "TIMER_ROLL_LABEL",
        "TIMER_ROLL_TIMES",
        "TRACE_CONTEXT",
        "TRACE_ON",
        "TRANSACTION_CHECK_TIMES",
        "TRANSFER_FLAG",
        "TRAN_MSG",
        "TRAN_PREPARED_QUEUE_OFFSET",
        "TTL",
        "UNIQ_KEY",
        "WAIT",
    }
)
"""Names with a meaning in RocketMQ, except TAGS: a tag belongs to the application."""

_DROPPED_SIZE: Final = 64
"""Space for the mark of what did not fit."""
_USUAL_COUNT: Final = 64
"""Headers of a usual record: each name is searched among those before it."""
_INDEX: Final = re.compile(rb"0|[1-9][0-9]{0,8}")

is_word: Final = re.compile(rb"[\x21-\x7e]+").fullmatch
"""Whether bytes are one word of plain text, which is nearly every key."""


class Words(NamedTuple):
    """The record that the properties of a message describe."""

    key: bytes | None
    is_null: bool
    headers: list[tuple[bytes, bytes | None]]


# Record to message


def pack_usual(key: bytes | None, headers: Sequence[Header]) -> bytes | None:
    """Return the properties of a record with a value if nothing about it is unusual, else None.

    The same as `pack_record`, but faster for thousands: the values are examined together.
    """
    parts: list[bytes] = []
    values: list[bytes] = []
    if key is not None:
        if not is_word(key):
            return None
        parts += (b"KEYS\x01", key, b"\x02")
    if len(headers) > _USUAL_COUNT:
        return None
    for name, value in headers:
        prefix = _plain_prefix(name)
        if not value or not prefix or prefix in parts:
            return None
        values.append(value)
        parts += (prefix, value, b"\x02")
    packed = b"".join(parts)
    if len(packed) > SIZE_MAX - _DROPPED_SIZE:
        return None
    joined = values[0] if len(values) == 1 else b"".join(values)
    if not joined.isascii() or b"\x01" in joined or b"\x02" in joined:
        return None
    return packed


def pack_record(key: bytes | None, headers: Sequence[Header], is_null: bool) -> bytes:
    """Return the properties of a record, of at most SIZE_MAX bytes."""
    parts: list[bytes] = [b"%b\x011\x02" % NULL] if is_null else []
    size = sum(map(len, parts))
    is_key_dropped = False
    if key is not None:
        packed = _pack_key(key)
        is_key_dropped = size + len(packed) > SIZE_MAX - _DROPPED_SIZE
        if not is_key_dropped:
            parts.append(packed)
            size += len(packed)
    packed_headers = _pack_headers(headers) if headers else ()
    dropped_count = 0
    for packed in packed_headers:
        if size + len(packed) > SIZE_MAX - _DROPPED_SIZE:
            dropped_count += 1
            continue
        parts.append(packed)
        size += len(packed)
    if is_key_dropped or dropped_count:
        what = b"key " if is_key_dropped else b""
        parts.append(b"%b\x01%bheaders=%d\x02" % (DROPPED, what, dropped_count))
    return b"".join(parts)


def _pack_key(key: bytes) -> bytes:
    if is_word(key):
        return b"KEYS\x01%b\x02" % key
    readable = b"KEYS\x01%b\x02" % key if is_text(key) else b""
    if readable and b" " not in key:
        return readable
    return b"%b%b\x01:%b\x02" % (readable, EXACT_KEY, _base64(key))


def _pack_headers(headers: Sequence[Header]) -> list[bytes]:
    packed: list[bytes] = []
    seen: set[str] = set()
    for index, (name, value) in enumerate(headers):
        prefix = _plain_prefix(name) if value and name not in seen else b""
        if value and prefix and is_text(value):
            packed.append(b"%b%b\x02" % (prefix, value))
        else:
            coded = _base64(name.encode("utf-8", "surrogatepass"))
            if value is not None:
                coded = b"%b:%b" % (coded, _base64(value))
            # An encoded name is never empty, so that no client drops the property with its value.
            packed.append(b"%b%d\x01.%b\x02" % (CODED, index, coded))
        seen.add(name)
    return packed


@lru_cache(maxsize=4096)
def _plain_prefix(name: str) -> bytes:
    """Return the start of a plain header's property; empty if the name cannot be plain."""
    encoded = name.encode("utf-8", "surrogatepass")
    if not encoded or not is_text(encoded):
        return b""
    if name in SYSTEM or name.startswith("__"):
        return NAMED + encoded + b"\x01"
    return encoded + b"\x01"


def is_text(value: bytes) -> bool:
    """Whether every client reads the bytes unchanged as one property value."""
    if not value or b"\x01" in value or b"\x02" in value:
        return False
    if value.isascii():
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _base64(data: bytes) -> bytes:
    return b2a_base64(data, newline=False)


# Message to record


def read_message(properties: bytes, hidden: frozenset[bytes] = frozenset()) -> Words:
    """Return the record that a message's properties describe; `hidden` ones are no headers."""
    headers: list[tuple[bytes, bytes | None]] = []
    coded: dict[int, tuple[bytes, bytes | None]] = {}
    keys = exact = None
    is_null = False
    for part in properties.split(b"\x02"):
        name, separator, value = part.partition(b"\x01")
        if not separator or not name or name in hidden:
            continue
        if name == KEYS:
            keys = value
        elif not name.startswith(OWN):
            headers.append((_name(name), value))
        elif name == NULL and value == b"1":
            is_null = True
        elif name == EXACT_KEY and (read := _read_key(value)) is not None:
            exact = read
        elif name.startswith(CODED) and (found := _read_coded(name, value)) is not None:
            coded[found[0]] = found[1]
        elif name.startswith(NAMED) and len(name) > len(NAMED):
            headers.append((_name(name[len(NAMED) :]), value))
        else:
            headers.append((_name(name), value))
    # In ascending order: each header then follows those that it followed in the record.
    for index in sorted(coded):
        headers.insert(index, coded[index])
    key, rest = _split_keys(keys, exact)
    if rest is not None:
        headers.append((KEYS, rest))
    return Words(key, is_null, headers)


def first_key(keys: bytes) -> bytes | None:
    """Return the first word of KEYS, None if there is none."""
    return next((word for word in keys.split(b" ") if word), None)


def record_key(properties: bytes) -> bytes | None:
    """Return the key of the record that a message's properties describe."""
    exact = get_property(properties, EXACT_KEY)
    if exact is not None and (key := _read_key(exact)) is not None:
        return key
    keys = get_property(properties, KEYS)
    return None if keys is None else first_key(keys)


def _split_keys(keys: bytes | None, exact: bytes | None) -> tuple[bytes | None, bytes | None]:
    """Return the record's key, and KEYS if it has more than the key."""
    if exact is not None:
        is_implied = keys is None or (keys == exact and is_text(exact))
        return exact, None if is_implied else keys
    if keys is None:
        return None, None
    key = first_key(keys)
    return key, None if key == keys else keys


def _read_key(value: bytes) -> bytes | None:
    return _from_base64(value[1:]) if value[:1] == b":" else None


def _read_coded(name: bytes, value: bytes) -> tuple[int, tuple[bytes, bytes | None]] | None:
    index = name[len(CODED) :]
    if not _INDEX.fullmatch(index) or value[:1] != b".":
        return None
    coded_name, separator, coded_value = value[1:].partition(b":")
    read_name = _from_base64(coded_name)
    read_value = _from_base64(coded_value) if separator else None
    if read_name is None or (separator and read_value is None):
        return None
    return int(index), (_name(read_name), read_value)


def _from_base64(data: bytes) -> bytes | None:
    try:
        return a2b_base64(data, strict_mode=True)
    except Base64Error:
        return None


def _name(name: bytes) -> bytes:
    """Return a header's name: Kafka's are text, and clients may reject anything else."""
    return name if name.isascii() else name.decode("utf-8", "replace").encode()
