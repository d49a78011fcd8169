import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budget import budget
from tests.protocol.kafka.hot.test_produce import INT32, INT64, REQUESTS

from rockgate.protocol.kafka.hot import produce
from rockgate.protocol.kafka.hot.produce import (
    ProducedPartition,
    ProducedTopic,
    Single,
    decode_single,
    encode_single,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.schema import encode

VERSIONS = range(9, 14)
TOPIC_ID = bytes(range(16))


def request(records: bytes = b"records", **changed: object) -> ProduceRequest:
    partition = PartitionProduceData(index=3, records=records)
    topic = TopicProduceData(name="orders", topic_id=TOPIC_ID, partition_data=[partition])
    made = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=5, topic_data=[topic])
    for name, value in changed.items():
        setattr(made, name, value)
    return made


def agrees(version: int, data: bytes, found: Single) -> bool:
    """Whether the general codec reads the same."""
    read = produce.decode_request(version, data)
    (topic,) = read.topic_data
    (partition,) = topic.partition_data
    acks, named, name, index, records = found
    lead = produce.encode_response(version, [ProducedTopic(topic.name, topic.topic_id, [])])[0]
    return (
        read.transactional_id is None
        and (acks, index, records) == (read.acks, partition.index, partition.records)
        and name == (topic.topic_id if version >= produce.TOPIC_IDS else topic.name)
        and bytes(named[:-1]) == bytes(lead)[: len(named) - 1]
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, 100_000, 2_097_150])
def test_a_usual_request_is_taken_whatever_its_size(version: int, size: int) -> None:
    data = encode(request(b"\xff" * size), version)
    found = decode_single(version, memoryview(data))
    assert found is not None and agrees(version, data, found)


@given(REQUESTS, st.sampled_from(range(3, 14)))
@settings(deadline=None, max_examples=budget("property_examples"))
def test_what_is_taken_is_what_the_general_codec_reads(sent: ProduceRequest, version: int) -> None:
    data = encode(sent, version)
    found = decode_single(version, memoryview(data))
    assert found is None or agrees(version, data, found)


@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_requests_are_left_alone_or_read_alike(version: int) -> None:
    whole = encode(request(bytes(200)), version)
    make = random.Random(version)
    for end in range(len(whole)):
        assert decode_single(version, memoryview(whole[:end])) is None
    for _ in range(budget("damage_rounds")):
        data = bytearray(whole)
        data[make.randrange(len(data))] = make.randrange(256)
        found = decode_single(version, memoryview(data))
        assert found is None or agrees(version, bytes(data), found)


@given(st.sampled_from(VERSIONS), INT32, INT64, INT64, INT64)
@settings(deadline=None, max_examples=budget("property_examples"))
def test_an_answer_is_that_of_the_general_codec(
    version: int, index: int, offset: int, append_ms: int, log_start: int
) -> None:
    found = decode_single(version, memoryview(encode(request(), version)))
    assert found is not None
    outcome = ProducedPartition(index, 0, offset, append_ms, log_start)
    general = produce.encode_response(version, [ProducedTopic("orders", TOPIC_ID, [outcome])])
    assert encode_single(found[1], index, offset, append_ms, log_start) == general
