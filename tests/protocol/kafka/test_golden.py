"""Bytes recorded between real clients and Apache Kafka mean what is written beside them."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from tests.golden.values import plain

from rockgate.protocol.frames import LENGTH
from rockgate.protocol.kafka.api import APIS, Api, ApiKey
from rockgate.protocol.kafka.connection import (
    Buffer,
    ClientConnection,
    ServerConnection,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from rockgate.protocol.kafka.hot import fetch, produce
from rockgate.protocol.kafka.messages.fetch import FetchResponse
from rockgate.protocol.kafka.messages.produce import ProduceRequest
from rockgate.protocol.kafka.records.batch import check, check_produced, split
from rockgate.protocol.kafka.records.record import read_records
from rockgate.protocol.kafka.schema import decode, encode

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka"
FILES = sorted(GOLDEN.glob("*/*.json"))


def file_id(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def load(path: Path) -> tuple[Api[Any, Any], int, list[dict[str, Any]]]:
    content = json.loads(path.read_text(encoding="utf-8"))
    return APIS[ApiKey(content["api_key"])], content["version"], content["frames"]


def body_of(api: Api[Any, Any], version: int, frame: dict[str, Any]) -> bytes:
    data = bytes.fromhex(frame["hex"])
    if frame["direction"] == "request":
        return data[decode_request_header(data)[1] :]
    return data[decode_response_header(api.key, version, data)[1] :]


def frames_of(name: str, direction: str) -> list[tuple[int, bytes]]:
    """Version and body of every recorded frame of one API in one direction."""
    found = []
    for path in FILES:
        if path.parent.name == name:
            api, version, frames = load(path)
            found += [
                (version, body_of(api, version, frame))
                for frame in frames
                if frame["direction"] == direction
            ]
    assert found
    return found


def test_there_are_recordings_of_every_client() -> None:
    clients = {json.loads(path.read_text(encoding="utf-8"))["client"] for path in FILES}
    assert clients == {"aiokafka", "confluent-kafka", "kafka-java", "kafka-python"}


@pytest.mark.parametrize("path", FILES, ids=file_id)
def test_a_recorded_frame_decodes_to_the_written_value_and_encodes_to_the_same_bytes(
    path: Path,
) -> None:
    api, version, frames = load(path)
    for frame in frames:
        message = api.request if frame["direction"] == "request" else api.response
        body = body_of(api, version, frame)
        value = decode(message, version, body)
        assert plain(value) == frame["value"]
        assert encode(value, version) + bytes.fromhex(frame.get("left_over", "")) == body


@pytest.mark.parametrize("path", FILES, ids=file_id)
def test_the_header_of_a_recorded_frame_is_read_and_written_alike(path: Path) -> None:
    api, version, frames = load(path)
    for frame in frames:
        data = bytes.fromhex(frame["hex"])
        if frame["direction"] == "request":
            header, start = decode_request_header(data)
            assert (header.api_key, header.api_version) == (api.key, version)
            assert header.correlation_id == frame["correlation_id"]
            assert header.client_id == frame["client_id"]
            assert encode_request_header(header) == data[:start]
        else:
            correlation_id, start = decode_response_header(api.key, version, data)
            assert correlation_id == frame["correlation_id"]
            assert encode_response_header(api.key, version, correlation_id) == data[:start]


@pytest.mark.parametrize("path", FILES, ids=file_id)
def test_a_server_connection_replays_what_the_broker_sent(path: Path) -> None:
    api, version, frames = load(path)
    server = ServerConnection()
    for request, response in itertools.pairwise(frames):
        if (request["direction"], response["direction"]) != ("request", "response"):
            continue
        sent = bytes.fromhex(request["hex"])
        (exchange,) = server.receive_data(LENGTH.pack(len(sent)) + sent)
        server.respond(exchange, [body_of(api, version, response)])
        answer = b"".join(server.data_to_send())
        assert answer[4:] == bytes.fromhex(response["hex"])


def test_the_hand_codecs_read_the_recorded_requests() -> None:
    for version, body in frames_of("produce", "request"):
        assert produce.decode_request(version, body) == decode(ProduceRequest, version, body)
    for version, body in frames_of("fetch", "request"):
        request = fetch.decode_request(version, body)
        assert encode(request, version) == body


def test_the_hand_codecs_write_the_recorded_responses() -> None:
    api = APIS[ApiKey.PRODUCE]
    for version, body in frames_of("produce", "response"):
        value = decode(api.response, version, body)
        topics = [
            produce.ProducedTopic(
                topic.name,
                topic.topic_id,
                [
                    produce.ProducedPartition(
                        each.index,
                        each.error_code,
                        each.base_offset,
                        each.log_append_time_ms,
                        each.log_start_offset,
                    )
                    for each in topic.partition_responses
                ],
            )
            for topic in value.responses
        ]
        assert b"".join(produce.encode_response(version, topics)) == body
    for version, body in frames_of("fetch", "response"):
        assert b"".join(fetch_by_hand(decode(FetchResponse, version, body), version)) == body


def fetch_by_hand(value: FetchResponse, version: int) -> list[Buffer]:
    topics = [
        fetch.FetchedTopic(
            topic.topic,
            topic.topic_id,
            [
                fetch.FetchedPartition(
                    each.partition_index,
                    each.error_code,
                    each.high_watermark,
                    each.last_stable_offset,
                    each.log_start_offset,
                    None if each.records is None else [each.records] if each.records else [],
                    None
                    if each.aborted_transactions is None
                    else [
                        (gone.producer_id, gone.first_offset) for gone in each.aborted_transactions
                    ],
                    each.preferred_read_replica,
                )
                for each in topic.partitions
            ],
        )
        for topic in value.responses
    ]
    return fetch.encode_response(
        version, topics, error_code=value.error_code, session_id=value.session_id
    )


def test_recorded_batches_are_whole_and_their_records_can_be_read() -> None:
    produced = fetched = 0
    for version, body in frames_of("produce", "request"):
        for topic in produce.decode_request(version, body).topic_data:
            for partition in topic.partition_data:
                assert partition.records is not None
                header = check_produced(partition.records, version)
                assert len(read_records(partition.records)) == header.record_count
                produced += header.record_count
    for version, body in frames_of("fetch", "response"):
        for answer in decode(FetchResponse, version, body).responses:
            for data in answer.partitions:
                for header, view in split(memoryview(data.records or b"")):
                    assert check(view) == header
                    fetched += len(read_records(view))
    assert produced > 20
    assert fetched > 20


def test_a_client_connection_takes_the_recorded_answer() -> None:
    api, version, frames = load(GOLDEN / "metadata" / "v13-kafka-java.json")
    request, response = frames[:2]
    client = ClientConnection(client_id=request["client_id"], first_id=request["correlation_id"])
    client.send(api.key, version, [body_of(api, version, request)])
    assert b"".join(client.data_to_send())[4:] == bytes.fromhex(request["hex"])
    data = bytes.fromhex(response["hex"])
    (answer,) = client.receive_data(LENGTH.pack(len(data)) + data)
    assert plain(decode(api.response, version, answer.body)) == response["value"]
