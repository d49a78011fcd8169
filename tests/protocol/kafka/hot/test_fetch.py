import random
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.kafka.errors import MalformedMessage, UnsupportedVersion
from rockgate.protocol.kafka.fields import COUNT_MAX, Leader, Node
from rockgate.protocol.kafka.hot import fetch
from rockgate.protocol.kafka.hot.fetch import Diverging, FetchedPartition, FetchedTopic
from rockgate.protocol.kafka.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)
from rockgate.protocol.kafka.schema import decode, encode
from rockgate.protocol.kafka.schema.codec import MEMORY_SLACK
from rockgate.protocol.kafka.schema.kinds import Struct
from rockgate.protocol.kafka.schema.layout import element_memory

VERSIONS = range(4, 19)
INT8 = st.integers(-128, 127)
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=12) | st.text(alphabet="topic-0", max_size=150)
UUID = st.binary(min_size=16, max_size=16)

PARTITIONS = st.builds(
    FetchPartition,
    partition=INT32,
    current_leader_epoch=INT32,
    fetch_offset=INT64,
    last_fetched_epoch=INT32,
    log_start_offset=INT64,
    partition_max_bytes=INT32,
    replica_directory_id=UUID | st.just(bytes(16)),
    high_watermark=INT64 | st.just((1 << 63) - 1),
)
REQUESTS = st.builds(
    FetchRequest,
    cluster_id=st.none() | TEXT,
    replica_id=INT32,
    replica_state=st.builds(ReplicaState, replica_id=INT32, replica_epoch=INT64)
    | st.just(ReplicaState()),
    max_wait_ms=INT32,
    min_bytes=INT32,
    max_bytes=INT32,
    isolation_level=INT8,
    session_id=INT32,
    session_epoch=INT32,
    topics=st.lists(
        st.builds(
            FetchTopic, topic=TEXT, topic_id=UUID, partitions=st.lists(PARTITIONS, max_size=3)
        ),
        max_size=3,
    ),
    forgotten_topics_data=st.just([])
    | st.lists(
        st.builds(
            ForgottenTopic, topic=TEXT, topic_id=UUID, partitions=st.lists(INT32, max_size=3)
        ),
        max_size=2,
    ),
    rack_id=TEXT,
)


def is_by_hand(version: int, data: bytes) -> bool:
    """Whether the walk itself takes `data`, without the declared codec."""
    return fetch.walk(data, version) is not None


def same_verdict(version: int, data: bytes) -> None:
    """Both codecs read the same value, or both refuse for the same reason in the same place."""
    try:
        declared = decode(FetchRequest, version, data)
    except MalformedMessage as error:
        with pytest.raises(MalformedMessage) as caught:
            fetch.decode_request(version, data)
        assert str(caught.value) == str(error)
    else:
        assert fetch.decode_request(version, data) == declared


def usual_request(partition_count: int = 3) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=52_428_800,
        isolation_level=1,
        session_id=77,
        session_epoch=3,
        rack_id="",
        topics=[
            FetchTopic(
                topic=name,
                topic_id=name.encode().ljust(16),
                partitions=[
                    FetchPartition(partition=index, fetch_offset=2**40, partition_max_bytes=2**20)
                    for index in range(partition_count)
                ],
            )
            for name in ("orders", "payments")
        ],
    )


# Requests


@pytest.mark.parametrize("version", VERSIONS)
@given(request=REQUESTS)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_request_is_read_as_its_declaration_reads_it(version: int, request: FetchRequest) -> None:
    same_verdict(version, encode(request, version))


@pytest.mark.parametrize("version", range(fetch.FLEXIBLE, 19))
@pytest.mark.parametrize("rack_id", ["", "rack-1"])
def test_what_clients_usually_send_is_walked_by_hand(version: int, rack_id: str) -> None:
    request = usual_request()
    request.rack_id = rack_id
    for value in (request, FetchRequest(max_wait_ms=500, session_id=9, session_epoch=12)):
        data = encode(value, version)
        assert is_by_hand(version, data)
        same_verdict(version, data)


