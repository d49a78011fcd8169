"""Messages of a pull as one record batch, without the store.

The inverse of `sent_records`, for whatever producers wrote: what brokers add to every message is no
header, and neither is what the gateway adds to records. Messages with the same properties, or that
differ in one of them only, share what was made of the others: a table of shapes.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rockgate.gateway.transcode.dictionary import OWN, read_message
from rockgate.gateway.transcode.record_bytes import (
    NULL,
    VARINT_COUNT,
    VARINTS,
    batch_head,
    header_name,
    key_and_headers,
    nullable,
    of,
    varint,
)
from rockgate.gateway.transcode.remote.sent_records import COUNT, OFFSET_MS, UNIQUE
from rockgate.gateway.transcode.remote.whole_batches import read_inner
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import (
    CHECKSUM_NAME,
    CHECKSUM_SIZE,
    COMPRESSED,
    HEAD_SIZE_V4,
    HOST_FLAGS,
    INNER_BATCH,
    MAGIC_V1,
    EntryError,
    message_fields,
)
from rockgate.protocol.kafka.records import batch as batches
from rockgate.protocol.kafka.records.record import is_delta
from rockgate.protocol.remoting.command import Buffer
from rockgate.protocol.remoting.compression import compression_of, decompress
from rockgate.protocol.remoting.errors import MalformedContent

INFLATED_BYTES_MAX: Final = 8 << 20
"""Decompressed bodies of one batch; what would exceed it is a batch of its own."""
BY_BROKERS: Final = frozenset((b"CLUSTER", b"MSG_REGION", b"TRACE_ON"))
"""Properties that a broker adds to every message, or a request to all of its."""
COMPRESSED_BODY: Final = b"__ROCKETMQ_COMPRESSED"
"""Header of a record whose value is a compressed body that cannot be opened: its flags."""

_OFFSET: Final = OFFSET_MS + b"\x01"
_ID: Final = UNIQUE + b"\x01"
_is_own_id: Final = re.compile(rb"K[0-9A-F]{28}").fullmatch
_own_id: Final = re.compile(rb"(?:^|\x02)UNIQ_KEY\x01K[0-9A-F]{28}\x02").search
_own_offset: Final = re.compile(rb"(?:^|\x02)__KAFKA_MS\x01(-?[0-9]{1,19})\x02").search
_HIDDEN_BUT_ID: Final = BY_BROKERS | {OFFSET_MS, COUNT}
_HIDDEN: Final = _HIDDEN_BUT_ID | {UNIQUE}
_NUMBER: Final = re.compile(rb"-?[0-9]{1,19}")
_UNUSUAL: Final = HOST_FLAGS | COMPRESSED
_SHAPES_MAX: Final = 1024
_NAMES_MAX: Final = 4096
_SHAPE_SIZE_MAX: Final = 512


class PulledBatch(NamedTuple):
    """A record batch, and the offsets that it covers."""

    data: bytearray
    base: int
    end: int
    is_inner: bool = False
    """Whether one message takes all its offsets."""


class _Record(NamedTuple):
    """A record without its length and offset."""

    timestamp: int
    key: bytes
    value_size: bytes
    value: Buffer
    tail: bytes


class PulledMessages:
    """Makes record batches. One for the whole gateway; belongs to the loop's thread."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[bytes, bytes], tuple[bytes, bytes, bytes]] = {}
        self._names: dict[bytes, bytes] = dict.fromkeys(BY_BROKERS, b"")

    def batches(self, data: Buffer, offset: int) -> list[PulledBatch]:
        """Return the messages from an offset on as record batches; EntryError if one is damaged.

        Nearly always one: another begins where a time cannot be expressed as a difference from the
        first one's, or decompressed bodies become too many.
        """
        view = memoryview(data)
        found: list[PulledBatch] = []
        at = 0
        while at < len(view):
            if _is_inner(view, at):
                total = message_fields(view, at)[0]
                if not HEAD_SIZE_V4 <= total <= len(view) - at:
                    raise EntryError(f"message has size {total}")
                inner = read_inner(view[at : at + total], message_fields(view, at)[2])
                at += total
                if inner.end > offset and (not found or inner.base >= found[-1].end):
                    found.append(PulledBatch(*inner, True))
                continue
            batch, at = self._batch(view, at, offset)
            if batch is not None:
                found.append(batch)
        if len(self._names) > _NAMES_MAX:
            self._names = dict.fromkeys(BY_BROKERS, b"")
        if len(self._shapes) > _SHAPES_MAX:
            self._shapes.clear()
        return found

    def _batch(self, view: memoryview, at: int, least: int) -> tuple[PulledBatch | None, int]:
        pieces: list[Buffer] = [b""]
        size, count, inflated = batches.HEADER_SIZE, 0, 0
        base = last = base_ms = max_ms = 0
        end, fields, varints = len(view), message_fields, VARINTS
        while at < end:
            if end - at < HEAD_SIZE_V4:
                raise EntryError("message is truncated")
            total, magic, offset, sys_flag, born_ms, body_size = fields(view, at)
            if not HEAD_SIZE_V4 <= total <= end - at:
                raise EntryError(f"message has size {total}")
            if sys_flag & INNER_BATCH:
                break
            if offset < least or (count and offset <= last):
                at += total
                continue
            body_end = at + HEAD_SIZE_V4 + body_size
            if magic == MAGIC_V1 and not sys_flag & _UNUSUAL and body_end + 3 <= at + total:
                properties = bytes(view[body_end + view[body_end] + 3 : at + total])
                made = self._usual(properties, born_ms)
            else:
                made = None
            if made is not None:
                timestamp, key, tail = made
                body: Buffer = view[at + HEAD_SIZE_V4 : body_end]
                value_size = varints[body_size] if body_size < VARINT_COUNT else varint(body_size)
            else:
                timestamp, key, value_size, body, tail = _unusual(view[at : at + total])
                inflated += len(body) if sys_flag & COMPRESSED else 0
            if not count:
                base, base_ms, max_ms = offset, timestamp, timestamp
            elif not is_delta(timestamp - base_ms) or inflated > INFLATED_BYTES_MAX:
                break
            later, behind = timestamp - base_ms, offset - base
            lead = b"\x00%b%b%b%b" % (
                varints[later] if 0 <= later < VARINT_COUNT else varint(later),
                varints[behind] if behind < VARINT_COUNT else varint(behind),
                key,
                value_size,
            )
            length = len(lead) + len(body) + len(tail)
            prefix = varints[length] if length < VARINT_COUNT else varint(length)
            pieces += (prefix, lead, body, tail)
            size += len(prefix) + length
            count += 1
            last = offset
            if timestamp > max_ms:
                max_ms = timestamp
            at += total
        if not count:
            return None, at
        pieces[0] = batch_head(base, size, 0, last, base_ms, max_ms, count)
        out = bytearray().join(pieces)
        batches.seal(out)
        return PulledBatch(out, base, last + 1), at

    def _usual(self, properties: bytes, born_ms: int) -> tuple[int, bytes, bytes] | None:
        """Return time, key and headers of a message whose properties have nothing unusual."""
        if properties.startswith(_OFFSET):
            end = properties.find(b"\x02")
            digits = properties[len(_OFFSET) : end]
            if end < 0 or not _NUMBER.fullmatch(digits):
                return None
            born_ms += int(digits)
            properties = properties[end + 1 :]
        if OWN in properties:
            return None
        tail_at = len(properties) - CHECKSUM_SIZE
        if tail_at >= 0 and properties.startswith(CHECKSUM_NAME, tail_at):
            properties = properties[:tail_at]
        id_at = properties.find(_ID)
        name = _ID if id_at >= 0 else b"KEYS\x01"
        if id_at < 0:
            id_at = properties.find(name)
        if id_at < 0:
            shape = self._shapes.get((b"", properties))
            if shape is None:
                shape = self._learn(b"", properties, b"")
                assert shape is not None, "without a word there is nothing to refuse"
            return born_ms, shape[0], shape[1]
        id_at += len(name)
        id_end = properties.find(b"\x02", id_at)
        word = properties[id_at:id_end]
        if name is _ID and _is_own_id(word):
            return None
        shape = self._shapes.get((properties[:id_at], properties[id_end:]))
        if shape is None and word.isalnum() and id_end >= 0:
            shape = self._learn(properties[:id_at], properties[id_end:], word)
        if shape is None or not word or b" " in word:
            return born_ms, *key_and_headers(properties, self._names)
        key, before, behind = shape
        if name is _ID:
            return born_ms, key, b"%b%b%b%b" % (before, of(len(word)), word, behind)
        return born_ms, of(len(word)) + word, before

    def _learn(
        self, before: bytes, behind: bytes, word: bytes
    ) -> tuple[bytes, bytes, bytes] | None:
        """Return key and headers of properties, and cache them but for a word in between.

        The headers come in two parts if the word is one of them. None if the word is neither the
        key nor the id, or does not occur once.
        """
        key, tail = key_and_headers(before + word + behind, self._names)
        shape = (key, tail, b"")
        if before:
            name = before.rpartition(b"\x02")[2]
            if name not in (_ID, b"KEYS\x01") or b"\x02" + name in b"\x02" + behind[1:]:
                return None
            if name == _ID:
                coded = header_name(UNIQUE)
                front, _, back = tail.partition(coded + of(len(word)) + word)
                if tail.count(coded + of(len(word)) + word) != 1:
                    return None
                shape = (key, front + coded, back)
        if len(before) + len(behind) <= _SHAPE_SIZE_MAX:
            self._shapes[before, behind] = shape
        return shape


