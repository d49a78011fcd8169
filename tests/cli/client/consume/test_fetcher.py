from collections.abc import Callable, Sequence

import pytest
from tests.cli.client.brokers import Brokers

from rockgate.cli.client.consume.fetcher import Chunk, Fetcher
from rockgate.cli.client.kafka.errors import Refused, Unusable
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rockgate.protocol.kafka.records.control import Marker, MarkerType, build_marker
from rockgate.protocol.kafka.records.record import Record, build_batch

Read = Callable[[int, str, int, int], PartitionData]


def batch(
    base: int,
    values: Sequence[bytes],
    *,
    producer_id: int = -1,
    is_transactional: bool = False,
) -> bytes:
    records = [Record(base + n, 1000 + n, None, value) for n, value in enumerate(values)]
    return bytes(
        build_batch(
            records,
            base_offset=base,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=is_transactional,
        )
    )


def marker(base: int, producer_id: int, kind: MarkerType) -> bytes:
    told = Marker(kind, producer_id, 0, 0)
    return bytes(build_marker(told, timestamp=1, base_offset=base))


def serve(brokers: Brokers, read: Read) -> None:
    def fetch(node: int, request: FetchRequest) -> FetchResponse:
        topics = [
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    read(node, topic.topic, part.partition, part.fetch_offset)
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return FetchResponse(responses=topics)

    brokers.answers[ApiKey.FETCH] = fetch


def data(index: int, records: bytes = b"", **fields: object) -> PartitionData:
    told = PartitionData(partition_index=index, records=records)
    for name, value in fields.items():
        setattr(told, name, value)
    return told


def values(chunks: list[Chunk]) -> list[bytes | None]:
    return [record.value for chunk in chunks for record in chunk.records]


async def test_a_fetch_from_the_middle_of_a_batch_begins_there() -> None:
    brokers = Brokers({("t", 0): 1})
    serve(brokers, lambda node, topic, index, offset: data(index, batch(10, [b"a", b"b", b"c"])))
    async with brokers.cluster() as cluster:
        fetcher = Fetcher(cluster)
        fetcher.assign({("t", 0): 11})
        chunks = await fetcher.poll()
    assert values(chunks) == [b"b", b"c"]
    assert [record.offset for record in chunks[0].records] == [11, 12]
    assert fetcher.positions == {("t", 0): 13}


async def test_each_leader_is_read_at_its_own_pace() -> None:
    brokers = Brokers({("t", 0): 1, ("t", 1): 2}, nodes=(1, 2))

    def read(node: int, topic: str, index: int, offset: int) -> PartitionData:
        return data(index, batch(offset, [b"from %d" % node]))

    serve(brokers, read)
    async with brokers.cluster() as cluster:
        fetcher = Fetcher(cluster)
        fetcher.assign({("t", 0): 0, ("t", 1): 0})
        seen: set[bytes | None] = set()
        while len(seen) < 2:
            seen |= set(values(await fetcher.poll()))
        fetcher.stop()
    assert seen == {b"from 1", b"from 2"}


async def test_what_a_transaction_took_back_is_left_out() -> None:
    records = (
        batch(0, [b"kept"], producer_id=1, is_transactional=True)
        + batch(1, [b"gone"], producer_id=2, is_transactional=True)
        + batch(2, [b"plain"])
        + marker(3, 2, MarkerType.ABORT)
        + marker(4, 1, MarkerType.COMMIT)
        + batch(5, [b"second life"], producer_id=2, is_transactional=True)
        + marker(6, 2, MarkerType.COMMIT)
    )
    aborted = [AbortedTransaction(producer_id=2, first_offset=1)]
    for is_committed, expected in (
        (True, [b"kept", b"plain", b"second life"]),
        (False, [b"kept", b"gone", b"plain", b"second life"]),
    ):
        brokers = Brokers({("t", 0): 1})
        serve(
            brokers,
            lambda node, topic, index, offset: data(index, records, aborted_transactions=aborted),
        )
        async with brokers.cluster() as cluster:
            fetcher = Fetcher(cluster, is_committed=is_committed)
            fetcher.assign({("t", 0): 0})
            chunks = await fetcher.poll()
        assert values(chunks) == expected
        assert fetcher.positions == {("t", 0): 7}
        _, request = brokers.requests(FetchRequest)[0]
        assert request.isolation_level == int(is_committed)


async def test_a_batch_of_nothing_but_a_marker_moves_the_position_on() -> None:
    brokers = Brokers({("t", 0): 1})
    serve(brokers, lambda n, t, index, offset: data(index, marker(0, 1, MarkerType.COMMIT)))
    async with brokers.cluster() as cluster:
        fetcher = Fetcher(cluster)
        fetcher.assign({("t", 0): 0})
        assert values(await fetcher.poll()) == []
    assert fetcher.positions == {("t", 0): 1}


async def test_a_batch_that_was_cut_off_is_read_the_next_time() -> None:
    whole = batch(0, [b"a"]) + batch(1, [b"b"])
    brokers = Brokers({("t", 0): 1})

    def read(node: int, topic: str, index: int, offset: int) -> PartitionData:
        return data(index, whole[:-5] if offset == 0 else batch(1, [b"b"]))

    serve(brokers, read)
    async with brokers.cluster() as cluster:
        fetcher = Fetcher(cluster)
        fetcher.assign({("t", 0): 0})
        assert values(await fetcher.poll()) == [b"a"]
        assert values(await fetcher.poll()) == [b"b"]


async def test_an_offset_outside_the_log_is_reset_and_told() -> None:
    brokers = Brokers({("t", 0): 1})

    def read(node: int, topic: str, index: int, offset: int) -> PartitionData:
        if offset < 50:
            return data(index, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        return data(index, batch(50, [b"first there is"]))

    serve(brokers, read)
    part = ListOffsetsPartitionResponse(partition_index=0, offset=50)
    brokers.answers[ApiKey.LIST_OFFSETS] = lambda node, request: ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(name="t", partitions=[part])]
    )
    async with brokers.cluster() as cluster:
        fetcher = Fetcher(cluster)
        fetcher.assign({("t", 0): 3})
        assert await fetcher.poll() == []
        assert fetcher.resets == [(("t", 0), 3, 50)]
        assert values(await fetcher.poll()) == [b"first there is"]


