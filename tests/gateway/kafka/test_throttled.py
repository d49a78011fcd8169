"""Client quotas from the outside: a running server, clients that go beyond, its restart."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.gateway.kafka.raw import RawClient
from tests.gateway.server import RunningServer

from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import alter_client_quotas as altering
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from rockgate.protocol.kafka.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.record import Record, build_batch

TOPIC = "throttled"
# Three windows of a tenth of a second: one that was quiet may send a fifth of a second's worth.
SETTINGS = ["quota.window.num=3", "quotas.window_ms=100"]
RATE = 50_000.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("server"), settings=SETTINGS) as running:
        with client(running, "admin") as admin:
            request = CreateTopicsRequest(
                topics=[CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)]
            )
            made = admin.call(ApiKey.CREATE_TOPICS, 7, request, CreateTopicsResponse)
            assert made.topics[0].error_code == 0  # type: ignore[union-attr] # decoded
        yield running
        assert "Traceback" not in running.log


def client(server: RunningServer, client_id: str) -> RawClient:
    made = RawClient(server)
    made.connection = ClientConnection(client_id=client_id)
    return made


def set_quota(server: RunningServer, client_id: str, quota: str, value: float | None) -> None:
    entity = [altering.EntityData(entity_type="client-id", entity_name=client_id)]
    op = altering.OpData(key=quota, value=value or 0.0, remove=value is None)
    request = altering.AlterClientQuotasRequest(
        entries=[altering.EntryData(entity=entity, ops=[op])]
    )
    with client(server, "admin") as admin:
        answer = admin.call(
            ApiKey.ALTER_CLIENT_QUOTAS, 1, request, altering.AlterClientQuotasResponse
        )
    assert [each.error_code for each in answer.entries] == [0]  # type: ignore[union-attr] # decoded


def produce(who: RawClient, size: int) -> int:
    """Append a record, and return the reported throttle time."""
    batch = build_batch([Record(0, 0, None, b"x" * size)], base_offset=0)
    data = PartitionProduceData(index=0, records=bytes(batch))
    request = ProduceRequest(
        acks=1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
    )
    answer = who.call(ApiKey.PRODUCE, 9, request, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return answer.throttle_time_ms


def fetch(who: RawClient, bytes_max: int = 1 << 20) -> tuple[int, int]:
    """Read from the start; return the reported throttle time, and how many bytes came."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=bytes_max)
    request = FetchRequest(
        max_wait_ms=0, max_bytes=bytes_max, topics=[FetchTopic(topic=TOPIC, partitions=[partition])]
    )
    answer = who.call(ApiKey.FETCH, 11, request, FetchResponse)
    records = answer.responses[0].partitions[0].records
    return answer.throttle_time_ms, len(records or b"")


def test_a_producer_beyond_its_quota_is_told_to_wait_and_not_heard_meanwhile(
    server: RunningServer,
) -> None:
    set_quota(server, "greedy", "producer_byte_rate", RATE)
    with client(server, "greedy") as greedy, client(server, "modest") as modest:
        assert produce(greedy, 5_000) == 0
        # Before the response: this process may have its next turn long after that.
        began = time.monotonic()
        waits = [produce(greedy, 20_000)]
        # Others are not held up; and what comes from the client is answered once its time is over.
        assert produce(modest, 100_000) == 0
        assert waits[0] > 100
        greedy.api_versions()
        assert time.monotonic() - began >= (waits[0] - 50) / 1000
    set_quota(server, "greedy", "producer_byte_rate", None)
    with client(server, "greedy") as greedy:
        assert produce(greedy, 100_000) == 0


def test_a_client_that_waits_as_it_is_told_keeps_to_its_quota(server: RunningServer) -> None:
    set_quota(server, "steady", "producer_byte_rate", RATE)
    began, sent = time.monotonic(), 0
    with client(server, "steady") as steady:
        while time.monotonic() - began < 2:
            produce(steady, 5_000)
            sent += 5_000
    seconds = time.monotonic() - began
    # What a quiet client may send at first comes on top, and so does one request too many.
    assert sent <= RATE * (seconds + 0.4) + 10_000


def test_a_consumer_gets_no_more_at_once_than_the_windows_allow(server: RunningServer) -> None:
    with client(server, "writer") as writer:
        for _ in range(20):
            produce(writer, 10_000)
    set_quota(server, "reader", "consumer_byte_rate", RATE)
    with client(server, "reader") as reader:
        wait_ms, size = fetch(reader)
        assert 0 < size <= RATE * 0.2 + 10_200
        waits = [wait_ms, *(fetch(reader)[0] for _ in range(3))]
        assert max(waits) > 0
    with client(server, "other") as other:
        wait_ms, size = fetch(other)
        assert (wait_ms, size > RATE) == (0, True)


def test_quotas_are_there_after_a_restart(server: RunningServer) -> None:
    set_quota(server, "lasting", "producer_byte_rate", RATE)
    server.kill()
    server.restart()
    with client(server, "admin") as admin:
        found = admin.call(
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            1,
            DescribeClientQuotasRequest(),
            DescribeClientQuotasResponse,
        )
    entities = {entry.entity[0].entity_name for entry in found.entries or ()}  # type: ignore[union-attr] # decoded
    assert "lasting" in entities
    with client(server, "lasting") as lasting:
        produce(lasting, 10_000)
        assert produce(lasting, 100_000) > 0
