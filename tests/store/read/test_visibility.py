"""Whatever end a caller names, the store returns nothing that is not visible."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.store.keeping import Keeping

from rockgate.protocol import entry as envelope
from rockgate.store.errors import OffsetOutOfRange
from rockgate.store.log.commitlog import Draft
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.read.lookup import Lookup
from rockgate.store.read.reader import Reader
from rockgate.store.store import Store

END = 1 << 62
COUNT = 10
KEY = b"k"

Read = Callable[[Store, Queue], Iterator[int]]
"""Reads a queue as far as it can, and yields the offsets of all that it was given."""


def body_offset(body: memoryview | bytes) -> int:
    return int(bytes(body).rstrip(b"."))


def offsets_of(views: list[memoryview]) -> Iterator[int]:
    for view in views:
        at = 0
        while at < len(view):
            entry = envelope.read(view, at)
            yield entry.queue_offset
            at = entry.end


def by_batches(store: Store, queue: Queue) -> Iterator[int]:
    for offset in range(queue.next_offset):
        found = store.reader.batches(queue, offset, END, END, at_least_one=True, cold=None)
        yield from map(body_offset, found.bodies)


def by_messages(store: Store, queue: Queue) -> Iterator[int]:
    for offset in range(queue.next_offset):
        for found in store.reader.messages(queue, offset, END, END, at_least_one=True, cold=None):
            yield found.unit.base


def by_alike(store: Store, queue: Queue) -> Iterator[int]:
    for offset in range(queue.next_offset):
        found = store.reader.alike(queue, offset, END, 1 << 20, may_be_cold=False)
        yield from () if found is None else found.offsets


def by_message_run(store: Store, queue: Queue) -> Iterator[int]:
    for offset in range(queue.next_offset):
        run = store.reader.message_run(queue, offset, END, count_max=99, size_max=1 << 20)
        yield from offsets_of(run.buffers)
        if run.batch is not None:
            yield run.batch.unit.base


def by_entry(store: Store, queue: Queue) -> Iterator[int]:
    for offset in range(queue.next_offset):
        unit = queue.find(offset)
        assert unit is not None
        try:
            yield store.reader.entry(queue, unit).unit.base
        except OffsetOutOfRange as error:
            assert error.high == store.reader.high_watermark(queue)


def by_high_watermark(store: Store, queue: Queue) -> Iterator[int]:
    yield from range(store.reader.high_watermark(queue))


def by_position(store: Store, queue: Queue) -> Iterator[int]:
    for fields in queue.walk(0):
        found = store.lookup.entry(fields[1])
        if found is not None:
            yield found[1].unit.base


def by_key(store: Store, queue: Queue) -> Iterator[int]:
    for position in store.lookup.by_key(queue.topic, KEY, limit=99):
        found = store.lookup.entry(position)
        assert found is not None
        yield found[1].unit.base


READS: dict[tuple[type, str], Read] = {
    (Reader, "batches"): by_batches,
    (Reader, "messages"): by_messages,
    (Reader, "alike"): by_alike,
    (Reader, "message_run"): by_message_run,
    (Reader, "entry"): by_entry,
    (Reader, "high_watermark"): by_high_watermark,
    (Lookup, "entry"): by_position,
    (Lookup, "by_key"): by_key,
}
WITHOUT_BODIES = {(Lookup, "stored_ms")}
OF_BATCHES = {"batches"}


def append(store: Store, queue: Queue, *, batches: bool) -> None:
    for _ in range(COUNT):
        body = (b"%d" % queue.next_offset).ljust(9, b".")
        if batches:
            store.appender.batch(queue, body, count=1, record_ms=1)
        else:
            properties = b"KEYS\x01" + KEY + b"\x02"
            store.appender.message(queue, Draft(b"", 0, 0, body, properties, born_ms=1))


def test_every_public_way_to_read_is_tried_here() -> None:
    public = {
        (owner, name)
        for owner in (Reader, Lookup)
        for name in vars(owner)
        if not name.startswith("_")
    }
    assert public == READS.keys() | WITHOUT_BODIES


@pytest.mark.row("I-02")
@pytest.mark.parametrize("flush", ["async", "sync"])
@pytest.mark.parametrize(("owner", "name"), READS)
def test_a_read_ends_at_the_high_watermark(owner: type, name: str, flush: str) -> None:
    keeping = Keeping(flush=flush, key_index=True, segment_bytes=1 << 20)
    keeping.topic("a")
    store, queue, read = keeping.store, keeping.queue("a"), READS[owner, name]
    append(store, queue, batches=name in OF_BATCHES)
    store.flush()
    append(store, queue, batches=name in OF_BATCHES)
    visible = COUNT if flush == "sync" else 2 * COUNT
    assert store.reader.high_watermark(queue) == visible
    assert set(read(store, queue)) == set(range(visible))
    store.flush()
    assert set(read(store, queue)) == set(range(2 * COUNT))
    store.close()


def test_what_was_never_flushed_is_not_read_by_a_batch_between_messages() -> None:
    keeping = Keeping(flush="sync")
    keeping.topic("a")
    store, queue = keeping.store, keeping.queue("a")
    append(store, queue, batches=False)
    store.flush()
    append(store, queue, batches=True)
    run = store.reader.message_run(queue, 0, END, count_max=99, size_max=1 << 20)
    assert (run.message_count, run.next_offset, run.batch) == (COUNT, COUNT, None)
    found = store.reader.batches(queue, COUNT, END, END, at_least_one=True, cold=None)
    assert (found.bodies, found.is_at_message, found.is_at_delayed) == ([], False, False)
    store.close()
