import random
import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget

from rockgate.protocol.kafka.errors import MalformedMessage, UnsupportedVersion
from rockgate.protocol.kafka.fields import COUNT_MAX, Leader, Node
from rockgate.protocol.kafka.hot import produce
from rockgate.protocol.kafka.hot.produce import ProducedPartition, ProducedTopic
from rockgate.protocol.kafka.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from rockgate.protocol.kafka.schema import decode, encode
from rockgate.protocol.kafka.schema.codec import MEMORY_SLACK
from rockgate.protocol.kafka.schema.kinds import Struct
from rockgate.protocol.kafka.schema.layout import element_memory

VERSIONS = range(3, 14)
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=12) | st.text(alphabet="topic-0", max_size=150)
UUID = st.binary(min_size=16, max_size=16)

REQUESTS = st.builds(
    ProduceRequest,
    transactional_id=st.none() | TEXT,
    acks=INT16,
    timeout_ms=INT32,
    topic_data=st.lists(
        st.builds(
            TopicProduceData,
            name=TEXT,
            topic_id=UUID,
            partition_data=st.lists(
                st.builds(
                    PartitionProduceData,
                    index=INT32,
                    records=st.none() | st.binary(max_size=40) | st.just(bytes(20_000)),
                ),
                max_size=4,
            ),
        ),
        max_size=3,
    ),
)


def is_by_hand(version: int, data: bytes) -> bool:
    """Whether the walk itself takes `data`, without the declared codec."""
    view = memoryview(data)
    if version >= produce.FLEXIBLE:
        return produce.walk_flexible(view, version >= produce.TOPIC_IDS) is not None
    return produce.walk_plain(view) is not None


def same_verdict(version: int, data: bytes) -> None:
    """Both codecs read the same value, or both refuse for the same reason in the same place."""
    try:
        declared = decode(ProduceRequest, version, data)
    except MalformedMessage as error:
        with pytest.raises(MalformedMessage) as caught:
            produce.decode_request(version, data)
        assert str(caught.value) == str(error)
    else:
        assert produce.decode_request(version, data) == declared


def usual_request(partition_count: int = 2, size: int = 300) -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=name.encode().ljust(16),
                partition_data=[
                    PartitionProduceData(index=index, records=bytes([index % 256]) * size)
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
def test_a_request_is_read_as_its_declaration_reads_it(
    version: int, request: ProduceRequest
) -> None:
    same_verdict(version, encode(request, version))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [10, 126, 127, 128, 16_382, 16_383, 70_000, 2_100_000])
@pytest.mark.parametrize("transactional_id", [None, "", "tx-1"])
def test_what_clients_usually_send_is_walked_by_hand(
    version: int, size: int, transactional_id: str | None
) -> None:
    request = usual_request(size=size)
    request.transactional_id = transactional_id
    data = encode(request, version)
    assert is_by_hand(version, data)
    same_verdict(version, data)


