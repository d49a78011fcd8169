"""One message for administrators: what its producer sent, and the first bytes of its body.

It may be a message entry, or one record of a batch entry. Nothing here changes anything, and a
damaged message is returned as far as it can be read.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import MAGIC_BATCH, body_of, parse_properties, places
from rockgate.protocol.kafka.errors import BatchTooLarge, MalformedBatch
from rockgate.protocol.kafka.records.batch import read_header
from rockgate.protocol.kafka.records.bounds import BOUNDS, LIGHT, Bounds, is_heavy
from rockgate.protocol.kafka.records.record import Record, open_records
from rockgate.protocol.kafka.records.skimming import record_at
from rockgate.protocol.remoting.bodies.admin import MessageView
from rockgate.protocol.remoting.compression import compression_of, decompress
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.properties import REAL_QUEUE_ID, REAL_TOPIC
from rockgate.store.api.read import Slice

PREVIEW_MAX: Final = 64 << 10
OPENED_MAX: Final = 16 << 20
"""The largest body that is decompressed for a preview."""


async def looked_at(threads: BatchThreads, found: Slice, offset: int, preview: int) -> MessageView:
    """Return the same, in a thread where a batch takes long to open."""
    if places(found.entry, 0)[1] != MAGIC_BATCH:
        return view_of(found, offset, preview)
    if not is_heavy(body_of(found.entry)):
        try:
            return view_of(found, offset, preview, LIGHT)
        except BatchTooLarge:
            pass
    try:
        return await threads.run(partial(view_of, found, offset, preview, threads.bounds))
    except BatchTooLarge as damage:
        unit = found.unit
        threads.pass_over(damage, position=unit.position, offset=unit.base, count=unit.offset_count)
        return _nothing(envelope.read(found.entry))


def view_of(found: Slice, offset: int, preview: int, bounds: Bounds = BOUNDS) -> MessageView:
    """Return the message at an offset of an entry; its topic is the one it was sent to."""
    view = found.entry
    entry = envelope.read(view)
    body = view[entry.body_at : entry.body_at + entry.body_size]
    if entry.is_batch:
        return _record_view(entry, body, offset, preview, bounds)
    properties = parse_properties(envelope.properties_of(view, entry))
    real = properties.get(REAL_TOPIC)
    queue = properties.get(REAL_QUEUE_ID, "")
    return MessageView(
        topic=_text(real) if real else entry.topic.decode("utf-8", "replace"),
        queue=int(queue) if real and queue.isdecimal() else entry.queue_id,
        message_id=_maybe(properties.get("UNIQ_KEY")),
        keys=_maybe(properties.get("KEYS")),
        tags=_maybe(properties.get("TAGS")),
        size=entry.body_size,
        born_ms=entry.born_ms,
        stored_ms=entry.store_ms,
        reconsume_times=entry.reconsume_times,
        properties=[(_text(name), _text(value)) for name, value in properties.items()],
        body=_plain(body, entry.sys_flag, preview),
    )


def _nothing(entry: envelope.Entry) -> MessageView:
    return MessageView(
        topic=entry.topic.decode("utf-8", "replace"), queue=entry.queue_id, stored_ms=entry.store_ms
    )


def _record_view(
    entry: envelope.Entry, body: memoryview, offset: int, preview: int, bounds: Bounds
) -> MessageView:
    record = _record(body, offset, bounds)
    view = _nothing(entry)
    if record is None:
        return view
    value = record.value
    view.born_ms = record.timestamp
    view.keys = None if record.key is None else record.key.decode("utf-8", "replace")
    view.size = len(value or b"")
    view.properties = [
        (name, (text or b"").decode("utf-8", "replace")) for name, text in record.headers
    ]
    view.body = None if value is None else value[: min(preview, PREVIEW_MAX)]
    return view


def _record(body: memoryview, offset: int, bounds: Bounds) -> Record | None:
    try:
        header = read_header(body)
        data = open_records(body, header, bounds=bounds)
        return record_at(data, header, offset, bounds=bounds)
    except BatchTooLarge:
        raise
    except MalformedBatch:
        return None


def _plain(body: memoryview, sys_flag: int, preview: int) -> bytes:
    """The first bytes of a body, decompressed if possible."""
    size = min(preview, PREVIEW_MAX)
    if size <= 0:
        return b""
    try:
        kind = compression_of(sys_flag)
        if kind is not None:
            return decompress(body, kind, size_max=OPENED_MAX)[:size]
    except MalformedContent:
        pass
    return bytes(body[:size])


def _maybe(text: str | None) -> str | None:
    return None if text is None else _text(text)


def _text(text: str) -> str:
    """A text that JSON can hold: properties may contain invalid UTF-8."""
    return text.encode("utf-8", "replace").decode()
