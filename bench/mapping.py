"""What does it cost to read messages that were written with the other protocol?

Defends: a run of 1 KB messages becomes a record batch in at most 0.6 of the time of the general
form (one object per record, one call per field), and 1 KB records become messages in at most 0.95
of it (decoding a batch, which is the same for both, dominates); no step of either takes longer than
2 ms, whatever the batch, so that the event loop is not blocked.

The peers are the general forms of the same work in this repository, on the same bytes, which are
compared before anything is timed. `bench/remoting.py` measures how fast a client gets the other
protocol's messages over a socket, compared with those of its own.
"""

import functools
import statistics
from collections.abc import Iterator, Sequence

from bench.measure.race import Work, race, ratio, steps_ms
from bench.measure.results import Bar, Report
from rockgate.gateway.transcode.batches import BatchTranscoder
from rockgate.gateway.transcode.dictionary import pack_record, read_message
from rockgate.gateway.transcode.messages import Messages
from rockgate.protocol import entry as envelope
from rockgate.protocol.kafka.records.batch import Compression, stamp
from rockgate.protocol.kafka.records.record import Header, Record, build_batch, read_records
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queueindex import Unit
from rockgate.store.queues.queueruns import Indexes
from rockgate.store.read.slices import Slice

ROUNDS = 100
TO_BATCH_MAX = 0.6
TO_MESSAGES_MAX = 0.95
STEP_MS_MAX = 2.0
SIZE = 1024
TOPIC = b"orders"
QUEUE = Queue(TOPIC, bytes(16), 0, Indexes())
HEADERS: tuple[Header, ...] = (("trace", b"0af7651916cd43dd8448eb211c80319c"), ("n", b"17"))
PROPERTIES = b"UNIQ_KEY\x017F0000010A5C18B4AAC2116BB6A80000\x02WAIT\x01true\x02TAGS\x01paid\x02"


