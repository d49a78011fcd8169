import pytest
from tests.gateway.kafka.admin import seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.list_partition_reassignments import (
    ListPartitionReassignments,
)
from rockgate.protocol.kafka.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


@pytest.mark.parametrize(
    "topics", [None, [], [ListPartitionReassignmentsTopics(name="a", partition_indexes=[0])]]
)
async def test_nothing_is_ever_being_moved(
    topics: list[ListPartitionReassignmentsTopics] | None,
) -> None:
    request = ListPartitionReassignmentsRequest(topics=topics)
    response = await seen(ListPartitionReassignments().handle(request, call(0)), 0)
    assert (response.error_code, response.error_message, response.topics) == (0, None, [])
