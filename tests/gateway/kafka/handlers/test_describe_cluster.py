import pytest
from tests.gateway.kafka.admin import IDENTITY, NODE_ID, Admin, seen
from tests.gateway.kafka.world import call

from rockgate.gateway.kafka.handlers.describe_cluster import DescribeCluster
from rockgate.gateway.kafka.request.permitted import CLUSTER_OPERATIONS, NOT_ASKED
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)


async def ask(request: DescribeClusterRequest, version: int) -> DescribeClusterResponse:
    handler = DescribeCluster(placement=Admin().placement, cluster_id=IDENTITY.cluster_id)
    response: DescribeClusterResponse = await seen(handler.handle(request, call(version)), version)
    return response


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster_is_this_node(version: int) -> None:
    response = await ask(DescribeClusterRequest(), version)
    assert (response.error_code, response.error_message) == (0, None)
    assert response.cluster_id == IDENTITY.cluster_id
    assert response.controller_id == NODE_ID
    assert response.brokers == [DescribeClusterBroker(broker_id=NODE_ID, host="here", port=9092)]
    assert response.cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", range(3))
async def test_operations_are_reported_when_asked_for(version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert (await ask(request, version)).cluster_authorized_operations == CLUSTER_OPERATIONS


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
async def test_only_brokers_are_here(version: int, endpoint_type: int, code: ErrorCode) -> None:
    response = await ask(DescribeClusterRequest(endpoint_type=endpoint_type), version)
    assert response.error_code == code
    assert response.error_message
    assert response.brokers == []


async def test_a_refusal_has_no_cluster() -> None:
    handler = DescribeCluster(placement=Admin().placement, cluster_id=IDENTITY.cluster_id)
    refused = handler.refuse(DescribeClusterRequest(), ErrorCode.INVALID_REQUEST)
    assert (await seen(refused, 0)).error_code == 42
