"""Messages as a RocketMQ client decodes them from the response to a pull."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import Entry, body_checksum


class Pulled(NamedTuple):
    """One message of a response."""

    entry: Entry
    body: bytes
    properties: bytes

    @property
    def offset(self) -> int:
        return self.entry.queue_offset


def pulled(buffers: Iterable[bytes | memoryview]) -> list[Pulled]:
    """Decode a response; every byte of it must belong to a message."""
    data = b"".join(buffers)
    found = []
    at = 0
    while at < len(data):
        entry = envelope.read(data, at)
        assert entry.magic == envelope.topic_magic(entry.topic)
        body = data[entry.body_at : entry.body_at + entry.body_size]
        assert entry.body_crc == body_checksum(body)
        properties_end = entry.properties_at + entry.properties_size
        found.append(Pulled(entry, body, data[entry.properties_at : properties_end]))
        at = entry.end
    return found
