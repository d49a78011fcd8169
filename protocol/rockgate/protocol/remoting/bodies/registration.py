"""The body of a broker registration: JSON, or its compressed form.

Compressed, it is a zlib stream of strings preceded by their lengths: the table's version as JSON,
the number of topics, each topic as space-separated words, and the filter servers as JSON. Fields
that newer brokers append are ignored.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import msgspec

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import DataVersion
from rockgate.protocol.remoting.bodies.nameserver import RegisterBody
from rockgate.protocol.remoting.bodies.topics import TopicConfig, TopicConfigTable
from rockgate.protocol.remoting.command import Buffer
from rockgate.protocol.remoting.compression import Compression, decompress
from rockgate.protocol.remoting.errors import MalformedContent, MalformedRequest

WHAT: Final = "REGISTER_BROKER"
SIZE_MAX: Final = 8 * 1024 * 1024
"""The decompressed size of a registration: some forty thousand topics."""
AT_ONCE_BYTES: Final = 64 * 1024
"""JSON that is parsed in one call, which holds the GIL: 40,000 topics took 50 ms."""
_I32: Final = struct.Struct(">i")


class _UnreadTable(msgspec.Struct, kw_only=True, rename="camel"):
    """A table whose topics are not parsed yet."""

    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    topic_config_table: dict[str, msgspec.Raw] = {}


class _UnreadBody(msgspec.Struct, kw_only=True, rename="camel"):
    topic_config_serialize_wrapper: _UnreadTable = msgspec.field(default_factory=_UnreadTable)
    filter_server_list: list[str] = []


def decode_registration(body: Buffer, *, is_compressed: bool, checksum: int = 0) -> RegisterBody:
    """A registration's body; its checksum is compared unless it is 0."""
    if checksum and zlib.crc32(body) & 0x7FFFFFFF != checksum:
        raise MalformedRequest(WHAT, f"body checksum mismatch, expected {checksum}")
    if not is_compressed:
        if len(body) > AT_ONCE_BYTES:
            return _decode_in_pieces(body)
        return javajson.decode(body, RegisterBody, WHAT, size_max=SIZE_MAX)
    try:
        data = decompress(body, Compression.ZLIB, size_max=SIZE_MAX)
        return _read(data)
    except (MalformedContent, UnicodeDecodeError, msgspec.DecodeError, ValueError) as wrong:
        raise MalformedRequest(WHAT, f"compressed body: {str(wrong).rstrip('.')}") from None


def _decode_in_pieces(body: Buffer) -> RegisterBody:
    """The same, topic by topic, so that other threads can run in between."""
    unread = javajson.decode(body, _UnreadBody, WHAT, size_max=SIZE_MAX)
    table = unread.topic_config_serialize_wrapper
    topics = {
        name: javajson.decode(memoryview(raw), TopicConfig, WHAT)
        for name, raw in table.topic_config_table.items()
    }
    return RegisterBody(
        topic_config_serialize_wrapper=TopicConfigTable(
            data_version=table.data_version, topic_config_table=topics
        ),
        filter_server_list=unread.filter_server_list,
    )


def encode_registration(body: RegisterBody) -> bytes:
    """The compressed form."""
    table = body.topic_config_serialize_wrapper
    parts = [_text(javajson.encode(table.data_version)), _I32.pack(len(table.topic_config_table))]
    for topic in table.topic_config_table.values():
        words = (
            topic.topic_name,
            topic.read_queue_nums,
            topic.write_queue_nums,
            topic.perm,
            topic.topic_filter_type,
        )
        parts.append(_text(" ".join(map(str, words)).encode()))
    parts.append(_text(javajson.encode(body.filter_server_list)))
    return zlib.compress(b"".join(parts))


def _text(data: bytes) -> bytes:
    return _I32.pack(len(data)) + data


def _read(data: bytes) -> RegisterBody:
    version, at = _take(data, 0)
    (count,) = _I32.unpack_from(data, at) if len(data) >= at + 4 else (-1,)
    at += 4
    if not 0 <= count <= (len(data) - at) // 4:
        raise ValueError(f"{count} topics in {len(data) - at} bytes")
    table: dict[str, TopicConfig] = {}
    for _ in range(count):
        text, at = _take(data, at)
        topic = _topic(text.decode())
        table[topic.topic_name] = topic
    servers, at = _take(data, at) if at < len(data) else (b"[]", at)
    return RegisterBody(
        topic_config_serialize_wrapper=TopicConfigTable(
            data_version=msgspec.json.decode(version, type=DataVersion), topic_config_table=table
        ),
        filter_server_list=msgspec.json.decode(servers, type=list[str]),
    )


def _take(data: bytes, at: int) -> tuple[bytes, int]:
    if len(data) < at + 4:
        raise ValueError(f"truncated at byte {at}")
    (size,) = _I32.unpack_from(data, at)
    end = at + 4 + size
    if size < 0 or end > len(data):
        raise ValueError(f"string of {size} bytes at byte {at}")
    return data[at + 4 : end], end


def _topic(text: str) -> TopicConfig:
    words = text.split(" ", 5)
    if len(words) < 4:
        raise ValueError(f"topic with {len(words)} fields")
    return TopicConfig(
        topic_name=words[0],
        read_queue_nums=int(words[1]),
        write_queue_nums=int(words[2]),
        perm=int(words[3]),
        topic_filter_type=words[4] if len(words) > 4 else "SINGLE_TAG",
    )
