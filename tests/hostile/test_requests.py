"""Well-formed requests with absurd values: a clear answer, and nothing retained."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.budget import budget
from tests.hostile.absurd import Absurd
from tests.hostile.target import TOPIC, Target, frame, request, running_target
from tests.seeds import seeded

from rockgate.gateway.compose.kafka.table import HANDLERS
from rockgate.gateway.kafka.handlers.metadata import AUTO_CREATE_MAX
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.connection import decode_response_header
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from rockgate.protocol.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rockgate.protocol.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.schema import decode, encode

INT32_MAX = 2**31 - 1
SERVED = [int(row.key) for row in HANDLERS]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_target(tmp_path_factory.mktemp("requests")) as running:
        yield running


@pytest.mark.parametrize("row", HANDLERS, ids=lambda row: row.key.name.lower())
def test_any_values_get_an_answer_or_an_end(target: Target, row: object) -> None:
    api = APIS[row.key]  # type: ignore[attr-defined]
    random, versions = seeded(), list(api.versions)
    with target.under_watch():
        absurd = Absurd(random, target.known)
        for _ in range(budget("hostile_rounds_each")):
            version = random.choice(versions)
            target.attack(request(api.key, version, absurd.request(api.request, version)))


# Lengths that lie


@pytest.mark.parametrize("count", [-(2**31), -2, 1_000_001, INT32_MAX])
def test_a_count_that_lies_ends_the_connection(target: Target, count: int) -> None:
    bodies = {
        (ApiKey.METADATA, 1): struct.pack(">i", count),
        (ApiKey.FETCH, 4): struct.pack(">iiiibi", -1, 1000, 1, 1 << 20, 0, count),
        (ApiKey.PRODUCE, 3): struct.pack(">hhii", -1, 1, 1000, count),
        (ApiKey.LIST_OFFSETS, 1): struct.pack(">ii", -1, count),
    }
    with target.under_watch():
        for (key, version), body in bodies.items():
            assert target.ask(frame(key, version, body)) is None


def produce_codes(target: Target, records: bytes | None) -> list[int]:
    value = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=TOPIC, partition_data=[PartitionProduceData(index=0, records=records)]
            )
        ],
    )
    answer = target.ask(request(ApiKey.PRODUCE, 8, value))
    assert answer is not None, "the connection was closed"
    _, at = decode_response_header(ApiKey.PRODUCE, 8, answer)
    response = decode(ProduceResponse, 8, answer[at:])
    return [each.error_code for each in response.responses[0].partition_responses]


@pytest.mark.parametrize(
    ("name", "at", "data"),
    [
        ("a batch length over its bytes", 8, struct.pack(">i", INT32_MAX)),
        ("a negative batch length", 8, struct.pack(">i", -1)),
        ("a batch length under its header", 8, struct.pack(">i", 3)),
        ("a CRC of something else", 17, b"\x12\x34\x56\x78"),
        ("two thousand million records", 57, struct.pack(">i", INT32_MAX)),
        ("fewer than no records", 57, struct.pack(">i", -1)),
        ("a magic from the future", 16, b"\x07"),
    ],
)
def test_a_batch_that_lies_is_refused_with_its_reason(
    target: Target, name: str, at: int, data: bytes
) -> None:
    batch = bytearray(target.look().batch)
    batch[at : at + len(data)] = data
    (code,) = produce_codes(target, bytes(batch))
    assert code in (
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.INVALID_REQUEST,
    ), name


def test_a_topic_s_name_does_not_write_the_log(target: Target) -> None:
    """Names come from outside: they are bounded and quoted, whatever line they stand in."""
    mark = len(target.server.log)
    for name in ("x" * 20_000, "a\n2026-01-01T00:00:00.000Z error forged", "\x1b[31m"):
        data = [PartitionProduceData(index=0, records=target.known.batch)]
        value = ProduceRequest(
            acks=0, topic_data=[TopicProduceData(name=name, partition_data=data)]
        )
        assert target.ask(request(ApiKey.PRODUCE, 8, value)) is None
    lines = target.server.log[mark:].splitlines()
    assert len(lines) == 3
    assert all(" info kafka.server.session closed on error " in line for line in lines)
    assert all(len(line) < 500 and line.isprintable() for line in lines)


# Too much of everything


def test_a_million_topics_in_one_request_are_answered_while_others_continue(target: Target) -> None:
    topics = [MetadataRequestTopic(name=f"t{n}") for n in range(1_000_000)]
    value = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    data = request(ApiKey.METADATA, 4, value)
    del topics, value
    with target.under_watch(growth_bytes_max=256 << 20):
        answer = target.ask(data)
        assert answer is None or len(answer) > 1_000_000


def test_many_new_topics_in_one_request_do_not_fill_the_server(tmp_path: Path) -> None:
    topics = [MetadataRequestTopic(name=f"new{n}") for n in range(20_000)]
    data = request(ApiKey.METADATA, 4, MetadataRequest(topics=topics))
    with running_target(tmp_path, settings=()) as target:
        with target.under_watch(growth_bytes_max=256 << 20):
            answer = target.ask(data)
            assert answer is not None
        everything = MetadataRequest(topics=None)
        listed = target.ask(request(ApiKey.METADATA, 4, everything))
        assert listed is not None
        assert listed.count(b"new") <= AUTO_CREATE_MAX


def test_a_hundred_thousand_partitions_are_fetched_or_refused(target: Target) -> None:
    partitions = [
        FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=INT32_MAX)
        for n in range(100_000)
    ]
    value = FetchRequest(
        max_wait_ms=1,
        min_bytes=INT32_MAX,
        session_epoch=0,
        topics=[FetchTopic(topic=TOPIC, partitions=partitions)],
    )
    with target.under_watch(growth_bytes_max=256 << 20):
        answer = target.ask(request(ApiKey.FETCH, 12, value))
        assert answer is None or len(answer) > 100_000


def test_a_hundred_thousand_offsets_are_listed_or_refused(target: Target) -> None:
    partitions = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(100_000)]
    value = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=partitions)]
    )
    with target.under_watch(growth_bytes_max=256 << 20):
        answer = target.ask(request(ApiKey.LIST_OFFSETS, 5, value))
        assert answer is None or len(answer) > 100_000


def test_a_poll_that_would_wait_for_weeks_ends_with_its_connection(target: Target) -> None:
    wanted = FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1 << 20)
    value = FetchRequest(
        max_wait_ms=INT32_MAX,
        min_bytes=INT32_MAX,
        topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
    )
    data = request(ApiKey.FETCH, 11, value)
    with target.under_watch():
        for _ in range(budget("hostile_rounds_each")):
            assert target.attack(data) == b""


@pytest.mark.parametrize("key", [*sorted(set(map(int, ApiKey)) - set(SERVED))[:12], 9999])
def test_an_api_that_is_not_served_ends_the_connection(target: Target, key: int) -> None:
    head = struct.pack(">hhih", key, 0, 1, -1)
    with target.under_watch():
        assert target.ask(struct.pack(">i", len(head)) + head) is None


@pytest.mark.parametrize("key", [key for key in SERVED if key != ApiKey.API_VERSIONS])
@pytest.mark.parametrize("version", [-1, 99, 2**15 - 1])
def test_a_version_that_is_not_served_ends_the_connection(
    target: Target, key: int, version: int
) -> None:
    head = struct.pack(">hhih", key, version, 1, -1) + b"\0" * 8
    assert target.ask(struct.pack(">i", len(head)) + head) is None


def test_what_was_encoded_here_is_what_a_client_would_send(target: Target) -> None:
    """The attacks above get past the header: this one is an ordinary request by the same path."""
    value = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    assert encode(value, 4)
    answer = target.ask(request(ApiKey.METADATA, 4, value))
    assert answer is not None and TOPIC.encode() in answer
