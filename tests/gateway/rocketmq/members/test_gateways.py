"""Gateways by their client ids, and who leads what among them."""

from __future__ import annotations

from collections import Counter

import pytest

from rockgate.gateway.net.address import Address
from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.members.gateways import Gateway, gateways_of
from rockgate.gateway.rocketmq.members.rendezvous import Rendezvous


@pytest.mark.parametrize("address", ["10.0.0.5:9092", "[::1]:9092", "kafka.example:1"])
def test_a_client_id_is_read_back(address: str) -> None:
    for node_id in (None, 0, 2**31 - 1):
        gateway = Gateway.at(Address.parse(address), node_id)
        assert Gateway.parse(gateway.client_id) == gateway
    assert gateway.client_id == f"{address}@2147483647"


@pytest.mark.parametrize(
    "client_id",
    [
        "",
        "@",
        "10.0.0.5@1234",
        "10.0.0.5:9092@",
        "10.0.0.5:9092@-1",
        "10.0.0.5:9092@2147483648",
        "10.0.0.5:9092@1#2",
        "off@1",
        "10.0.0.5:0@1",
        "10.0.0.5:9092@" + "1" * 5000,
    ],
)
def test_other_members_are_no_gateways(client_id: str) -> None:
    assert Gateway.parse(client_id) is None


def test_a_gateway_with_two_connections_is_listed_once() -> None:
    one, two = (Gateway.at(Address("h", port)) for port in (1, 2))
    listed = [two.client_id, "java@1#2", one.client_id, two.client_id]
    assert gateways_of(listed) == tuple(sorted((one, two)))


def queues(count: int) -> list[QueueName]:
    return [QueueName("orders", "a", at) for at in range(count)]


def test_each_gateway_leads_its_share() -> None:
    placed = Rendezvous([11, 22, 33])
    shares = Counter(placed.leader(each) for each in queues(3000))
    assert set(shares) == {11, 22, 33}
    assert all(900 < share < 1100 for share in shares.values()), shares


def test_only_what_a_gateway_led_changes_when_it_goes() -> None:
    before, after = Rendezvous([11, 22, 33]), Rendezvous([11, 33])
    for each in queues(500):
        if before.leader(each) != 22:
            assert after.leader(each) == before.leader(each)


def test_without_gateways_nobody_leads() -> None:
    assert Rendezvous([]).leader(QueueName("orders", "a", 0)) is None
