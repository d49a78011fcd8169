"""Messages as brokers store them and answer pulls with."""

from __future__ import annotations

from rockgate.protocol.entry import pack_host, pack_properties
from rockgate.protocol.remoting import properties
from rockgate.protocol.remoting.message import encode

HOST = pack_host(bytes([127, 0, 0, 1]), 10911)


def stored(
    topic: str, offset: int, body: bytes = b"body", *, queue_id: int = 0, tag: str = ""
) -> bytes:
    return encode(
        topic=topic.encode(),
        body=body,
        properties=pack_properties([(properties.TAGS, tag)] if tag else []),
        queue_id=queue_id,
        queue_offset=offset,
        position=offset * 100,
        born_ms=0,
        born_host=HOST,
        store_ms=0,
        store_host=HOST,
    )
