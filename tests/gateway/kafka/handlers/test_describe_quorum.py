import pytest
from tests.gateway.kafka.admin import NODE_ID, Admin, seen
from tests.gateway.kafka.world import call
from tests.world import NOW_MS

from rockgate.gateway.kafka.handlers.describe_quorum import METADATA, DescribeQuorum
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)

Topics = list[tuple[str, list[int]]]


async def ask(admin: Admin, topics: Topics, version: int) -> DescribeQuorumResponse:
    handler = DescribeQuorum(
        node_id=NODE_ID,
        log=admin.store.log,
        epochs=admin.store.epochs,
        clock=admin.store.clock,
    )
    request = DescribeQuorumRequest(
        topics=[
            TopicData(
                topic_name=name, partitions=[PartitionData(partition_index=at) for at in indexes]
            )
            for name, indexes in topics
        ]
    )
    response: DescribeQuorumResponse = await seen(handler.handle(request, call(version)), version)
    return response


@pytest.mark.parametrize("version", range(3))
async def test_the_quorum_is_this_node(version: int) -> None:
    admin = Admin()
    admin.reopen()
    response = await ask(admin, [(METADATA, [0])], version)
    ((quorum,),) = (each.partitions for each in response.topics)
    assert (response.error_code, quorum.error_code) == (0, 0)
    assert (quorum.leader_id, quorum.leader_epoch) == (NODE_ID, admin.store.epochs.current)
    assert quorum.high_watermark == admin.store.log.end > 0
    (voter,) = quorum.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (NODE_ID, quorum.high_watermark)
    assert voter.last_caught_up_timestamp == (NOW_MS if version else -1)
    assert quorum.observers == []
    if version >= 2:
        ((listener,),) = (node.listeners for node in response.nodes)
        assert (listener.host, listener.port) == ("here", 9092)


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    "topics", [[(METADATA, [0, 1])], [(METADATA, [1])], [("other", [0])], [(METADATA, [0])] * 2]
)
async def test_there_is_no_other_quorum(topics: Topics, version: int) -> None:
    response = await ask(Admin(), topics, version)
    codes = [each.error_code for topic in response.topics for each in topic.partitions]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * sum(len(at) for _, at in topics)
    assert response.nodes == []
