from typing import Any

import pytest
from tests.gateway.kafka.admin import Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.elect_leaders import ElectLeaders
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

Topics = list[tuple[str, list[int]]] | None


async def elect(topics: Topics, version: int = 2, kind: int = 0) -> tuple[int, Any]:
    admin = Admin()
    admin.topic("a", 2)
    admin.topic("b", 1)
    asked = None if topics is None else [TopicPartitions(topic=n, partitions=p) for n, p in topics]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=asked)
    response = await seen(ElectLeaders(admin.catalog).handle(request, call(version)), version)
    found = [
        (each.topic, [(one.partition_id, one.error_code) for one in each.partition_result])
        for each in response.replica_election_results
    ]
    assert all(
        one.error_message
        for each in response.replica_election_results
        for one in each.partition_result
    )
    return response.error_code, found


@pytest.mark.parametrize("version", range(3))
async def test_no_election_is_needed_where_one_node_leads(version: int) -> None:
    needless, unknown = ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    code, found = await elect([("a", [0, 9, -1]), ("none", [0]), ("a", [1, 0])], version)
    assert code == 0
    assert found == [
        ("a", [(0, needless), (9, unknown), (-1, unknown), (1, needless)]),
        ("none", [(0, unknown)]),
    ]


@pytest.mark.parametrize("kind", [0, 1])
async def test_all_partitions_need_nothing(kind: int) -> None:
    code, found = await elect(None, kind=kind)
    assert (code, sorted(found)) == (0, [("a", []), ("b", [])])


@pytest.mark.parametrize("kind", [2, -1])
async def test_an_unknown_kind_of_election_is_refused(kind: int) -> None:
    invalid = ErrorCode.INVALID_REQUEST
    assert await elect([("a", [0])], kind=kind) == (invalid, [("a", [(0, invalid)])])
    assert await elect(None, kind=kind) == (invalid, [])
    assert await elect([], kind=kind) == (0, [])


async def test_a_refusal_names_every_partition() -> None:
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="a", partitions=[3])])
    refused = ElectLeaders(Admin().catalog).refuse(request, ErrorCode.KAFKA_STORAGE_ERROR)
    told = (await seen(refused, 2)).replica_election_results[0].partition_result[0]
    assert (told.partition_id, told.error_code) == (3, ErrorCode.KAFKA_STORAGE_ERROR)
