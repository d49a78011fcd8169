from __future__ import annotations

import asyncio

import pytest
from tests.gateway.kafka.transactions.ledger import transactional_writes
from tests.gateway.kafka.world import KafkaWorld, call
from tests.store.reading import entries
from tests.world import NOW_MS

from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.handlers import produce
from rockgate.gateway.kafka.handlers.produce import Produce, Produced
from rockgate.gateway.kafka.produce import first_batches
from rockgate.gateway.kafka.produce.validate import SettingsCache
from rockgate.gateway.net.stream import Disconnect
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.entry import body_of
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.hot.produce import ProducedPartition
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.records import batch
from rockgate.protocol.kafka.records.batch import Compression, TimestampType
from rockgate.protocol.kafka.records.record import Record, build_batch, read_records
from rockgate.protocol.kafka.schema import decode, encode
from rockgate.store.config import StoreConfig
from rockgate.store.errors import DiskFailed, StoreFull

SYNC = StoreConfig(segment_bytes=1 << 20, flush="sync", key_index=False)


def batch_of(count: int = 3, *, time_ms: int = NOW_MS, key: bytes | None = b"k") -> bytearray:
    records = [Record(n, time_ms, key, b"value %d" % n) for n in range(count)]
    return build_batch(records, base_offset=0)


def idempotent(first: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7) -> bytearray:
    records = [Record(n, NOW_MS, None, b"v") for n in range(count)]
    return build_batch(
        records,
        base_offset=0,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=first,
    )


