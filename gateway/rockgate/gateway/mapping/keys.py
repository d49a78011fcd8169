"""The keys by which records of a batch are found: what a message of RocketMQ's would be found by.

A record's key counts if it is text, whole and, as RocketMQ takes KEYS apart at spaces, each of its
words. Headers never do. The answer for one batch is always the same, or a rebuilt index would be
another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rockgate.gateway.mapping.dictionary import is_text, is_word
from rockgate.gateway.mapping.messages import OPEN_BYTES_MAX
from rockgate.protocol.kafka.errors import MalformedBatch
from rockgate.protocol.kafka.records.batch import read_header
from rockgate.protocol.kafka.records.record import open_records, walk_records


def record_keys(body: memoryview) -> Sequence[bytes]:
    """Return the keys of all records of a batch, each once, in their order.

    Of a batch that is damaged, those in front of the damage.
    """
    found: dict[bytes, None] = {}
    for _, key in _keys(body):
        if key not in found:
            found.update(dict.fromkeys(_words(key)))
    return list(found)


def indexes_of(body: memoryview, wanted: bytes) -> list[int]:
    """Return the offset deltas of the records that are found by a key."""
    return [delta for delta, key in _keys(body) if key == wanted or wanted in _words(key)]


def _keys(body: memoryview) -> Iterator[tuple[int, bytes]]:
    try:
        header = read_header(body)
        if header.is_control:
            return
        data = open_records(body, header, size_max=OPEN_BYTES_MAX)
        base = header.base_offset
        for offset, _, key, _, _ in walk_records(data, header):
            if key is not None and (is_word(key) or is_text(key)):
                yield offset - base, key
    except MalformedBatch:
        return


def _words(key: bytes) -> list[bytes]:
    if b" " not in key:
        return [key]
    return [key, *(word for word in key.split(b" ") if word)]
