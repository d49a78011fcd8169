"""How fast are our codecs of the Kafka protocol, compared with kafka-python in the same run?

Defends: decoding a Produce request and encoding a Fetch response on the hot path take at most 0.6
of kafka-python's time; a Metadata response of 10,000 partitions, encoded in slices and assembled
from cached topics, never blocks the event loop for more than 10 ms.

Both sides decode and encode the same bytes, which is verified before anything is timed. Payloads
are 4 KiB per partition. kafka-python joins its response into one buffer and copies records out of a
request; ours uses slices, which is the point and is not subtracted.
"""

import functools
import importlib.metadata
import statistics
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from bench.measure.race import Work, race, ratio, steps_ms
from bench.measure.results import Bar, Report
from rockgate.gateway.kafka.topics.partition_runs import PartitionRun
from rockgate.protocol.kafka.hot import fetch, produce
from rockgate.protocol.kafka.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from rockgate.protocol.kafka.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.batch import check_produced, stamp
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records
from rockgate.protocol.kafka.schema import decode, encode, encode_buffers, encode_part, join

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python parses its schemas in a deprecated way
    from kafka.protocol import consumer as kafka_consumer
    from kafka.protocol import metadata as kafka_metadata
    from kafka.protocol import producer as kafka_producer
    from kafka.record.default_records import DefaultRecordBatch

ROUNDS = 200
RATIO_MAX = 0.6
HOLD_MS_MAX = 10.0
PAYLOAD_SIZE = 4096
TOPIC_ID = bytes(range(16))
COUNTS = (1, 10, 100)
RUN_COUNT = 500

Case = tuple[str, dict[str, Work], float | None]


def run(rounds: int = ROUNDS) -> Report:
    """Measure every case, print a table, and report which bars hold."""
    report = Report(
        name="codec",
        question="How fast are our codecs of Kafka's wire, beside kafka-python's?",
        peers={"kafka-python": importlib.metadata.version("kafka-python")},
    )
    for name, rivals, limit in _cases():
        samples = race(rivals, rounds)
        report.samples[f"{name}, us"] = samples
        share = ratio(samples, "ours", "kafka-python")
        medians = ", ".join(f"{who} {statistics.median(row):.2f}" for who, row in samples.items())
        print(f"{name:46} {share:6.2f} of kafka-python   (us: {medians})")
        if limit is not None:
            report.bars.append(Bar(name=name, measured=share, at_most=limit, unit="of its time"))
    report.notes["metadata"] = (
        "the bars are for cold and cached: processor time of the thread, existing objects frozen; "
        "the samples by the wall clock with the collector on, and of unsliced topics, have no bar"
    )
    _metadata(report, max(5, rounds // 5))
    return report


def _cases() -> Iterator[Case]:
    for count in COUNTS:
        for version in (7, 9, 13):
            yield _produce_request(version, count)
        for version in (11, 12, 17):
            yield _fetch_response(version, count)
    for version in (7, 13):
        yield _produce_response(version, 1)
    for version in (11, 17):
        yield _fetch_request(version, 10)
    yield _batch_header()
    yield _records()


# Produce


def _produce_request(version: int, count: int) -> Case:
    value = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name="orders",
                topic_id=TOPIC_ID,
                partition_data=[
                    PartitionProduceData(index=index, records=bytes(PAYLOAD_SIZE))
                    for index in range(count)
                ],
            )
        ],
    )
    body = encode(value, version)
    view = memoryview(body)
    theirs = kafka_producer.ProduceRequest
    assert _rewritten(theirs, body, version) == body
    rivals: dict[str, Work] = {
        "ours": lambda: produce.decode_request(version, view),
        "declared": lambda: decode(ProduceRequest, version, view),
        "kafka-python": lambda: theirs.decode(body, version=version),
    }
    return f"Produce v{version} request decode, {count} partitions", rivals, RATIO_MAX