@pytest.fixture(autouse=True, params=["ordinary", "shortcut"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is said of producing holds for the shortcut as well."""
    monkeypatch.setattr(Listener, "tries_shortcut", request.param == "shortcut")


class Listener:
    """A Produce handler over a store in memory with the topic `orders` of two partitions."""

    tries_shortcut = False

    def __init__(self, config: StoreConfig | None = None, **topic_config: str) -> None:
        self.world = KafkaWorld(config) if config else KafkaWorld()
        self.topic = self.world.topic(partitions=2, **topic_config)
        store = self.world.store
        self.producers = self.world.folds.producers
        self.handler = Produce(
            topics=store.topics,
            queues=store.queues,
            appender=store.appender,
            log=store.log,
            clock=store.clock,
            epochs=store.epochs,
            durability=Durability(store),
            producers=self.producers,
            settings=SettingsCache(TopicDefaults()),
            writes=transactional_writes(self.world),
            delays=self.world.delays,
        )

    def request(
        self,
        *batches: bytes | bytearray | None,
        acks: int = -1,
        name: str = "orders",
        partition: int = 0,
        topic_id: bytes = b"",
    ) -> ProduceRequest:
        data = [
            PartitionProduceData(index=partition, records=None if each is None else bytes(each))
            for each in batches
        ]
        topic = TopicProduceData(name=name, partition_data=data)
        if topic_id:
            topic.topic_id = topic_id
        return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])

    def send(self, *batches: bytes | bytearray | None, **how: object) -> ProducedPartition:
        version = how.pop("version", 9)
        assert isinstance(version, int)
        request = self.request(*batches, **how)  # type: ignore[arg-type]
        if self.tries_shortcut and (taken := self.shortcut(request, version)) is not None:
            return taken
        answer = self.handler.handle(request, call(version))
        assert isinstance(answer, Produced)
        return answer.topics[0].partitions[-1]

    def shortcut(self, request: ProduceRequest, version: int) -> ProducedPartition | None:
        answer = self.handler.shortcut(
            memoryview(encode(request, version)), version, call(version).peer
        )
        if answer is None:
            return None
        response = decode(ProduceResponse, version, b"".join(answer))
        (topic,) = response.responses
        assert topic.name == (request.topic_data[0].name if version < 13 else "")
        (told,) = topic.partition_responses
        return ProducedPartition(
            told.index,
            told.error_code,
            told.base_offset,
            told.log_append_time_ms,
            told.log_start_offset,
        )

    def stored(self, partition: int = 0) -> list[bytes]:
        queue = self.world.queue(partition=partition)
        read = entries(self.world.store, queue, queue.log_start, 1 << 20)
        return [bytes(body_of(each.entry)) for each in read]


def test_a_batch_is_stored_as_it_came_but_for_its_offset_and_epoch() -> None:
    listener = Listener()
    sent = batch_of()
    listener.send(batch_of(5))
    answer = listener.send(sent)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, 5, -1)
    stored = listener.stored()[1]
    assert stored[8:12] == bytes(sent[8:12]) and stored[16:] == bytes(sent[16:])
    header = batch.check(stored)
    assert (header.base_offset, header.leader_epoch) == (5, listener.world.store.epochs.current)


@pytest.mark.parametrize("acks", [-2, 2, 5])
def test_other_acks_than_0_1_and_all_are_refused(acks: int) -> None:
    listener = Listener()
    assert listener.send(batch_of(), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert listener.stored() == []


def test_each_partition_succeeds_or_fails_alone() -> None:
    listener = Listener()
    request = listener.request(batch_of(), b"no batch at all", batch_of())
    answer = listener.handler.handle(request, call(9))
    assert isinstance(answer, Produced)
    codes = [each.error_code for each in answer.topics[0].partitions]
    assert codes == [0, ErrorCode.INVALID_RECORD, 0]
    assert len(listener.stored()) == 2


def test_an_unknown_topic_partition_or_id_is_said_so_and_nothing_is_created() -> None:
    listener = Listener()
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert listener.send(batch_of(), name="nobody").error_code == unknown
    assert listener.send(batch_of(), partition=2).error_code == unknown
    assert listener.send(batch_of(), partition=-1).error_code == unknown
    bad_id = listener.send(batch_of(), version=13, topic_id=b"x" * 16)
    assert bad_id.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert listener.send(batch_of(), version=13, topic_id=listener.topic.id).error_code == 0
    assert len(listener.world.store.topics) == 1


def test_a_flipped_bit_is_a_corrupt_message() -> None:
    listener = Listener()
    body = batch_of()
    body[-1] ^= 1
    assert listener.send(body).error_code == ErrorCode.CORRUPT_MESSAGE
    assert listener.stored() == []


def test_a_batch_of_the_largest_size_is_taken_and_one_byte_more_is_not() -> None:
    body = batch_of()
    assert Listener(max_message_bytes=str(len(body))).send(body).error_code == 0
    over = Listener(max_message_bytes=str(len(body) - 1)).send(body)
    assert over.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_what_only_the_server_may_write_is_refused() -> None:
    listener = Listener()
    control = build_batch([Record(0, NOW_MS, b"k", b"v")], base_offset=0, is_control=True)
    assert listener.send(control).error_code == ErrorCode.INVALID_RECORD
    append_time = build_batch(
        [Record(0, NOW_MS, b"k", b"v")],
        base_offset=0,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
    )
    assert listener.send(append_time).error_code == ErrorCode.INVALID_TIMESTAMP
    unsequenced = idempotent(-1)
    assert listener.send(unsequenced).error_code == ErrorCode.INVALID_RECORD


def test_a_time_too_far_ahead_of_the_server_is_refused() -> None:
    listener = Listener()
    hour = 3_600_000
    assert listener.send(batch_of(time_ms=NOW_MS + hour)).error_code == 0
    late = listener.send(batch_of(time_ms=NOW_MS + hour + 1))
    assert late.error_code == ErrorCode.INVALID_TIMESTAMP


def test_log_append_time_is_written_into_the_batch_and_the_answer() -> None:
    listener = Listener(message_timestamp_type="LogAppendTime")
    answer = listener.send(batch_of(time_ms=NOW_MS - 5_000_000_000))
    assert (answer.error_code, answer.log_append_time_ms) == (0, NOW_MS)
    header = batch.check(listener.stored()[0])
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.max_timestamp == NOW_MS
    unit = listener.world.queue().first_at_record_time(NOW_MS)
    assert unit is not None and unit.base == 0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_a_topic_may_say_how_its_batches_are_compressed(codec: str) -> None:
    listener = Listener(compression_type=codec)
    sent = build_batch(
        [Record(n, NOW_MS + n, b"k", b"v" * 50) for n in range(4)],
        base_offset=0,
        compression=Compression.LZ4 if codec != "lz4" else Compression.NONE,
    )
    assert listener.send(sent).error_code == 0
    header = batch.check(stored := listener.stored()[0])
    assert header.compression.name == codec.upper().replace("UNCOMPRESSED", "NONE")
    assert [record[1:] for record in read_records(stored)] == [r[1:] for r in read_records(sent)]


def test_a_compacted_topic_takes_no_record_without_a_key_and_names_each() -> None:
    listener = Listener(cleanup_policy="compact")
    records = [Record(n, NOW_MS, b"k" if n % 3 else None, b"v") for n in range(10)]
    refused = listener.send(build_batch(records, base_offset=0))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in refused.record_errors] == [0, 3, 6, 9]
    assert refused.error_message is not None and "4 invalid records" in refused.error_message
    assert listener.send(batch_of(2)).error_code == 0


def test_every_record_whose_headers_are_bad_is_named() -> None:
    listener = Listener(message_type="DELAY")
    bad = (("DELAY", b"soon"),)
    records = [Record(n, NOW_MS, None, b"v", bad if n in (1, 4) else ()) for n in range(6)]
    refused = listener.send(build_batch(records, base_offset=0))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in refused.record_errors] == [1, 4]
    assert all(
        "Header DELAY must be a decimal number, not 'soon'." in str(reason)
        for _, reason in refused.record_errors
    )


def test_a_batch_that_a_codec_makes_too_large_is_refused() -> None:
    listener = Listener(compression_type="uncompressed", max_message_bytes="5000")
    sent = build_batch(
        [Record(0, NOW_MS, b"k", bytes(9_000))], base_offset=0, compression=Compression.ZSTD
    )
    assert len(sent) < 5_000
    assert listener.send(sent).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_validating_opens_what_would_pass_through() -> None:
    body = batch_of(1)
    body[batch.HEADER_SIZE] ^= 0x7F
    batch.seal(body)
    assert Listener().send(body).error_code == 0
    assert Listener(validate_batches="true").send(body).error_code == ErrorCode.INVALID_RECORD


def test_zstd_needs_version_7() -> None:
    body = build_batch([Record(0, NOW_MS, b"k", b"v")], base_offset=0, compression=Compression.ZSTD)
    assert Listener().send(body, version=7).error_code == 0
    old = Listener().send(body, version=6)
    assert old.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_without_acks_there_is_no_answer_and_an_error_closes_the_connection() -> None:
    listener = Listener()
    answer = listener.handler.handle(listener.request(batch_of(), acks=0), call(9))
    assert isinstance(answer, Produced)
    assert produce.encode(answer, 9) == []
    assert len(listener.stored()) == 1
    with pytest.raises(Disconnect):
        listener.handler.handle(listener.request(batch_of(), acks=0, name="nobody"), call(9))


def test_a_store_that_refuses_messages_is_a_storage_error_with_its_reason() -> None:
    listener = Listener()
    listener.world.store.appender.refusal = StoreFull("the disk is 95% full")
    answer = listener.send(batch_of())
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert answer.error_message == "the disk is 95% full"


def test_a_batch_that_is_sent_again_is_answered_with_its_first_offset() -> None:
    listener = Listener()
    assert listener.send(idempotent(0, 2)).base_offset == 0
    assert listener.send(idempotent(2, 3)).base_offset == 2
    assert listener.send(idempotent(0, 2)).base_offset == 0
    assert listener.send(idempotent(2, 3)).base_offset == 2
    assert len(listener.stored()) == 2
    gap = listener.send(idempotent(9))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_under_sync_the_answer_waits_for_the_disk_and_a_duplicate_too() -> None:
    listener = Listener(SYNC)
    first = listener.handler.handle(listener.request(idempotent(0)), call(9))
    again = listener.handler.handle(listener.request(idempotent(0)), call(9))
    assert isinstance(first, asyncio.Future) and isinstance(again, asyncio.Future)
    assert not first.done() and not again.done()
    listener.world.store.flush()
    offsets = [(await each).topics[0].partitions[0].base_offset for each in (first, again)]
    assert offsets == [0, 0]


async def test_a_disk_that_fails_is_told_to_those_who_wait() -> None:
    listener = Listener(SYNC)
    waiting = listener.handler.handle(listener.request(batch_of()), call(9))
    assert isinstance(waiting, asyncio.Future)
    listener.world.store.flusher.fail(DiskFailed("log", OSError("gone")))
    listener.world.store.flusher.settle()
    with pytest.raises(DiskFailed):
        await waiting


# The shortcut


def test_the_shortcut_takes_what_is_usual() -> None:
    listener = Listener()
    for version in range(9, 14):
        request = listener.request(batch_of(), topic_id=listener.topic.id)
        assert listener.shortcut(request, version) is not None
        assert listener.shortcut(
            listener.request(batch_of(), acks=1, topic_id=listener.topic.id), version
        )
    assert len(listener.stored()) == 10


def test_what_the_shortcut_leaves_alone_has_no_effect() -> None:
    listener = Listener(max_message_bytes="1000")
    requests = [
        listener.request(batch_of(), acks=0),
        listener.request(batch_of(), acks=2),
        listener.request(batch_of(), name="nobody"),
        listener.request(batch_of(), partition=2),
        listener.request(batch_of(), batch_of()),
        listener.request(None),
        listener.request(b"no batch at all"),
        listener.request(batch_of(200)),
    ]
    transactional = listener.request(batch_of())
    transactional.transactional_id = "one"
    for request in [*requests, transactional]:
        assert listener.shortcut(request, 9) is None
    assert listener.shortcut(listener.request(batch_of()), 8) is None, "only flexible versions"
    assert listener.stored() == []


def test_the_shortcut_leaves_what_waits_for_the_disk_alone() -> None:
    listener = Listener(SYNC)
    assert listener.shortcut(listener.request(batch_of()), 9) is None
    assert listener.world.queue().next_offset == 0


@pytest.mark.parametrize(("index", "found"), [("true", [0]), ("false", [])])
def test_records_are_found_by_key_if_the_topic_says_so(index: str, found: list[int]) -> None:
    config = StoreConfig(segment_bytes=1 << 20, key_index_slots=50, key_index_entries=500)
    listener = Listener(config, message_index=index)
    assert listener.send(batch_of()).error_code == 0
    store = listener.world.store
    positions = store.lookup.by_key(b"orders", b"k", limit=9)
    entries = [store.lookup.entry(position) for position in positions]
    assert [entry[1].unit.base for entry in entries if entry is not None] == found


def test_behind_a_first_batch_that_is_to_be_sent_again_no_other_is_taken() -> None:
    listener = Listener()
    appender = listener.world.store.appender
    appender.refusal = StoreFull("the disk is full")
    assert listener.send(idempotent(0, 2)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    appender.refusal = None
    assert listener.send(idempotent(2)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert listener.send(idempotent(2), partition=1).error_code == 0, (
        "another partition's own matter"
    )
    assert listener.send(idempotent(2, producer_id=8)).error_code == 0, "another producer's too"
    assert listener.send(idempotent(0, 2)).error_code == 0
    assert listener.send(idempotent(2)).error_code == 0
    assert len(listener.handler._firsts) == 0


def test_a_first_batch_that_is_refused_for_good_holds_nothing_back() -> None:
    listener = Listener()
    early = idempotent(0)
    early[-1] ^= 1
    assert listener.send(early).error_code == ErrorCode.CORRUPT_MESSAGE
    assert listener.send(idempotent(1)).error_code == 0


def test_a_producer_that_gave_up_its_first_batch_begins_anew_with_the_next_epoch() -> None:
    listener = Listener()
    appender = listener.world.store.appender
    appender.refusal = StoreFull("the disk is full")
    assert listener.send(idempotent(0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    appender.refusal = None
    assert listener.send(idempotent(0, epoch=1)).error_code == 0
    assert listener.send(idempotent(1, epoch=1)).error_code == 0


def test_refusals_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_batches, "COUNT_MAX", 3)
    listener = Listener()
    appender = listener.world.store.appender
    appender.refusal = StoreFull("the disk is full")
    for producer_id in range(10):
        listener.send(idempotent(0, producer_id=producer_id))
    assert len(listener.handler._firsts) == 3
    appender.refusal = None
    held = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    codes = [listener.send(idempotent(1, producer_id=each)).error_code for each in range(10)]
    assert codes == [0] * 7 + [held] * 3


def test_a_refused_batch_says_where_the_log_begins_if_kafka_does() -> None:
    listener = Listener(max_message_bytes="2000")
    for first in range(5):
        assert listener.send(idempotent(first)).error_code == 0
    listener.world.delete_records(3)
    told = [
        listener.send(idempotent(9)),
        listener.send(batch_of(time_ms=NOW_MS + 7_200_000)),
        listener.send(idempotent(1, epoch=1)),
    ]
    assert [(each.base_offset, each.log_start_offset) for each in told] == [(-1, 3)] * 3
    untold = [
        listener.send(batch_of(500)),
        listener.send(batch_of(), partition=9),
        listener.send(batch_of(), name="nobody"),
    ]
    assert all(each.error_code for each in untold)
    assert [each.log_start_offset for each in untold] == [-1] * 3


def test_a_batch_that_is_sent_again_is_answered_with_its_time() -> None:
    listener = Listener()
    first = listener.send(idempotent(0))
    assert first.log_append_time_ms == -1
    assert listener.send(idempotent(0)).log_append_time_ms == NOW_MS, "its own, as Kafka answers"
    listener = Listener(message_timestamp_type="LogAppendTime")
    appended = listener.send(idempotent(0))
    listener.world.clock.advance(5_000)
    listener.send(idempotent(1))
    assert listener.send(idempotent(0)).log_append_time_ms == appended.log_append_time_ms == NOW_MS
