"""The benchmark's own frames, held against the codecs and against a real server."""

from pathlib import Path

import pytest
from bench.load.kafka_frames import PRODUCE_VERSION, Frames, one_in_flight, storm
from bench.load.rdkafka import LoadFailed
from tests.gateway.kafka.raw import RawClient
from tests.gateway.server import RunningServer

from rockgate.protocol.kafka.connection import decode_request_header
from rockgate.protocol.kafka.hot.produce import (
    ProducedPartition,
    ProducedTopic,
    decode_request,
    encode_response,
)
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from rockgate.protocol.kafka.records.batch import check_produced


def test_each_frame_is_a_request_with_the_next_number_and_a_sealed_batch() -> None:
    frames = Frames("topic", 100, producer_id=7, producer_epoch=0)
    for number in range(3):
        frame = memoryview(frames.next())[4:]
        header, at = decode_request_header(frame)
        assert (header.api_key, header.correlation_id) == (ApiKey.PRODUCE, number)
        [topic] = decode_request(PRODUCE_VERSION, frame[at:]).topic_data
        [partition] = topic.partition_data
        batch = check_produced(partition.records, PRODUCE_VERSION)
        assert (batch.producer_id, batch.base_sequence, batch.record_count) == (7, number, 1)


@pytest.mark.parametrize("code", [0, 45])
def test_the_error_code_of_an_answer_is_seen(code: int) -> None:
    topic = ProducedTopic("topic", bytes(16), [ProducedPartition(0, code, 17)])
    body = b"".join(encode_response(PRODUCE_VERSION, [topic]))
    answer = memoryview(b"\x00\x00\x00\x01\x00" + body)
    frames = Frames("topic", 100)
    if code:
        with pytest.raises(LoadFailed, match="refused with code 45"):
            frames.check(answer)
    else:
        frames.check(answer)


def test_a_real_server_takes_them_one_at_a_time_and_in_a_storm(tmp_path: Path) -> None:
    with RunningServer(tmp_path, settings=["num.partitions=1"]) as server:
        create(server, "t")
        assert one_in_flight(server.address("kafka"), "t", 100, 0.05)
        done = storm(
            server.address("kafka"),
            "t",
            size=100,
            connections=3,
            in_flight=2,
            warm_up_seconds=0.01,
            seconds=0.1,
        )
        assert 0 < done.request_count <= done.total_count
        assert done.per_second > 0


def test_a_storm_on_a_topic_that_is_not_there_says_so(tmp_path: Path) -> None:
    with (
        RunningServer(tmp_path) as server,
        pytest.raises(LoadFailed, match="refused with code 3"),
    ):
        storm(
            server.address("kafka"),
            "missing",
            size=100,
            connections=2,
            in_flight=1,
            warm_up_seconds=0.1,
            seconds=10.0,
        )


def create(server: RunningServer, topic: str) -> None:
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True
    )
    with RawClient(server) as client:
        client.call(ApiKey.METADATA, 9, asked, MetadataResponse)
