"""Records as text: JSON lines that lose no byte, and formats for people.

A JSON line is one object. `key` and `value` are text or null; what is not UTF-8 is under
`key_base64` or `value_base64` instead. `consume --json` writes such lines, `produce --jsonl` reads
them, and between the two every byte survives.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from rockgate.cli.client.produce.producer import Outgoing
from rockgate.cli.text.values import time_text
from rockgate.protocol.kafka.records.record import Header, Record

_encode: Final = msgspec.json.Encoder().encode


# JSON lines


def json_line(topic: str, partition: int, record: Record, *, is_append_time: bool) -> bytes:
    """One record as one line."""
    fields: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "timestamp_type": "append" if is_append_time else "create",
    }
    fields |= content_fields(record.key, record.value, record.headers)
    return _encode(fields) + b"\n"


def content_fields(
    key: bytes | None, value: bytes | None, headers: Sequence[Header]
) -> dict[str, Any]:
    """Key, value and headers as fields of a JSON object."""
    fields: dict[str, Any] = {}
    _put(fields, "key", key)
    _put(fields, "value", value)
    fields["headers"] = listed = []
    for name, content in headers:
        header: dict[str, Any] = {"key": name}
        _put(header, "value", content)
        listed.append(header)
    return fields


def _put(fields: dict[str, Any], name: str, data: bytes | None) -> None:
    if data is None:
        fields[name] = None
        return
    try:
        fields[name] = data.decode()
    except UnicodeDecodeError:
        fields[f"{name}_base64"] = b64encode(data).decode("ascii")


class _JsonHeader(msgspec.Struct):
    key: str
    value: str | None = None
    value_base64: str | None = None


class _JsonRecord(msgspec.Struct):
    key: str | None = None
    key_base64: str | None = None
    value: str | None = None
    value_base64: str | None = None
    headers: list[_JsonHeader] = []
    partition: int | None = None
    timestamp_ms: int | None = None


_decode: Final = msgspec.json.Decoder(_JsonRecord).decode


def from_json_line(line: bytes, *, keeps_partition: bool = False) -> Outgoing:
    """The record that a line describes; what the line says beyond that is ignored."""
    try:
        parsed = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"is not a JSON record: {error}") from None
    time = parsed.timestamp_ms
    return Outgoing(
        key=_bytes(parsed.key, parsed.key_base64, "key"),
        value=_bytes(parsed.value, parsed.value_base64, "value"),
        headers=tuple(
            (each.key, _bytes(each.value, each.value_base64, "header")) for each in parsed.headers
        ),
        partition=parsed.partition if keeps_partition else None,
        timestamp_ms=time if time is not None and time >= 0 else None,
    )


def _bytes(text: str | None, base64: str | None, what: str) -> bytes | None:
    if base64 is None:
        return None if text is None else text.encode()
    if text is not None:
        raise ValueError(f"has both {what} and {what}_base64")
    try:
        return b64decode(base64, validate=True)
    except ValueError as error:
        raise ValueError(f"has invalid base64 in {what}_base64: {error}") from None


# Lines


def from_line(
    line: bytes,
    *,
    key: bytes | None = None,
    separator: bytes | None = None,
    headers: tuple[Header, ...] = (),
    partition: int | None = None,
    timestamp_ms: int | None = None,
    empty_is_null: bool = False,
) -> Outgoing:
    """A record whose value is a line, behind its key where a separator is given."""
    value: bytes | None = line
    if separator is not None:
        before, found, after = line.partition(separator)
        if not found:
            raise ValueError(f"has no key separator {separator.decode('utf-8', 'replace')!r}")
        key, value = before, after
    if empty_is_null and not value:
        value = None
    return Outgoing(key, value, headers, partition, timestamp_ms)


# Formats

Piece = bytes | Callable[[str, int, Record], bytes]
NULL: Final = b"null"
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_TOKEN: Final = re.compile(r"%.|\\x[0-9a-fA-F]{2}|\\.|[^%\\]+|[%\\]", re.DOTALL)


def _size(data: bytes | None) -> bytes:
    return b"-1" if data is None else str(len(data)).encode()


def _headers(record: Record) -> bytes:
    return b",".join(
        name.encode() + b"=" + (NULL if content is None else content)
        for name, content in record.headers
    )


_FIELDS: Final[dict[str, Piece]] = {
    "%t": lambda topic, partition, record: topic.encode(),
    "%p": lambda topic, partition, record: b"%d" % partition,
    "%o": lambda topic, partition, record: b"%d" % record.offset,
    "%k": lambda topic, partition, record: NULL if record.key is None else record.key,
    "%v": lambda topic, partition, record: NULL if record.value is None else record.value,
    "%s": lambda topic, partition, record: NULL if record.value is None else record.value,
    "%h": lambda topic, partition, record: _headers(record),
    "%T": lambda topic, partition, record: b"%d" % record.timestamp,
    "%d": lambda topic, partition, record: time_text(record.timestamp).encode(),
    "%K": lambda topic, partition, record: _size(record.key),
    "%S": lambda topic, partition, record: _size(record.value),
    "%V": lambda topic, partition, record: _size(record.value),
    "%%": b"%",
}


def parse_format(text: str) -> Sequence[Piece]:
    """A format as pieces; ValueError names a token that means nothing."""
    pieces: list[Piece] = []
    for token in _TOKEN.findall(text):
        if token in _FIELDS:
            pieces.append(_FIELDS[token])
        elif token.startswith("%"):
            known = " ".join(_FIELDS)
            raise ValueError(
                f"unknown field {token!r}; known are {known} and \\n \\t \\r \\0 \\xNN"
            )
        elif token.startswith("\\x"):
            pieces.append(bytes.fromhex(token[2:]))
        elif token.startswith("\\"):
            pieces.append(_ESCAPES.get(token[1:], token.encode()))
        else:
            pieces.append(token.encode())
    return pieces


def formatted(pieces: Sequence[Piece], topic: str, partition: int, record: Record) -> bytes:
    """One record in a format."""
    return b"".join(
        [each if isinstance(each, bytes) else each(topic, partition, record) for each in pieces]
    )
