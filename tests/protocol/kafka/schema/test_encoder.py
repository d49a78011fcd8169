from rockgate.protocol.kafka.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rockgate.protocol.kafka.schema import declaration_of, encode
from rockgate.protocol.kafka.schema.encoder import encoder_source
from rockgate.protocol.kafka.schema.reference import construct_codec


def response(replicas: list[int]) -> MetadataResponse:
    partition = MetadataResponsePartition(replica_nodes=replicas, isr_nodes=replicas[:1])
    return MetadataResponse(topics=[MetadataResponseTopic(partitions=[partition])])


def test_a_partition_is_written_by_one_call() -> None:
    text = encoder_source(declaration_of(MetadataResponse), 12, MetadataResponsePartition).text
    assert text.count("w(") == 1


def test_arrays_of_every_length_are_written_as_construct_writes_them() -> None:
    for version in (8, 12):
        for count in (0, 1, 3, 64, 65, 126, 127, 128, 300):
            value = response(list(range(count)))
            assert encode(value, version) == construct_codec(MetadataResponse, version).build(value)


def test_lengths_of_more_than_one_byte_are_written_as_construct_writes_them() -> None:
    for count in (126, 127, 128, 20_000):
        value = MetadataResponse(cluster_id="x" * count)
        assert encode(value, 12) == construct_codec(MetadataResponse, 12).build(value)
        topics = [MetadataResponseTopic(name="t")] * count
        value = MetadataResponse(topics=[*topics])
        assert encode(value, 12) == construct_codec(MetadataResponse, 12).build(value)