def _is_inner(view: memoryview, at: int) -> bool:
    """Whether a message takes several offsets; one that is truncated is found to be so later."""
    return len(view) - at >= HEAD_SIZE_V4 and bool(message_fields(view, at)[3] & INNER_BATCH)


def _unusual(view: memoryview) -> _Record:
    """Return the record of any message."""
    entry = envelope.read(view)
    # As they are: only entries of our own log end with a checksum, which is no property.
    packed = bytes(view[entry.properties_at : entry.properties_at + entry.properties_size])
    offset_ms = _own_offset(packed)
    hidden = _HIDDEN if _own_id(packed) else _HIDDEN_BUT_ID
    words = read_message(packed, hidden)
    timestamp = entry.born_ms + (int(offset_ms[1]) if offset_ms else 0)
    headers = words.headers
    body: Buffer = bytes(view[entry.body_at : entry.body_at + entry.body_size])
    kind = compression_of(entry.sys_flag) if entry.body_size else None
    if kind is not None:
        try:
            body = decompress(body, kind, size_max=INFLATED_BYTES_MAX)
        except MalformedContent:
            headers.append((COMPRESSED_BODY, b"%d" % entry.sys_flag))
    tail = [of(len(headers))]
    for name, content in headers:
        tail += (header_name(name), *nullable(content))
    value_size, value = (NULL, b"") if words.is_null else (of(len(body)), body)
    return _Record(timestamp, b"".join(nullable(words.key)), value_size, value, b"".join(tail))