@pytest.mark.parametrize("version", [3, 9, 13])
def test_a_request_of_many_partitions_is_walked_by_hand_up_to_a_bound(version: int) -> None:
    many = encode(usual_request(partition_count=COUNT_MAX // 2 - 2, size=5), version)
    assert is_by_hand(version, many)
    same_verdict(version, many)
    more = encode(usual_request(partition_count=COUNT_MAX // 2 + 1, size=5), version)
    assert not is_by_hand(version, more)
    same_verdict(version, more)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_bound_on_counts_keeps_below_the_memory_that_a_message_may_take(version: int) -> None:
    one = sum(
        element_memory(Struct(kind), version, version >= produce.FLEXIBLE)
        for kind in (TopicProduceData, PartitionProduceData)
    )
    assert COUNT_MAX * one < MEMORY_SLACK


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_slices_of_the_frame_that_cannot_be_written_to(version: int) -> None:
    frame = bytearray(encode(usual_request(size=1_000_000), version))
    tracemalloc.start()
    try:
        request = produce.decode_request(version, memoryview(frame))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    records = request.topic_data[1].partition_data[1].records
    assert isinstance(records, memoryview)
    assert (records.obj, records.readonly, len(records)) == (frame, True, 1_000_000)
    assert peak < 32 * 1024


@pytest.mark.parametrize("version", [0, 1, 2, 14, -1])
def test_a_version_that_is_not_declared_is_refused_as_everywhere(version: int) -> None:
    with pytest.raises(UnsupportedVersion):
        produce.decode_request(version, encode(usual_request(), 3))


@pytest.mark.parametrize("version", VERSIONS)
def test_truncation_at_every_byte_is_refused_where_the_declaration_refuses_it(version: int) -> None:
    request = usual_request(size=20)
    request.transactional_id = "tx"
    data = encode(request, version)
    for size in range(len(data)):
        same_verdict(version, data[:size])
    same_verdict(version, data + b"\x00")


@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_requests_get_the_same_verdict(version: int) -> None:
    chance = random.Random(version)
    data = encode(usual_request(size=20), version)
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
        (3, struct.pack(">hhii", -1, -1, 0, 2**31 - 1)),
        (3, struct.pack(">hhii", -1, -1, 0, 1) + struct.pack(">hi", 0, 2**31 - 1)),
        (3, struct.pack(">hhii", -1, -1, 0, 1) + struct.pack(">hiii", 0, 1, 0, 2**31 - 1)),
        (9, b"\x00\xff\xff\x00\x00\x00\x00" + b"\xff\xff\xff\xff\x0f"),
        (9, b"\x00\xff\xff\x00\x00\x00\x00" + b"\x02\x01" + b"\xff\xff\xff\xff\x0f"),
        (9, b"\x00\xff\xff\x00\x00\x00\x00" + b"\x02\x01\x02" + bytes(4) + b"\xff\xff\xff\xff\x0f"),
        (9, b"\x00\xff\xff\x00\x00\x00\x00" + b"\x01" + b"\xff\xff\xff\xff\x0f"),
        (13, b"\x00\xff\xff\x00\x00\x00\x00" + b"\xff\xff\xff\xff\x7f"),
        (13, b"\x00\xff\xff\x00\x00\x00\x00" + b"\x80" * 50),
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
            produce.decode_request(version, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024


# Responses


def produced_partition(value: PartitionProduceResponse) -> ProducedPartition:
    leader = value.current_leader
    return ProducedPartition(
        value.index,
        value.error_code,
        value.base_offset,
        value.log_append_time_ms,
        value.log_start_offset,
        value.error_message,
        [(each.batch_index, each.batch_index_error_message) for each in value.record_errors],
        None if leader == LeaderIdAndEpoch() else Leader(leader.leader_id, leader.leader_epoch),
    )


def by_hand(value: ProduceResponse, version: int) -> bytes:
    topics = [
        ProducedTopic(
            topic.name,
            topic.topic_id,
            [produced_partition(partition) for partition in topic.partition_responses],
        )
        for topic in value.responses
    ]
    buffers = produce.encode_response(
        version,
        topics,
        throttle_time_ms=value.throttle_time_ms,
        nodes=[Node(n.node_id, n.host, n.port, n.rack) for n in value.node_endpoints],
    )
    return b"".join(buffers)


RESPONSES = st.builds(
    ProduceResponse,
    throttle_time_ms=INT32,
    node_endpoints=st.lists(
        st.builds(NodeEndpoint, node_id=INT32, host=TEXT, port=INT32, rack=st.none() | TEXT),
        max_size=2,
    ),
    responses=st.lists(
        st.builds(
            TopicProduceResponse,
            name=TEXT,
            topic_id=UUID,
            partition_responses=st.lists(
                st.builds(
                    PartitionProduceResponse,
                    index=INT32,
                    error_code=INT16,
                    base_offset=INT64,
                    log_append_time_ms=INT64,
                    log_start_offset=INT64,
                    error_message=st.none() | TEXT,
                    record_errors=st.lists(
                        st.builds(
                            BatchIndexAndErrorMessage,
                            batch_index=INT32,
                            batch_index_error_message=st.none() | TEXT,
                        ),
                        max_size=2,
                    ),
                    current_leader=st.builds(LeaderIdAndEpoch, leader_id=INT32, leader_epoch=INT32)
                    | st.just(LeaderIdAndEpoch()),
                ),
                max_size=3,
            ),
        ),
        max_size=2,
    ),
)


@pytest.mark.parametrize("version", VERSIONS)
@given(response=RESPONSES)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_a_response_is_written_as_its_declaration_writes_it(
    version: int, response: ProduceResponse
) -> None:
    assert by_hand(response, version) == encode(response, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_partition_that_says_nothing_has_the_declared_defaults(version: int) -> None:
    written = produce.encode_response(
        version, [ProducedTopic("t", bytes(16), [ProducedPartition(3)])]
    )
    value = decode(ProduceResponse, version, b"".join(written))
    partition = value.responses[0].partition_responses[0]
    assert partition == PartitionProduceResponse(index=3, base_offset=-1)


def test_text_that_no_length_can_say_is_refused() -> None:
    long = ProducedPartition(0, error_message="x" * 0x8000)
    for version in (8, 9):
        with pytest.raises(ValueError, match="text of 32768 bytes"):
            produce.encode_response(version, [ProducedTopic("t", bytes(16), [long])])
