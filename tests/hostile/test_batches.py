"""Batches that decompress to far more than their size: opening one blocks no other request."""

from __future__ import annotations

import itertools
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from tests.gateway.kafka.raw import RawClient
from tests.gateway.remoting.client import Client, messages
from tests.gateway.server import RunningServer
from tests.hostile import bombs
from tests.hostile.stalls import STALL_SECONDS_MAX, forget_peak, peak_bytes, stall_seconds
from tests.waiting import wait_until

from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.compression import compress
from rockgate.protocol.kafka.records.record import Record, build_batch

GROWTH_MAX = 400 << 20
"""Two batches of 64 MiB that are opened at a time, one that is cached, and their overhead."""
MILLION = 1_000_000
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    settings = ("topics.message_bytes_max=14MiB", "topics.partitions=1")
    with RunningServer(
        tmp_path_factory.mktemp("bombs"), settings=settings, rocketmq=True
    ) as running:
        yield running
        running.stop_cleanly()


@pytest.fixture(scope="module")
def million() -> bytes:
    return bombs.many_records(MILLION)


class Target:
    """A server, and what is done to a topic of its own."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        self.kafka = RawClient(server)
        self.rocketmq = Client(server.address("remoting"))
        self.name = ""

    def make(self, **configs: str) -> None:
        self.name = f"bomb-{next(_numbers)}"
        told = [
            CreatableTopicConfig(name=name.replace("_", "."), value=value)
            for name, value in configs.items()
        ]
        topic = CreatableTopic(name=self.name, num_partitions=1, replication_factor=1, configs=told)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        answer = self.kafka.call(ApiKey.CREATE_TOPICS, 5, request, CreateTopicsResponse)
        assert [each.error_code for each in answer.topics] == [0]  # type: ignore[union-attr]

    def produce(self, batch: bytes) -> PartitionProduceResponse:
        data = [PartitionProduceData(index=0, records=batch)]
        topics = [TopicProduceData(name=self.name, partition_data=data)]
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
        answer = self.kafka.call(ApiKey.PRODUCE, 9, request, ProduceResponse)
        return answer.responses[0].partition_responses[0]

    def at_time(self, time_ms: int) -> ListOffsetsPartitionResponse:
        asked = ListOffsetsPartition(partition_index=0, timestamp=time_ms)
        topics = [ListOffsetsTopic(name=self.name, partitions=[asked])]
        request = ListOffsetsRequest(replica_id=-1, topics=topics)
        answer = self.kafka.call(ApiKey.LIST_OFFSETS, 7, request, ListOffsetsResponse)
        return answer.topics[0].partitions[0]

    def pull(self, offset: int = 0) -> tuple[list[int], int]:
        """Offsets that a pull returns, and where the next one continues."""
        answer = self.rocketmq.pull(self.name, offset)
        found = [each.queue_offset for each in messages(answer)] if answer.body else []
        return found, int(answer.fields["nextBeginOffset"])

    def fetch(self, offset: int) -> bytes:
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic=self.name, partitions=[wanted])]
        request = FetchRequest(max_wait_ms=1000, min_bytes=1, topics=topics)
        answer = self.kafka.call(ApiKey.FETCH, 12, request, FetchResponse)
        return bytes(answer.responses[0].partitions[0].records or b"")

    def by_key(self, key: str) -> int:
        asked = {
            "topic": self.name,
            "key": key,
            "maxNum": 32,
            "beginTimestamp": 0,
            "endTimestamp": 2**62,
        }
        answer = self.rocketmq.ask(12, asked)
        return len(messages(answer)) if answer.body else 0

    def close(self) -> None:
        self.kafka.socket.close()
        self.rocketmq.socket.close()


@pytest.fixture
def world(server: RunningServer) -> Iterator[Target]:
    world = Target(server)
    world.rocketmq.pull("nothing")
    forget_peak(server.pid)
    before = peak_bytes(server.pid)
    try:
        yield world
        growth = peak_bytes(server.pid) - before
        assert growth < GROWTH_MAX, f"{growth >> 20} MiB more at its peak"
    finally:
        world.close()


def small(text: bytes = b"small") -> bytes:
    return bytes(build_batch([Record(0, bombs.NOW_MS, b"k", text)], base_offset=0))


def too_large_count(server: RunningServer) -> int:
    host, port = server.address("http")
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    name = "rockgate_batches_too_large_total "
    (line,) = (line for line in lines if line.startswith(name))
    return int(float(line.removeprefix(name)))


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(lambda: bombs.many_headers(15 * MILLION), id="15 million headers"),
        pytest.param(lambda: bombs.many_headers(2 * MILLION, b"aa"), id="2 million headers"),
        pytest.param(lambda: bombs.many_records(MILLION + 1), id="more than a million records"),
        pytest.param(lambda: bombs.many_bytes(200 << 20, Compression.GZIP), id="gzip"),
        pytest.param(lambda: bombs.gzip_that_lies(200 << 20), id="gzip that lies"),
        pytest.param(lambda: bombs.zstd_that_says_nothing(200 << 20), id="zstd"),
        pytest.param(lambda: bombs.many_bytes(200 << 20, Compression.LZ4), id="lz4"),
        pytest.param(lambda: bombs.many_bytes(100 << 20, Compression.SNAPPY), id="snappy"),
    ],
)
def test_a_plain_topic_takes_a_bomb_and_a_pull_passes_over_it(
    world: Target, bomb: Callable[[], bytes]
) -> None:
    world.make()
    batch = bomb()
    before = too_large_count(world.server)
    taken = world.produce(batch)
    assert taken.error_code == 0, taken
    assert world.produce(small()).error_code == 0
    end = world.pull(1 << 40)[1]

    def work() -> None:
        offset, found = 0, []
        while offset < end:
            part, offset = world.pull(offset)
            found += part
        assert found == [end - 1]

    assert stall_seconds(world.server, work) < STALL_SECONDS_MAX
    assert too_large_count(world.server) == before + 1
    assert world.server.log.count(f"offset={taken.base_offset} ") >= 1


@pytest.mark.parametrize("lie", [bombs.snappy_that_lies, bombs.lz4_that_lies])
def test_a_batch_that_lies_about_its_size_is_passed_over(
    world: Target, lie: Callable[[int], bytes]
) -> None:
    world.make()
    world.produce(lie(2_000_000_000 if lie is bombs.snappy_that_lies else 1 << 20))
    world.produce(small())
    assert world.pull() == ([], 1) or world.pull() == ([1], 2)
    assert world.pull(1) == ([1], 2)


def test_a_million_records_are_pulled_anywhere_without_a_stall(
    world: Target, million: bytes
) -> None:
    world.make()
    assert world.produce(million).error_code == 0

    def work() -> None:
        for offset in (MILLION - 1, 0, MILLION // 2, MILLION - 300):
            found, following = world.pull(offset)
            assert found[0] == offset and following == found[-1] + 1

    assert stall_seconds(world.server, work) < STALL_SECONDS_MAX


@pytest.mark.parametrize("is_headers", [True, False])
def test_a_search_by_time_is_done_beside_the_loop(
    world: Target, million: bytes, is_headers: bool
) -> None:
    world.make()
    bomb = bombs.many_headers(2 * MILLION) if is_headers else million
    assert world.produce(bomb).error_code == 0

    def work() -> None:
        assert world.at_time(bombs.NOW_MS).offset == 0
        assert world.at_time(-3).offset == 0

    assert stall_seconds(world.server, work) < STALL_SECONDS_MAX


def test_a_search_by_time_passes_over_what_is_too_large(world: Target) -> None:
    world.make()
    world.produce(bombs.many_bytes(200 << 20, Compression.ZSTD))
    world.produce(small())
    offsets: list[int] = []
    assert (
        stall_seconds(world.server, lambda: offsets.append(world.at_time(bombs.NOW_MS).offset))
        < STALL_SECONDS_MAX
    )
    assert set(offsets) == {1}


OPENING = {
    "validating": {"validate_batches": "true"},
    "compacting": {"cleanup_policy": "compact"},
    "compressing": {"compression_type": "gzip"},
    "delaying": {"message_type": "DELAY"},
}


@pytest.mark.parametrize("config", OPENING.values(), ids=OPENING)
def test_a_topic_that_opens_batches_takes_a_million_records_without_a_stall(
    world: Target, million: bytes, config: dict[str, str]
) -> None:
    world.make(**config)
    codes: list[int] = []
    assert (
        stall_seconds(world.server, lambda: codes.append(world.produce(million).error_code))
        < STALL_SECONDS_MAX
    )
    assert set(codes) == {0}


@pytest.mark.parametrize("config", OPENING.values(), ids=OPENING)
def test_a_topic_that_opens_batches_refuses_a_bomb_by_its_name(
    world: Target, config: dict[str, str]
) -> None:
    world.make(**config)
    bomb = bombs.many_headers(2 * MILLION, b"DELAY")
    answers: list[PartitionProduceResponse] = []
    assert (
        stall_seconds(world.server, lambda: answers.append(world.produce(bomb))) < STALL_SECONDS_MAX
    )
    assert {each.error_code for each in answers} == {ErrorCode.MESSAGE_TOO_LARGE}
    assert "settings under `batches`" in (answers[0].error_message or "")
    assert world.produce(small()).base_offset == 0


def test_an_index_follows_a_million_records_without_a_stall(world: Target) -> None:
    world.make(message_index="true")
    batch = bombs.many_records(MILLION // 2, b"same")

    def work() -> None:
        assert world.produce(batch).error_code == 0
        wait_until(lambda: world.by_key("same") > 0, "the keys are in")

    assert stall_seconds(world.server, work) < STALL_SECONDS_MAX
    world.produce(bombs.many_headers(15 * MILLION))
    world.produce(bytes(build_batch([Record(0, bombs.NOW_MS, b"last", b"v")], base_offset=0)))
    wait_until(lambda: world.by_key("last") == 1, "the index went on behind a bomb")
    counts: list[int] = []
    assert stall_seconds(world.server, lambda: counts.append(world.by_key("k"))) < STALL_SECONDS_MAX
    assert set(counts) == {0}


def test_a_delayed_record_of_sixty_megabytes_is_delivered_as_small_as_it_came(
    world: Target,
) -> None:
    world.make(message_type="DELAY")
    headers = bombs.varint(1) + bombs.varint(14) + b"TIMER_DELAY_MS" + bombs.varint(1) + b"1"
    data = bombs.record(0, b"k", bytes(60 << 20), headers)
    bomb = bombs.sealed(compress(data, Compression.ZSTD), 1, Compression.ZSTD)
    ends = itertools.count(2, 2)

    def work() -> None:
        assert world.produce(bomb).error_code == 0
        end = next(ends)
        wait_until(lambda: world.pull(1 << 40)[1] == end, "it is delivered")

    assert stall_seconds(world.server, work) < STALL_SECONDS_MAX
    fetched = world.fetch(1)
    assert 0 < len(fetched) < 64 << 10
