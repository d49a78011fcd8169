from collections.abc import Callable

import pytest
from tests.cli.client.brokers import Brokers

from rockgate.cli.client.kafka.errors import Refused, Unreachable
from rockgate.cli.client.produce.partitioner import partition_of
from rockgate.cli.client.produce.producer import BATCH_BYTES, Outgoing, Producer, Sent
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.init_producer_id import InitProducerIdResponse
from rockgate.protocol.kafka.messages.metadata import MetadataRequest, MetadataResponse
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from rockgate.protocol.kafka.records.batch import BatchHeader, check
from rockgate.protocol.kafka.records.record import read_records


class Log:
    """What nodes wrote, by partition; `verdict` may refuse a batch before it is written."""

    def __init__(self, brokers: Brokers) -> None:
        self.batches: dict[int, list[BatchHeader]] = {}
        self.values: dict[int, list[bytes | None]] = {}
        self.verdict: Callable[[int, int, BatchHeader], int] = lambda node, index, header: 0
        brokers.answers[ApiKey.INIT_PRODUCER_ID] = lambda node, request: InitProducerIdResponse(
            producer_id=77, producer_epoch=0
        )
        brokers.answers[ApiKey.PRODUCE] = self.produce

    def produce(self, node: int, request: ProduceRequest) -> ProduceResponse | None:
        parts = []
        for part in request.topic_data[0].partition_data:
            assert part.records is not None
            header = check(part.records)
            code = self.verdict(node, part.index, header)
            base = len(self.values.get(part.index, []))
            if not code:
                self.batches.setdefault(part.index, []).append(header)
                self.values.setdefault(part.index, []).extend(
                    record.value for record in read_records(part.records)
                )
            parts.append(
                PartitionProduceResponse(
                    index=part.index, error_code=code, base_offset=-1 if code else base
                )
            )
        if request.acks == 0:
            return None
        topic = TopicProduceResponse(name=request.topic_data[0].name, partition_responses=parts)
        return ProduceResponse(responses=[topic])


async def test_keys_decide_and_the_rest_takes_turns() -> None:
    brokers = Brokers({("t", index): 1 for index in range(3)})
    log = Log(brokers)
    async with brokers.cluster() as cluster:
        producer = Producer(cluster, "t")
        await producer.open()
        for number in range(6):
            producer.add(Outgoing(b"key", b"%d" % number))
        await producer.flush()
        for number in range(3):
            producer.add(Outgoing(None, b"free-%d" % number))
            await producer.flush()
        producer.add(Outgoing(b"key", b"there", partition=2))
        await producer.flush()
    by_key = partition_of(b"key", 3)
    assert log.values[by_key][:6] == [b"0", b"1", b"2", b"3", b"4", b"5"]
    free = {
        index: [v for v in values if v and v.startswith(b"free")]
        for index, values in log.values.items()
    }
    assert [len(values) for values in free.values()] == [1, 1, 1]
    assert log.values[2][-1] == b"there"
    assert sum(sent.record_count for sent in producer.sent.values()) == 10


async def test_each_leader_gets_its_own_partitions_in_one_request() -> None:
    brokers = Brokers({("t", 0): 1, ("t", 1): 2, ("t", 2): 2}, nodes=(1, 2))
    Log(brokers)
    async with brokers.cluster() as cluster:
        producer = Producer(cluster, "t")
        await producer.open()
        for index in range(3):
            producer.add(Outgoing(None, b"x", partition=index))
        await producer.flush()
    asked = {
        node: [part.index for part in request.topic_data[0].partition_data]
        for node, request in brokers.requests(ProduceRequest)
    }
    assert asked == {1: [0], 2: [1, 2]}


async def test_sequences_continue_and_a_batch_sent_again_keeps_its_own() -> None:
    brokers = Brokers({("t", 0): 1}, nodes=(1, 2))
    log = Log(brokers)
    refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER]

    def verdict(node: int, index: int, header: BatchHeader) -> int:
        if header.base_sequence == 2 and refusals:
            brokers.leaders["t", 0] = 2
            return refusals.pop()
        return 0

    log.verdict = verdict
    async with brokers.cluster() as cluster:
        producer = Producer(cluster, "t")
        await producer.open()
        for batch in ([b"a", b"b"], [b"c"], [b"d"]):
            for value in batch:
                producer.add(Outgoing(None, value))
            await producer.flush()
    assert log.values[0] == [b"a", b"b", b"c", b"d"]
    written = [(h.producer_id, h.base_sequence, h.record_count) for h in log.batches[0]]
    assert written == [(77, 0, 2), (77, 2, 1), (77, 3, 1)]
    assert [node for node, _ in brokers.requests(ProduceRequest)] == [1, 1, 2, 2]
    assert producer.sent == {0: Sent(4, 0, 3)}