def run(rounds: int = ROUNDS) -> Report:
    """Race hand-written against general forms, both ways; then find the longest step."""
    report = Report(name="mapping", question=__doc__.splitlines()[0], peers={"general": "own"})
    for what, properties in {"": PROPERTIES, " with keys": b"KEYS\x01k-1\x02"}.items():
        rivals = _to_batch(100, properties)
        _race(report, f"100 messages{what} to a batch", rivals, 100, rounds, TO_BATCH_MAX)
    for what, headers in {"": (), " with headers": HEADERS}.items():
        rivals = _to_messages(200, headers)
        _race(report, f"200 records{what} to messages", rivals, 200, rounds, TO_MESSAGES_MAX)
    for name, steps in {
        "10,000 small records": _pull(10_000, 10, Compression.NONE),
        "10,000 small records with headers": _pull(10_000, 10, Compression.NONE, HEADERS),
        "1,000 records of 1 KB": _pull(1_000, SIZE, Compression.NONE),
        "500 messages of 1 KB": _fetch(500, SIZE),
    }.items():
        samples = steps_ms(steps, -(-rounds // 5), is_calm=True)
        report.samples[f"longest step of {name}, ms"] = {"ours": samples}
        worst = round(statistics.median(samples), 3)
        report.bars.append(
            Bar(name=f"longest step of {name}", measured=worst, at_most=STEP_MS_MAX, unit="ms")
        )
    return report


def _race(
    report: Report, name: str, rivals: dict[str, Work], count: int, rounds: int, limit: float
) -> None:
    samples = race(rivals, rounds)
    each = {who: [round(sample / count, 4) for sample in row] for who, row in samples.items()}
    report.samples[f"{name}, µs each"] = each
    report.notes[f"{name}, µs each"] = {who: statistics.median(row) for who, row in each.items()}
    found = ratio(samples, "ours", "general")
    report.bars.append(Bar(name=name, measured=found, at_most=limit, unit="of the general"))


# Messages to a batch


def _to_batch(count: int, properties: bytes) -> dict[str, Work]:
    run = _run(count, SIZE, properties)
    transcoding = BatchTranscoder()
    ours = functools.partial(transcoding.batch, QUEUE, run, 1)
    assert read_records(ours()[0]) == read_records(_general_batch(run))
    return {"ours": ours, "general": functools.partial(_general_batch, run)}


def _general_batch(run: Sequence[Slice]) -> bytearray:
    records = []
    for each in run:
        entry = envelope.read(each.entry)
        words = read_message(envelope.properties_of(each.entry, entry))
        headers = tuple((name.decode(), value) for name, value in words.headers)
        body = bytes(each.entry[entry.body_at : entry.body_at + entry.body_size])
        records.append(Record(entry.queue_offset, entry.born_ms, words.key, body, headers))
    return build_batch(records, base_offset=records[0].offset, leader_epoch=1)


def _fetch(count: int, size: int) -> functools.partial[Iterator[Work]]:
    run = _run(count, size, PROPERTIES)

    def steps(run: Sequence[Slice]) -> Iterator[Work]:
        yield functools.partial(BatchTranscoder().batch, QUEUE, run, 1)

    return functools.partial(steps, run)


def _run(count: int, size: int, properties: bytes) -> list[Slice]:
    return [_message(offset, bytes(size), properties) for offset in range(count)]


def _message(offset: int, body: bytes, properties: bytes) -> Slice:
    magic = envelope.MAGIC_V1
    size = envelope.HEAD_SIZE_V4 + len(body) + envelope.tail_size(TOPIC, properties, magic)
    position = offset * size
    head = envelope.pack_head(
        size, magic, 0, 0, 0, offset, position, 0, 1, bytes(8), 1, bytes(8), 0, 0, len(body)
    )
    view = memoryview(head + body + envelope.pack_tail(head, TOPIC, properties, magic))
    return Slice(Unit(offset, position, size, 1, 1, 1, 0), view)


# Records to messages


def _to_messages(count: int, headers: tuple[Header, ...]) -> dict[str, Work]:
    view = _batch_entry(count, SIZE, Compression.NONE, headers)
    assert _pulled(view) == _general_messages(view)
    return {
        "ours": functools.partial(_pulled, view),
        "general": functools.partial(_general_messages, view),
    }


def _pulled(view: memoryview) -> bytes:
    messages = Messages.open(view, message_bytes_max=1 << 24)
    buffers: list[memoryview] = []
    offset = 0
    while offset < messages.end:
        cut = messages.select(offset, count_max=1 << 30, size_max=1 << 30)
        buffers += cut.buffers
        offset = cut.next_offset
    return b"".join(buffers)


def _general_messages(view: memoryview) -> bytes:
    batch = envelope.read(view)
    out = bytearray()
    records = read_records(view[batch.body_at : batch.body_at + batch.body_size])
    for index, (offset, timestamp, key, value, headers) in enumerate(records):
        body = value or b""
        properties = pack_record(key, headers, value is None)
        size = envelope.HEAD_SIZE_V4 + len(body) + 1 + len(TOPIC) + 2 + len(properties)
        out += envelope.pack_head(
            size,
            envelope.topic_magic(TOPIC),
            envelope.body_checksum(body),
            batch.queue_id,
            0,
            offset,
            batch.position | (index + 1) << 44,
            0,
            timestamp,
            batch.born_host,
            batch.store_ms,
            batch.store_host,
            0,
            0,
            len(body),
        )
        out += body
        out += len(TOPIC).to_bytes(1, "big") + TOPIC
        out += len(properties).to_bytes(2, "big") + properties
    return bytes(out)


def _pull(
    count: int, size: int, compression: Compression, headers: tuple[Header, ...] = ()
) -> functools.partial[Iterator[Work]]:
    view = _batch_entry(count, size, compression, headers)

    def steps(view: memoryview) -> Iterator[Work]:
        opened: list[Messages] = []
        yield lambda: opened.append(Messages.open(view, message_bytes_max=1 << 24))
        for offset in range(0, count, 32):
            yield functools.partial(_select, opened, offset)

    return functools.partial(steps, view)


def _select(opened: list[Messages], offset: int) -> object:
    return opened[0].select(offset, count_max=32, size_max=1 << 18)


def _batch_entry(
    count: int, size: int, compression: Compression, headers: tuple[Header, ...]
) -> memoryview:
    times = range(1_700_000_000_000, 1_700_000_000_000 + count)
    records = [Record(n, ms, b"k-%d" % n, bytes(size), headers) for n, ms in enumerate(times)]
    body = build_batch(records, base_offset=0, compression=compression)
    stamp(body, 0, 1)
    magic, properties = envelope.MAGIC_BATCH, envelope.batch_properties(count, 0)
    total = envelope.HEAD_SIZE_V4 + len(body) + envelope.tail_size(TOPIC, properties, magic)
    head = envelope.pack_head(
        total, magic, 0, 0, 0, 0, 4096, envelope.INNER_BATCH, 1, bytes(8), 1, bytes(8), 0, 0,
        len(body),
    )  # fmt: skip
    return memoryview(head + body + envelope.pack_tail(head, TOPIC, properties, magic))
