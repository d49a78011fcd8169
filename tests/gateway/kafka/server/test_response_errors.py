import pytest

from rockgate.gateway.compose.kafka_services import Services
from rockgate.gateway.compose.kafka_table import HANDLERS
from rockgate.gateway.kafka.handlers.fetch import Fetched
from rockgate.gateway.kafka.handlers.produce import Produced
from rockgate.gateway.kafka.request.handler import Row
from rockgate.gateway.kafka.server.request_metrics import (
    LOOKED_AT_MAX,
    first_error,
    first_partition_error,
)
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.hot.fetch import FetchedPartition, FetchedTopic
from rockgate.protocol.kafka.hot.produce import ProducedPartition, ProducedTopic
from rockgate.protocol.kafka.messages.heartbeat import HeartbeatResponse
from rockgate.protocol.kafka.messages.list_groups import ListedGroup, ListGroupsResponse
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


def commit(*codes: int) -> OffsetCommitResponse:
    partitions = [OffsetCommitResponsePartition(error_code=code) for code in codes]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(partitions=partitions)])


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (HeartbeatResponse(), 0),
        (HeartbeatResponse(error_code=25), 25),
        (commit(0, 0), 0),
        (commit(0, 22), 22),
        (commit(*[0] * LOOKED_AT_MAX, 22), 0),
        (ListGroupsResponse(groups=[ListedGroup(group_id="g")]), 0),
    ],
)
def test_the_first_error_of_a_response_is_found(response: object, code: int) -> None:
    assert first_error(response) == code


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (Produced([ProducedTopic("a", b"", [ProducedPartition(0, 0, 5)])]), 0),
        (Produced([ProducedTopic("a", b"", [ProducedPartition(0), ProducedPartition(1, 3)])]), 3),
        (Fetched([FetchedTopic("a", b"", [FetchedPartition(0)])]), 0),
        (Fetched([FetchedTopic("a", b"", [FetchedPartition(0, 6)])], 70), 6),
        (Fetched([], 70), 70),
    ],
)
def test_the_error_of_a_hot_answer_is_that_of_a_partition_or_its_own(
    response: object, code: int
) -> None:
    assert first_partition_error(response) == code


@pytest.mark.parametrize("row", HANDLERS, ids=lambda row: row.key.name)
def test_every_other_answer_can_be_looked_at(row: Row[Services]) -> None:
    assert first_error(APIS[row.key].response()) == 0
