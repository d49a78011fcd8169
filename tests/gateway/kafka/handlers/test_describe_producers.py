from tests.gateway.kafka.admin import Admin, seen
from tests.gateway.kafka.world import call
from tests.world import NOW_MS

from rockgate.gateway.kafka.handlers.describe_producers import DescribeProducers
from rockgate.gateway.kafka.produce.producers import Producers
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from rockgate.protocol.kafka.records.batch import read_header
from rockgate.protocol.kafka.records.record import Record, build_batch


class Describing(Admin):
    def __init__(self) -> None:
        super().__init__()
        self.topic("a", 2)
        self.producers = Producers(self.store.appender, self.store.topics)
        self.stable_offsets = StableOffsets(self.store.topics)
        self.handler = DescribeProducers(
            catalog=self.catalog, producers=self.producers, stable_offsets=self.stable_offsets
        )

    def wrote(self, producer_id: int, epoch: int, sequence: int, count: int, at_ms: int) -> None:
        records = [Record(number, 0, None, b"v") for number in range(count)]
        batch = build_batch(
            records,
            base_offset=0,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        self.producers.record(
            self.get("a").id,
            0,
            read_header(memoryview(batch)),
            offset=sequence,
            position=sequence + 1,
            store_ms=at_ms,
        )

    async def ask(self, *topics: tuple[str, list[int]]) -> DescribeProducersResponse:
        request = DescribeProducersRequest(
            topics=[TopicRequest(name=name, partition_indexes=at) for name, at in topics]
        )
        response: DescribeProducersResponse = await seen(self.handler.handle(request, call(0)), 0)
        return response


async def test_those_who_wrote_are_reported_with_their_last_sequence() -> None:
    world = Describing()
    world.wrote(7, 2, 0, 3, NOW_MS)
    world.wrote(7, 2, 3, 2, NOW_MS + 5)
    world.wrote(8, 0, 0, 1, NOW_MS)
    response = await world.ask(("a", [0, 1]))
    first, second = response.topics[0].partitions  # type: ignore[union-attr] # it was decoded
    found = [
        (each.producer_id, each.producer_epoch, each.last_sequence, each.last_timestamp)
        for each in first.active_producers
    ]
    assert found == [(7, 2, 4, NOW_MS + 5), (8, 0, 0, NOW_MS)]
    assert {each.coordinator_epoch for each in first.active_producers} == {-1}
    assert {each.current_txn_start_offset for each in first.active_producers} == {-1}
    assert (second.partition_index, second.error_code, second.active_producers) == (1, 0, [])


async def test_what_is_not_there_has_no_producers() -> None:
    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
    response = await Describing().ask(
        ("a", [9, -1, 9]), ("none", [0]), ("no name!", [0]), ("a", [])
    )
    codes = {
        topic.name: [each.error_code for each in topic.partitions]  # type: ignore[union-attr] # decoded
        for topic in response.topics
    }
    assert codes == {"a": [unknown, unknown], "none": [unknown], "no name!": [invalid]}


async def test_an_open_transaction_is_reported_with_its_start() -> None:
    world = Describing()
    world.wrote(7, 0, 0, 1, NOW_MS)
    world.wrote(8, 0, 1, 1, NOW_MS)
    world.stable_offsets.wrote(world.get("a").id, 0, 8, 55)
    response = await world.ask(("a", [0]))
    (first,) = response.topics[0].partitions  # type: ignore[union-attr] # it was decoded
    starts = {each.producer_id: each.current_txn_start_offset for each in first.active_producers}
    assert starts == {7: -1, 8: 55}
