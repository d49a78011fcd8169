import pytest

from rockgate.gateway.net.address import CLOSED, Address
from rockgate.gateway.net.listening.endpoint import NOWHERE, Endpoint

LOCAL = Address("10.1.2.3", 9092)
EXAMPLE = Address("kafka.example", 1)


@pytest.mark.parametrize(
    ("advertised", "bound", "told"),
    [
        (None, Address("127.0.0.1", 9092), Address("127.0.0.1", 9092)),
        (None, Address("localhost", 9092), Address("localhost", 9092)),
        (None, Address("0.0.0.0", 9092), LOCAL),
        (None, Address("::", 9092), LOCAL),
        (EXAMPLE, Address("0.0.0.0", 9092), EXAMPLE),
        (EXAMPLE, Address("127.0.0.1", 9092), EXAMPLE),
    ],
)
def test_clients_are_told_an_address_that_works(
    advertised: Address | None, bound: Address, told: Address
) -> None:
    endpoint = Endpoint(protocol="kafka", address=bound, advertised=advertised)
    assert endpoint.address_for(LOCAL) == told


def test_a_peer_without_a_listener_is_told_where_it_is() -> None:
    assert NOWHERE.address_for(LOCAL) == LOCAL


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("broker.example", False),
    ],
)
def test_only_loopback_is_out_of_reach_for_other_machines(host: str, is_local: bool) -> None:
    assert Endpoint(protocol="kafka", address=Address(host, 1)).is_local is is_local


def test_a_closed_listener_reaches_nobody() -> None:
    assert Endpoint(protocol="http", address=CLOSED).is_local


def test_the_first_listener_is_called_by_its_protocol_and_others_by_their_names() -> None:
    assert Endpoint(protocol="kafka", name="PLAINTEXT").label == "kafka"
    assert Endpoint(protocol="kafka", name="PUBLIC", is_first=False).label == "kafka.PUBLIC"
