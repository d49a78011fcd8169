"""The dictionary between the two sides: what one wrote, in the words of the other.

    RocketMQ message        Kafka record
    queueOffset             offset
    born time               timestamp
    body                    value
    property KEYS           key
    every other property    header of the same name

A run of message entries becomes one record batch, uncompressed, without a producer.
"""

from __future__ import annotations

from collections.abc import Sequence

from rockgate.protocol import entry as envelope
from rockgate.protocol.kafka.records.record import Header, Record, build_batch
from rockgate.store.dispatch import EPOCH, MAX_MS, TOPIC_ID
from rockgate.store.reading import Slice

KEYS = "KEYS"
_OWN = frozenset(name.decode() for name in (TOPIC_ID, MAX_MS, EPOCH))
"""Properties that the store gives a moved entry; nobody sent them."""


class Transcoding:
    """Reads message entries as record batches."""

    def batch(self, run: Sequence[Slice], epoch: int) -> bytearray:
        """Return one record batch of all messages of a run, which are of one epoch."""
        records = [_record(each) for each in run]
        return build_batch(records, base_offset=records[0].offset, leader_epoch=epoch)


def _record(each: Slice) -> Record:
    view = each.entry
    entry = envelope.read(view)
    properties = envelope.parse_properties(envelope.properties_of(view, entry))
    key = properties.pop(KEYS, None)
    headers: tuple[Header, ...] = tuple(
        (_bytes(name).decode("utf-8", "replace"), _bytes(value))
        for name, value in properties.items()
        if name not in _OWN
    )
    return Record(
        offset=entry.queue_offset,
        timestamp=entry.born_ms,
        key=None if key is None else _bytes(key),
        value=bytes(view[entry.body_at : entry.body_at + entry.body_size]),
        headers=headers,
    )


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")
