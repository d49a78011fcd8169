"""A client that a quota holds back, and that dials again each time: its sockets do not pile up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateway.kafka.raw import RawClient
from tests.gateway.server import RunningServer
from tests.waiting import wait_until

from rockgate.protocol.kafka.connection import ClientConnection
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import alter_client_quotas as quotas
from rockgate.protocol.kafka.messages import metadata
from rockgate.protocol.kafka.messages import produce as writing
from rockgate.protocol.kafka.records.record import Record, build_batch

RECONNECTS = 300
GREEDY = "greedy"
TOPIC = "written"
MUTED_MS_MIN = 60_000
"""The test is over before: who is noticed at all is noticed while it is held back."""
NOTICED_SECONDS_MAX = 30.0
CLOSE_WAIT = "08"
SETTINGS = (f"kafka.connections_max={RECONNECTS}", "quotas.window_ms=60000")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(tmp_path, settings=SETTINGS) as running:
        yield running
        assert running.stop() == 0


def test_a_throttled_client_that_reconnects_leaves_no_sockets_and_room_for_others(
    server: RunningServer,
) -> None:
    with RawClient(server) as admin:
        _limit(admin)
        _make_topic(admin)
    for number in range(RECONNECTS):
        assert _produce(server, GREEDY) >= MUTED_MS_MIN, number
    wait_until(
        lambda: _half_closed(server) == 0,
        "the server has closed what its client closed",
        NOTICED_SECONDS_MAX,
    )
    # With a socket left behind of each there would be no connection left for this one.
    assert _produce(server, "innocent") == 0
    assert "limit reached" not in server.log


def _half_closed(server: RunningServer) -> int:
    """Sockets of the server whose other end was closed and whose own was not."""
    port = f":{server.address('kafka')[1]:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(port) and row[3] == CLOSE_WAIT for row in rows)


def _limit(client: RawClient) -> None:
    entry = quotas.EntryData(
        entity=[quotas.EntityData(entity_type="client-id", entity_name=GREEDY)],
        ops=[quotas.OpData(key="producer_byte_rate", value=100.0)],
    )
    request = quotas.AlterClientQuotasRequest(entries=[entry])
    answer = client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, request, quotas.AlterClientQuotasResponse)
    (result,) = answer.entries
    assert isinstance(result, quotas.EntryResult) and result.error_code == 0, result


def _make_topic(client: RawClient) -> None:
    topics = [metadata.MetadataRequestTopic(name=TOPIC)]
    request = metadata.MetadataRequest(topics=topics)
    client.call(ApiKey.METADATA, 9, request, metadata.MetadataResponse)


def _produce(server: RunningServer, client_id: str) -> int:
    """Write 200 KB on a connection of its own, and close it; return the reported throttle time."""
    batch = bytes(build_batch([Record(0, 0, None, bytes(200_000))], base_offset=0))
    data = [writing.PartitionProduceData(index=0, records=batch)]
    request = writing.ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[writing.TopicProduceData(name=TOPIC, partition_data=data)],
    )
    with RawClient(server) as client:
        client.connection = ClientConnection(client_id=client_id)
        answer = client.call(ApiKey.PRODUCE, 9, request, writing.ProduceResponse)
        assert answer.responses[0].partition_responses[0].error_code == 0
        return answer.throttle_time_ms