@pytest.mark.parametrize("version", [12, 13, 18])
def test_a_request_of_many_partitions_is_walked_by_hand_up_to_a_bound(version: int) -> None:
    many = encode(usual_request(COUNT_MAX // 2 - 2), version)
    assert is_by_hand(version, many)
    same_verdict(version, many)
    more = encode(usual_request(COUNT_MAX // 2 + 1), version)
    assert not is_by_hand(version, more)
    same_verdict(version, more)
    same_verdict(version, encode(usual_request(3_000), version))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_bound_on_counts_keeps_below_the_memory_that_a_message_may_take(version: int) -> None:
    one = sum(
        element_memory(Struct(kind), version, version >= fetch.FLEXIBLE)
        for kind in (FetchTopic, FetchPartition)
    )
    assert COUNT_MAX * one < MEMORY_SLACK


def test_two_requests_share_nothing_that_can_be_changed() -> None:
    data = encode(usual_request(), 12)
    first, second = fetch.decode_request(12, data), fetch.decode_request(12, data)
    first.topics.clear()
    first.forgotten_topics_data.append(ForgottenTopic())
    first.replica_state.replica_id = 5
    assert second == decode(FetchRequest, 12, data)


@pytest.mark.parametrize("version", [0, 3, 19, -1])
def test_a_version_that_is_not_declared_is_refused_as_everywhere(version: int) -> None:
    with pytest.raises(UnsupportedVersion):
        fetch.decode_request(version, encode(usual_request(), 4))


@pytest.mark.parametrize("version", VERSIONS)
def test_truncation_at_every_byte_is_refused_where_the_declaration_refuses_it(version: int) -> None:
    request = usual_request()
    request.rack_id = "rack"
    data = encode(request, version)
    for size in range(len(data)):
        same_verdict(version, data[:size])
    same_verdict(version, data + b"\x00")


@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_requests_get_the_same_verdict(version: int) -> None:
    chance = random.Random(version)
    data = encode(usual_request(), version)
    for _ in range(budget("fuzz_rounds")):
        bad = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            bad[chance.randrange(len(bad))] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        if chance.random() < 0.2:
            del bad[chance.randrange(len(bad)) :]
        same_verdict(version, bytes(bad))


@pytest.mark.parametrize(
    ("version", "start"),
    [
        (4, bytes(17) + struct.pack(">i", 2**31 - 1)),
        (4, bytes(17) + struct.pack(">ihi", 1, 0, 2**31 - 1)),
        (7, bytes(25) + struct.pack(">ii", 0, 2**31 - 1)),
        (12, bytes(25) + b"\xff\xff\xff\xff\x0f"),
        (12, bytes(25) + b"\x02\x01\xff\xff\xff\xff\x0f"),
        (15, bytes(21) + b"\x01\xff\xff\xff\xff\x0f"),
        (18, bytes(21) + b"\x80" * 40),
        (18, bytes(21) + b"\x01\x01\x01\xff\xff\xff\xff\x0f"),
    ],
)
def test_huge_counts_and_lengths_are_refused_before_anything_is_made(
    version: int, start: bytes
) -> None:
    data = start + bytes(100)
    same_verdict(version, data)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage):
            fetch.decode_request(version, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024


# Responses


def fetched_partition(value: PartitionData, slices: list[bytes] | None) -> FetchedPartition:
    diverging, leader, aborted = (
        value.diverging_epoch,
        value.current_leader,
        value.aborted_transactions,
    )
    return FetchedPartition(
        value.partition_index,
        value.error_code,
        value.high_watermark,
        value.last_stable_offset,
        value.log_start_offset,
        slices,
        None if aborted is None else [(each.producer_id, each.first_offset) for each in aborted],
        value.preferred_read_replica,
        None if diverging == EpochEndOffset() else Diverging(diverging.epoch, diverging.end_offset),
        None if leader == LeaderIdAndEpoch() else Leader(leader.leader_id, leader.leader_epoch),
    )


def by_hand(value: FetchResponse, slices: list[list[bytes] | None], version: int) -> bytes:
    rest = iter(slices)
    topics = [
        FetchedTopic(
            topic.topic,
            topic.topic_id,
            [fetched_partition(partition, next(rest)) for partition in topic.partitions],
        )
        for topic in value.responses
    ]
    buffers = fetch.encode_response(
        version,
        topics,
        throttle_time_ms=value.throttle_time_ms,
        error_code=value.error_code,
        session_id=value.session_id,
        nodes=[Node(n.node_id, n.host, n.port, n.rack) for n in value.node_endpoints],
    )
    return b"".join(buffers)


@st.composite
def responses(draw: st.DrawFn) -> tuple[FetchResponse, list[list[bytes] | None]]:
    """A response, and beside it the slices that the records of each partition are made of."""
    slices: list[list[bytes] | None] = []

    def partition() -> PartitionData:
        parts = draw(st.none() | st.lists(st.binary(max_size=100), max_size=3))
        slices.append(parts)
        optional: dict[str, Any] = {}
        if draw(st.booleans()):
            optional["diverging_epoch"] = EpochEndOffset(epoch=draw(INT32), end_offset=draw(INT64))
        if draw(st.booleans()):
            optional["current_leader"] = LeaderIdAndEpoch(leader_id=draw(INT32), leader_epoch=7)
        return PartitionData(
            partition_index=draw(INT32),
            error_code=draw(INT16),
            high_watermark=draw(INT64),
            last_stable_offset=draw(INT64),
            log_start_offset=draw(INT64),
            aborted_transactions=draw(
                st.none()
                | st.lists(
                    st.builds(AbortedTransaction, producer_id=INT64, first_offset=INT64),
                    max_size=2,
                )
            ),
            preferred_read_replica=draw(INT32),
            records=None if parts is None else b"".join(parts),
            **optional,
        )

    value = FetchResponse(
        throttle_time_ms=draw(INT32),
        error_code=draw(INT16),
        session_id=draw(INT32),
        responses=[
            FetchableTopicResponse(
                topic=draw(TEXT),
                topic_id=draw(UUID),
                partitions=[partition() for _ in range(draw(st.integers(0, 3)))],
            )
            for _ in range(draw(st.integers(0, 3)))
        ],
        node_endpoints=draw(
            st.lists(
                st.builds(
                    NodeEndpoint, node_id=INT32, host=TEXT, port=INT32, rack=st.none() | TEXT
                ),
                max_size=2,
            )
        ),
    )
    return value, slices


@pytest.mark.parametrize("version", VERSIONS)
@given(drawn=responses())
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_response_is_written_as_its_declaration_writes_it(
    version: int, drawn: tuple[FetchResponse, list[list[bytes] | None]]
) -> None:
    value, slices = drawn
    assert by_hand(value, slices, version) == encode(value, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_payloads_are_the_slices_that_were_given_in_their_order(version: int) -> None:
    log = memoryview(bytes(range(256)) * 1000)
    slices = [log[100:50_000], log[60_000:60_100], log[200_000:]]
    buffers = fetch.encode_response(
        version,
        [
            FetchedTopic("a", bytes(16), [FetchedPartition(0, records=slices[:2])]),
            FetchedTopic(
                "b", bytes(16), [FetchedPartition(0), FetchedPartition(1, records=slices[2:])]
            ),
        ],
    )
    assert [each for each in buffers if any(each is part for part in slices)] == slices
    assert sum(len(each) for each in buffers if not any(each is part for part in slices)) < 250
    value = decode(FetchResponse, version, b"".join(buffers))
    read = [partition.records for topic in value.responses for partition in topic.partitions]
    assert read == [b"".join(slices[:2]), b"", bytes(slices[2])]


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_without_news_are_one_buffer_together(version: int) -> None:
    topics = [FetchedTopic("t", bytes(16), [FetchedPartition(n) for n in range(300)])] * 3
    assert len(fetch.encode_response(version, topics)) == 1