async def test_a_batch_that_was_written_before_the_connection_died_counts_once() -> None:
    brokers = Brokers({("t", 0): 1})
    log = Log(brokers)
    written = log.produce
    is_cut = False

    def cut(node: int, request: ProduceRequest) -> ProduceResponse | None:
        nonlocal is_cut
        if is_cut:
            log.verdict = lambda node, index, header: ErrorCode.DUPLICATE_SEQUENCE_NUMBER
            return written(node, request)
        is_cut = True
        written(node, request)
        brokers.wires[-1].cut()
        return None

    brokers.answers[ApiKey.PRODUCE] = cut
    async with brokers.cluster(timeout_s=5) as cluster:
        producer = Producer(cluster, "t")
        await producer.open()
        producer.add(Outgoing(None, b"once"))
        await producer.flush()
    assert log.values[0] == [b"once"]
    assert producer.sent[0].record_count == 1


async def test_a_batch_that_is_too_large_is_cut_in_two() -> None:
    brokers = Brokers({("t", 0): 1})
    log = Log(brokers)
    log.verdict = lambda node, index, header: (
        ErrorCode.MESSAGE_TOO_LARGE if header.record_count > 3 else 0
    )
    async with brokers.cluster() as cluster:
        producer = Producer(cluster, "t")
        await producer.open()
        for number in range(10):
            producer.add(Outgoing(None, b"%d" % number * 100))
        await producer.flush()
    assert log.values[0] == [b"%d" % number * 100 for number in range(10)]
    assert log.batches[0][0].base_sequence == 0
    assert max(header.record_count for header in log.batches[0]) <= 3


async def test_one_record_that_is_too_large_is_refused() -> None:
    brokers = Brokers({("t", 0): 1})
    Log(brokers).verdict = lambda node, index, header: ErrorCode.MESSAGE_TOO_LARGE
    async with brokers.cluster() as cluster:
        producer = Producer(cluster, "t")
        await producer.open()
        producer.add(Outgoing(None, b"x"))
        with pytest.raises(Refused, match=r"Topic t partition 0: .*MESSAGE_TOO_LARGE"):
            await producer.flush()


async def test_a_flush_is_due_when_a_batch_is_full() -> None:
    brokers = Brokers({("t", 0): 1})
    log = Log(brokers)
    async with brokers.cluster() as cluster:
        producer = Producer(cluster, "t")
        await producer.open()
        dues = [producer.add(Outgoing(None, b"x" * (BATCH_BYTES // 4))) for _ in range(4)]
        await producer.flush()
    assert dues == [False, False, False, True]
    assert len(log.values[0]) == 4


async def test_without_acks_nothing_is_waited_for_and_there_is_no_producer_id() -> None:
    brokers = Brokers({("t", 0): 1})
    log = Log(brokers)
    async with brokers.cluster() as cluster:
        producer = Producer(cluster, "t", acks=0)
        await producer.open()
        producer.add(Outgoing(None, b"x"))
        await producer.flush()
    assert log.values[0] == [b"x"]
    assert [header.producer_id for header in log.batches[0]] == [-1]
    assert producer.sent == {0: Sent(1, -1, -1)}


async def test_a_topic_that_is_missing_is_created_by_asking_for_it() -> None:
    brokers = Brokers()
    Log(brokers)
    created: list[int] = []

    def metadata(node: int, request: MetadataRequest) -> MetadataResponse:
        answer = brokers.metadata(request)
        if request.allow_auto_topic_creation:
            # It exists by the next request.
            brokers.leaders["new", 0] = 1
        return answer

    brokers.answers[ApiKey.METADATA] = metadata
    async with brokers.cluster() as cluster:
        producer = Producer(cluster, "new", on_created=created.append)
        await producer.open()
    assert (producer.partition_count, created) == (1, [1])


async def test_a_topic_that_no_one_creates_is_an_error_in_time() -> None:
    brokers = Brokers()
    Log(brokers)
    async with brokers.cluster(timeout_s=0.2) as cluster:
        with pytest.raises(Refused, match=r"Topic new: .*UNKNOWN_TOPIC_OR_PARTITION"):
            await Producer(cluster, "new").open()


async def test_a_server_that_stays_away_is_unreachable() -> None:
    brokers = Brokers({("t", 0): 1})
    Log(brokers)
    async with brokers.cluster(timeout_s=0.2) as cluster:
        producer = Producer(cluster, "t")
        await producer.open()
        producer.add(Outgoing(None, b"x"))
        brokers.down = {1}
        brokers.wires[0].cut()
        with pytest.raises(Unreachable, match="connection refused"):
            await producer.flush()


async def test_a_partition_that_is_not_there_is_refused() -> None:
    brokers = Brokers({("t", 0): 1})
    Log(brokers)
    async with brokers.cluster() as cluster:
        producer = Producer(cluster, "t")
        await producer.open()
        with pytest.raises(Refused, match="partition 4 does not exist, only 0 to 0"):
            producer.add(Outgoing(None, b"x", partition=4))
