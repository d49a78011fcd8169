import pytest

from rockgate.gateway.kafka.topics.partition_runs import PartitionRun
from rockgate.protocol.kafka.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rockgate.protocol.kafka.schema import encode


def partition(index: int) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=index, leader_id=7, leader_epoch=3, replica_nodes=[7], isr_nodes=[7]
    )


def declared(version: int, first: int, end: int) -> bytes:
    topic = MetadataResponseTopic(partitions=[partition(index) for index in range(first, end)])
    return encode(MetadataResponse(topics=[topic]), version)


@pytest.mark.parametrize("version", range(14))
def test_partitions_cut_from_a_run_are_those_of_the_declared_codec(version: int) -> None:
    run = PartitionRun(MetadataResponse, partition, version)
    for first, end in [(0, 0), (0, 1), (0, 65), (3, 300), (299, 300), (0, 1000), (65_530, 65_540)]:
        topic = MetadataResponseTopic(partitions=[run.between(first, end)])
        found = encode(MetadataResponse(topics=[topic]), version)
        assert found == declared(version, first, end)


def test_a_run_grows_by_more_than_it_is_asked_for() -> None:
    run = PartitionRun(MetadataResponse, partition, 12)
    run.between(0, 1)
    run.between(0, 65)
    assert run._count == 128