async def test_a_leader_that_moved_is_found() -> None:
    brokers = Brokers({("t", 0): 1}, nodes=(1, 2))

    def read(node: int, topic: str, index: int, offset: int) -> PartitionData:
        if node == 1:
            brokers.leaders["t", 0] = 2
            return data(index, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return data(index, batch(0, [b"from 2"]))

    serve(brokers, read)
    async with brokers.cluster() as cluster:
        fetcher = Fetcher(cluster, wait_ms=1)
        fetcher.assign({("t", 0): 0})
        assert await fetcher.poll() == []
        assert values(await fetcher.poll()) == [b"from 2"]


async def test_what_two_leaders_gave_is_taken_once() -> None:
    """A leader that does not know yet that it moved may still answer what the new one did."""
    brokers = Brokers({("t", 0): 1}, nodes=(1, 2))
    serve(brokers, lambda node, topic, index, offset: data(index, batch(offset, [b"x"])))
    async with brokers.cluster() as cluster:
        fetcher = Fetcher(cluster)
        fetcher.assign({("t", 0): 0})
        await fetcher._start()
        brokers.leaders["t", 0] = 2
        fetcher._view = None
        offsets = []
        for _ in range(4):
            chunks = await fetcher.poll()
            offsets += [record.offset for chunk in chunks for record in chunk.records]
        fetcher.stop()
    assert {node for node, _ in brokers.requests(FetchRequest)} == {1, 2}
    assert offsets == list(range(len(offsets)))


async def test_partitions_take_turns_at_the_front_of_a_fetch() -> None:
    brokers = Brokers({("t", index): 1 for index in range(3)})

    def read(node: int, topic: str, index: int, offset: int) -> PartitionData:
        return data(index, batch(offset, [b"x"]) if index == fronts[-1] else b"")

    fronts: list[int] = []

    def fetch(node: int, request: FetchRequest) -> FetchResponse:
        # Only the first partition of a request gets anything: the answer is full then.
        order = [part.partition for part in request.topics[0].partitions]
        fronts.append(order[0])
        parts = [
            read(node, "t", part.partition, part.fetch_offset)
            for part in request.topics[0].partitions
        ]
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=parts)])

    brokers.answers[ApiKey.FETCH] = fetch
    async with brokers.cluster() as cluster:
        fetcher = Fetcher(cluster)
        fetcher.assign({("t", index): 0 for index in range(3)})
        for _ in range(6):
            await fetcher.poll()
    assert fronts[:6] == [0, 1, 2, 0, 1, 2]


async def test_a_server_that_comes_back_is_read_on() -> None:
    brokers = Brokers({("t", 0): 1})
    serve(brokers, lambda node, topic, index, offset: data(index, batch(offset, [b"x"])))
    async with brokers.cluster() as cluster:
        fetcher = Fetcher(cluster, wait_ms=1)
        fetcher.assign({("t", 0): 0})
        await fetcher.poll()
        for wire in brokers.wires:
            wire.cut()
        chunks = await fetcher.poll() or await fetcher.poll()
    assert [record.offset for chunk in chunks for record in chunk.records] == [1]


async def test_damage_is_reported_with_its_place() -> None:
    damaged = bytearray(batch(4, [b"abc"]))
    damaged[-3] ^= 1
    brokers = Brokers({("t", 0): 1})
    serve(brokers, lambda node, topic, index, offset: data(index, bytes(damaged)))
    async with brokers.cluster() as cluster:
        fetcher = Fetcher(cluster)
        fetcher.assign({("t", 0): 4})
        with pytest.raises(
            Unusable, match=r"Cannot decode topic t partition 0 at offset 4: CRC mismatch"
        ):
            await fetcher.poll()


async def test_a_topic_that_is_deleted_ends_the_reading() -> None:
    brokers = Brokers({("t", 0): 1})

    def read(node: int, topic: str, index: int, offset: int) -> PartitionData:
        brokers.leaders.clear()
        return data(index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    serve(brokers, read)
    async with brokers.cluster() as cluster:
        fetcher = Fetcher(cluster, wait_ms=1)
        fetcher.assign({("t", 0): 0})
        await fetcher.poll()
        with pytest.raises(Refused, match=r"Topic t partition 0: .*UNKNOWN_TOPIC_OR_PARTITION"):
            await fetcher.poll()