def _produce_response(version: int, count: int) -> Case:
    topics = [
        produce.ProducedTopic(
            "orders", TOPIC_ID, [produce.ProducedPartition(n, 0, 2**40) for n in range(count)]
        )
    ]
    body = b"".join(produce.encode_response(version, topics))
    value = decode(ProduceResponse, version, body)
    theirs = _decoded(kafka_producer.ProduceResponse, body, version)
    rivals: dict[str, Work] = {
        "ours": lambda: produce.encode_response(version, topics),
        "declared": lambda: encode(value, version),
        "kafka-python": lambda: theirs.encode(version=version),
    }
    return f"Produce v{version} response encode, {count} partitions", rivals, None


# Fetch


def _fetch_request(version: int, count: int) -> Case:
    value = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic="orders",
                topic_id=TOPIC_ID,
                partitions=[
                    FetchPartition(partition=n, fetch_offset=2**40, partition_max_bytes=2**20)
                    for n in range(count)
                ],
            )
        ],
    )
    body = encode(value, version)
    view = memoryview(body)
    theirs = kafka_consumer.FetchRequest
    rivals: dict[str, Work] = {
        "ours": lambda: fetch.decode_request(version, view),
        "declared": lambda: decode(FetchRequest, version, view),
        "kafka-python": lambda: theirs.decode(body, version=version),
    }
    return f"Fetch v{version} request decode, {count} partitions", rivals, None


def _fetch_response(version: int, count: int) -> Case:
    payload = [memoryview(bytes(PAYLOAD_SIZE))]
    topics = [
        fetch.FetchedTopic(
            "orders",
            TOPIC_ID,
            [fetch.FetchedPartition(n, 0, 2**40, 2**40, 0, payload) for n in range(count)],
        )
    ]
    body = b"".join(fetch.encode_response(version, topics))
    value = decode(FetchResponse, version, body)
    theirs = _decoded(kafka_consumer.FetchResponse, body, version)
    assert theirs.encode(version=version) == body
    rivals: dict[str, Work] = {
        "ours": lambda: fetch.encode_response(version, topics),
        "declared": lambda: encode(value, version),
        "kafka-python": lambda: theirs.encode(version=version),
    }
    return f"Fetch v{version} response encode, {count} partitions", rivals, RATIO_MAX


# Batches


def _batch_header() -> Case:
    batch = build_batch([Record(0, 0, None, bytes(4020))], base_offset=0)
    view = memoryview(batch)

    def ours() -> None:
        check_produced(view, 9)
        stamp(view, 0, 7)

    rivals: dict[str, Work] = {
        "ours": ours,
        "kafka-python": lambda: DefaultRecordBatch(view).validate_crc(),
    }
    return f"Batch of {len(batch)} bytes, check and stamp", rivals, None


def _records() -> Case:
    records = [Record(n, 1_700_000_000_000 + n, b"key", bytes(100)) for n in range(100)]
    batch = bytes(build_batch(records, base_offset=0))
    rivals: dict[str, Work] = {
        "ours": lambda: read_records(batch),
        "kafka-python": lambda: list(DefaultRecordBatch(batch)),
    }
    return "Batch of 100 records, read them all", rivals, None


# Metadata


