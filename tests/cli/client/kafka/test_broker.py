import asyncio

import pytest
from tests.cli.client.brokers import Brokers
from tests.waiting import until

from rockgate.cli.client.kafka.errors import NotServed, Unreachable
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from rockgate.protocol.kafka.messages.list_groups import ListGroupsRequest, ListGroupsResponse


async def test_the_newest_version_that_both_know_is_spoken() -> None:
    brokers = Brokers()
    brokers.served[ApiKey.LIST_GROUPS] = (0, 3)
    brokers.answers[ApiKey.LIST_GROUPS] = lambda node, request: ListGroupsResponse()
    async with brokers.cluster() as cluster:
        broker = await cluster.anyone()
        await broker.ask(ListGroupsRequest(), ListGroupsResponse)
        await broker.ask(ListGroupsRequest(), ListGroupsResponse, version_max=2)
    assert [v for key, v in brokers.versions if key is ApiKey.LIST_GROUPS] == [3, 2]


async def test_a_broker_that_knows_only_old_api_versions_is_asked_again_in_its_own() -> None:
    brokers = Brokers()
    brokers.served[ApiKey.API_VERSIONS] = (0, 2)
    async with brokers.cluster() as cluster:
        broker = await cluster.anyone()
    assert brokers.versions == [(ApiKey.API_VERSIONS, 2)]
    assert broker.version_of(ApiKey.METADATA) == 13


async def test_an_api_that_is_not_served_is_named() -> None:
    brokers = Brokers()
    del brokers.served[ApiKey.DESCRIBE_CLUSTER]
    brokers.served[ApiKey.LIST_GROUPS] = (90, 91)
    async with brokers.cluster() as cluster:
        broker = await cluster.anyone()
        with pytest.raises(NotServed, match=r"node1:9092 does not support DescribeCluster"):
            await broker.ask(DescribeClusterRequest(), DescribeClusterResponse)
        with pytest.raises(
            NotServed, match=r"supports ListGroups in versions 90-91, this client does not"
        ):
            await broker.ask(ListGroupsRequest(), ListGroupsResponse)


async def test_an_answer_that_does_not_come_in_time_is_unreachable() -> None:
    brokers = Brokers()
    brokers.answers[ApiKey.LIST_GROUPS] = lambda node, request: None
    async with brokers.cluster(timeout_s=0.01) as cluster:
        broker = await cluster.anyone()
        with pytest.raises(Unreachable, match=r"node1:9092 did not respond within 0.01 s"):
            await broker.ask(ListGroupsRequest(), ListGroupsResponse)


async def test_a_connection_that_was_lost_is_made_again() -> None:
    brokers = Brokers()
    brokers.answers[ApiKey.LIST_GROUPS] = lambda node, request: None
    async with brokers.cluster(timeout_s=10) as cluster:
        broker = await cluster.anyone()
        asking = asyncio.ensure_future(broker.ask(ListGroupsRequest(), ListGroupsResponse))
        await until(lambda: brokers.requests(ListGroupsRequest), "the request is there")
        brokers.wires[0].cut()
        with pytest.raises(Unreachable, match="closed the connection"):
            await asking
        brokers.answers[ApiKey.LIST_GROUPS] = lambda node, request: ListGroupsResponse()
        await broker.ask(ListGroupsRequest(), ListGroupsResponse)
    assert len(brokers.wires) == 2


async def test_who_stops_waiting_leaves_the_connection_usable() -> None:
    brokers = Brokers()
    brokers.answers[ApiKey.LIST_GROUPS] = lambda node, request: ListGroupsResponse(error_code=7)
    async with brokers.cluster() as cluster:
        broker = await cluster.anyone()
        asking = asyncio.ensure_future(broker.ask(ListGroupsRequest(), ListGroupsResponse))
        await until(lambda: brokers.requests(ListGroupsRequest), "the request is there")
        asking.cancel()
        brokers.answers[ApiKey.LIST_GROUPS] = lambda node, request: ListGroupsResponse(error_code=8)
        answer = await broker.ask(ListGroupsRequest(), ListGroupsResponse)
    assert answer.error_code == 8
    assert len(brokers.wires) == 1


async def test_a_peer_that_is_no_kafka_is_named_as_such() -> None:
    brokers = Brokers()
    brokers.answers[ApiKey.LIST_GROUPS] = lambda node, request: None
    async with brokers.cluster(timeout_s=10) as cluster:
        broker = await cluster.anyone()
        asking = asyncio.ensure_future(broker.ask(ListGroupsRequest(), ListGroupsResponse))
        await until(lambda: brokers.requests(ListGroupsRequest), "the request is there")
        brokers.wires[0]._link.data_received(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(Unreachable, match="does not speak the Kafka protocol"):
            await asking
