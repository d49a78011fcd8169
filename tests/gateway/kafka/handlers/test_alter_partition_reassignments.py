import pytest
from tests.gateway.kafka.admin import NODE_ID, Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.alter_partition_reassignments import (
    AlterPartitionReassignments,
)
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)


def request(topic: str, index: int, replicas: list[int] | None, allow: bool = True) -> object:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[partition])],
        allow_replication_factor_change=allow,
    )


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("topic", "index", "replicas", "code"),
    [
        ("a", 0, [NODE_ID], ErrorCode.NONE),
        ("a", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("a", 0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("a", 0, [NODE_ID + 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("a", 0, [NODE_ID, NODE_ID + 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("a", 0, [NODE_ID, NODE_ID], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("a", 9, [NODE_ID], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", -1, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 0, [NODE_ID], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_a_partition_can_only_be_where_it_is(
    topic: str, index: int, replicas: list[int] | None, code: ErrorCode, version: int
) -> None:
    admin = Admin()
    admin.topic("a")
    handler = AlterPartitionReassignments(catalog=admin.catalog, node_id=NODE_ID)
    asked = request(topic, index, replicas, allow=False)
    response = await seen(handler.handle(asked, call(version)), version)  # type: ignore[arg-type] # made above
    assert (response.error_code, response.error_message) == (0, None)
    assert response.allow_replication_factor_change is (version == 0)
    ((told,),) = (each.partitions for each in response.responses)
    assert (told.partition_index, told.error_code) == (index, code)
    assert bool(told.error_message) == (code not in (0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS))