def _metadata(report: Report, rounds: int) -> None:
    """The longest single step of a response with 10,000 partitions, in three kinds of clusters."""
    for topic_count, partition_count in ((1, 10_000), (100, 100), (10_000, 1)):
        name = f"Metadata v12 of {topic_count} topics x {partition_count} partitions"
        topics = [_topic(n, partition_count) for n in range(topic_count)]
        samples = report.samples.setdefault(f"{name}, longest step, ms", {})
        cold, whole, cached = (
            functools.partial(make, topics) for make in (_cold, _whole_topics, _cached)
        )
        samples["cold"] = steps_ms(cold, rounds, is_calm=True)
        samples["cached"] = steps_ms(cached, rounds, is_calm=True)
        samples["cold, wall clock and collector"] = steps_ms(cold, rounds, is_calm=False)
        samples["cold, topics not sliced"] = steps_ms(whole, rounds, is_calm=True)
        body = encode(_response(topics), 12)
        for steps in (cold, whole, cached):
            assert b"".join(_last(steps())) == body
        theirs = _decoded(kafka_metadata.MetadataResponse, body, 12)
        samples["kafka-python"] = steps_ms(
            lambda theirs=theirs: iter([lambda: theirs.encode(version=12)]),  # type: ignore[misc]
            max(3, rounds // 4),
            is_calm=True,
        )
        medians = ", ".join(f"{who} {statistics.median(row):.2f}" for who, row in samples.items())
        worst = max(samples["cold"] + samples["cached"])
        print(f"{name:46} worst step {worst:.2f} ms   (medians, ms: {medians})")
        report.bars.append(Bar(name=name, measured=worst, at_most=HOLD_MS_MAX, unit="ms"))


def _cold(topics: list[MetadataResponseTopic]) -> Iterator[Work]:
    """Nothing is cached: a step for each topic, as in the gateway, and one for the whole."""
    parts: list[Any] = []

    def numbered(number: int) -> MetadataResponsePartition:
        first = topics[0].partitions[0]
        assert isinstance(first, MetadataResponsePartition)
        partition = copy(first)
        partition.partition_index = number
        return partition

    run = PartitionRun(MetadataResponse, numbered, 12)

    def one(topic: MetadataResponseTopic) -> None:
        merged = copy(topic)
        merged.partitions = [run.between(0, len(topic.partitions))]
        parts.append(encode_part(MetadataResponse, merged, 12))

    runs: list[Any] = []

    def join_some(start: int) -> None:
        runs.append(join(MetadataResponseTopic, 12, parts[start : start + RUN_COUNT]))

    for topic in topics:
        yield functools.partial(one, topic)
    for start in range(0, len(topics), RUN_COUNT):
        yield functools.partial(join_some, start)
    yield functools.partial(_whole, runs)


def _whole_topics(topics: list[MetadataResponseTopic]) -> Iterator[Work]:
    """Nothing is cached, and a topic is one step however many partitions it has."""
    parts: list[Any] = []

    def one(topic: MetadataResponseTopic) -> None:
        parts.append(encode_part(MetadataResponse, topic, 12))

    for topic in topics:
        yield functools.partial(one, topic)
    yield functools.partial(_whole, parts)


def _cached(topics: list[MetadataResponseTopic]) -> Iterator[Work]:
    """Every topic is cached: one step."""
    parts = [encode_part(MetadataResponse, topic, 12) for topic in topics]
    yield functools.partial(_whole, [join(MetadataResponseTopic, 12, parts)])


def _last(steps: Iterator[Work]) -> Any:
    """Run all steps, and return the result of the last one."""
    result: Any = None
    for step in steps:
        result = step()
    return result


def _whole(parts: list[Any]) -> list[bytes]:
    """The response as the gateway sends it: buffers, of which large ones are not copied again."""
    return encode_buffers(_response(parts), 12)


def _response(topics: list[Any]) -> MetadataResponse:
    broker = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=9092)
    return MetadataResponse(brokers=[broker], cluster_id="cluster", controller_id=1, topics=topics)


def _topic(number: int, partition_count: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=f"topic-{number}",
        topic_id=TOPIC_ID,
        partitions=[
            MetadataResponsePartition(
                partition_index=n, leader_id=1, leader_epoch=1, replica_nodes=[1], isr_nodes=[1]
            )
            for n in range(partition_count)
        ],
    )


# kafka-python


def _decoded(message: Any, body: bytes, version: int) -> Any:
    value = message.decode(body, version=version)
    # A decoded message has no header, but kafka-python expects one when it encodes.
    value._header = None
    return value


def _rewritten(message: Any, body: bytes, version: int) -> bytes:
    written: Callable[..., bytes] = _decoded(message, body, version).encode
    return written(version=version)
