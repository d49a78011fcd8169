"""The listeners: `decode`, `encode`, `encode_part`."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.protocol.kafka.values import VERSIONS, version_id

from rockgate.protocol.kafka.errors import MalformedMessage, UnsupportedVersion
from rockgate.protocol.kafka.messages.fetch import FetchRequest, FetchTopic
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.schema import (
    Encoded,
    decode,
    encode,
    encode_buffers,
    encode_part,
    join,
)


@pytest.mark.parametrize(("message", "version"), VERSIONS, ids=version_id)
def test_a_value_of_defaults_can_be_written_in_every_version(
    message: type[Any], version: int
) -> None:
    assert decode(message, version, encode(message(), version)) == message()


def test_a_field_the_version_lacks_is_not_written_and_reads_as_its_default() -> None:
    request = FetchRequest(max_wait_ms=7, session_id=9, rack_id="r1", cluster_id="c")
    assert decode(FetchRequest, 4, encode(request, 4)) == FetchRequest(max_wait_ms=7)


def test_bytes_behind_a_body_are_not_looked_at() -> None:
    assert decode(FetchRequest, 4, encode(FetchRequest(), 4) + b"\0\1") == FetchRequest()


def test_all_topics_as_librdkafka_asks_for_them_are_understood() -> None:
    request = decode(MetadataRequest, 13, bytes.fromhex("00000000010000"))
    assert request == MetadataRequest(topics=None, allow_auto_topic_creation=False)


def test_a_version_that_is_not_declared_is_refused() -> None:
    with pytest.raises(UnsupportedVersion) as caught:
        decode(FetchRequest, 3, b"")
    assert (caught.value.api_key, caught.value.version) == (1, 3)
    with pytest.raises(ValueError, match="FetchRequest has versions 4-18, not 3"):
        encode(FetchRequest(), 3)


def test_a_refusal_names_the_api_the_version_and_the_field() -> None:
    request = FetchRequest(topics=[FetchTopic(), FetchTopic(topic="bad")])
    body = encode(request, 12).replace(b"bad", b"b\xffd")
    with pytest.raises(MalformedMessage, match="FetchRequest v12") as caught:
        decode(FetchRequest, 12, body)
    refused = caught.value
    assert (refused.api, refused.version) == ("FetchRequest", 12)
    assert (refused.path, refused.reason) == ("topics[1].topic", "not UTF-8")


def test_of_fields_read_together_the_one_that_is_cut_is_named() -> None:
    body = encode(FetchRequest(), 4)
    cut = {4: "max_wait_ms", 7: "max_wait_ms", 8: "min_bytes", 16: "isolation_level", 20: "topics"}
    for size, path in cut.items():
        with pytest.raises(MalformedMessage, match=f"truncated at {size} bytes") as caught:
            decode(FetchRequest, 4, body[:size])
        assert caught.value.path == path


def test_a_value_that_cannot_be_written_is_an_error_that_names_the_field() -> None:
    with pytest.raises(ValueError, match=r"FetchRequest v12 at .*max_bytes, .*: .*2147483647"):
        encode(FetchRequest(max_bytes=1 << 40), 12)
    topic = FetchTopic(topic=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"FetchRequest v12 at topics\[\]\.topic: 'NoneType'"):
        encode(FetchRequest(topics=[topic]), 12)
    with pytest.raises(ValueError, match="an id is 16 bytes"):
        encode(FetchRequest(topics=[FetchTopic(topic_id=b"short")]), 13)
    with pytest.raises(ValueError, match="text of 32768 bytes"):
        encode(FetchRequest(rack_id="x" * 0x8000), 12)


def test_records_are_slices_of_the_frame_and_not_copies() -> None:
    data = PartitionProduceData(records=b"batch" * 100)
    request = ProduceRequest(topic_data=[TopicProduceData(partition_data=[data])])
    body = bytearray(encode(request, 9))
    found = decode(ProduceRequest, 9, body).topic_data[0].partition_data[0].records
    assert isinstance(found, memoryview) and found.readonly
    body[body.index(b"batch")] = ord("B")
    assert bytes(found[:10]) == b"Batchbatch"


def test_a_part_encoded_beforehand_gives_the_same_bytes() -> None:
    topics = [
        MetadataResponseTopic(
            name=name, partitions=[MetadataResponsePartition(replica_nodes=[1], isr_nodes=[1])]
        )
        for name in ("a", "b")
    ]
    for version in range(14):
        whole = encode(MetadataResponse(topics=[*topics]), version)
        first = encode_part(MetadataResponse, topics[0], version)
        assert encode(MetadataResponse(topics=[first, topics[1]]), version) == whole


def test_parts_within_a_part_may_be_encoded_beforehand_and_joined() -> None:
    partitions = [MetadataResponsePartition(partition_index=index) for index in range(300)]
    for version in range(14):
        whole = encode(MetadataResponse(topics=[_topic(partitions)]), version)
        parts = [encode_part(MetadataResponse, each, version) for each in partitions[1:]]
        run = join(MetadataResponsePartition, version, parts)
        assert run.count == 299
        topic = encode_part(MetadataResponse, _topic([partitions[0], run]), version)
        assert encode(MetadataResponse(topics=[topic]), version) == whole


def test_a_run_of_no_elements_is_no_element() -> None:
    empty = join(MetadataResponseTopic, 9, [])
    assert encode(MetadataResponse(topics=[empty]), 9) == encode(MetadataResponse(), 9)


def test_parts_of_two_versions_are_not_joined() -> None:
    parts = [encode_part(MetadataResponse, MetadataResponseTopic(), version) for version in (9, 10)]
    with pytest.raises(ValueError, match="encoded MetadataResponseTopic v10 stands where"):
        join(MetadataResponseTopic, 9, parts)


def _topic(partitions: Iterable[MetadataResponsePartition | Encoded]) -> MetadataResponseTopic:
    return MetadataResponseTopic(name="a", partitions=list(partitions))


def test_large_parts_are_buffers_of_their_own_and_small_ones_are_joined() -> None:
    topics = [MetadataResponseTopic(name="x" * size) for size in (5, 30_000, 7, 8, 30_000, 30_000)]
    parts = [encode_part(MetadataResponse, topic, 12) for topic in topics]
    response = MetadataResponse(topics=[*parts])
    buffers = encode_buffers(response, 12)
    assert b"".join(buffers) == encode(response, 12)
    assert [buffers[at] is parts[index].data for at, index in ((1, 1), (3, 4), (4, 5))] == [
        True
    ] * 3
    assert [len(buffer) > 30_000 for buffer in buffers] == [False, True, False, True, True, False]
    assert encode_buffers(MetadataResponse(), 12) == [encode(MetadataResponse(), 12)]


def test_a_part_of_another_version_is_refused() -> None:
    part = encode_part(MetadataResponse, MetadataResponseTopic(name="a"), 9)
    with pytest.raises(ValueError, match="encoded MetadataResponseTopic v9 stands where"):
        encode(MetadataResponse(topics=[part]), 10)


def test_a_caller_may_allow_more_memory_than_four_times_the_bytes() -> None:
    partitions = [MetadataResponsePartition(replica_nodes=[1]) for _ in range(10_000)]
    response = MetadataResponse(topics=[_topic(partitions)])
    body = encode(response, 12)
    with pytest.raises(MalformedMessage, match="exceed the memory"):
        decode(MetadataResponse, 12, body)
    assert decode(MetadataResponse, 12, body, memory_max=1 << 26) == response
