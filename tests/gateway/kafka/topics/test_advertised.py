import pytest

from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.kafka.topics.advertised import Advertised
from rockgate.gateway.net.address import Address

PEER = Peer(connection_id=1, local=Address("10.1.2.3", 9092), remote=Address("10.9.9.9", 4))


@pytest.mark.parametrize(
    ("configured", "bound", "told"),
    [
        (None, Address("127.0.0.1", 9092), Address("127.0.0.1", 9092)),
        (None, Address("localhost", 9092), Address("localhost", 9092)),
        (None, Address("0.0.0.0", 9092), PEER.local),
        (None, Address("::", 9092), PEER.local),
        (Address("kafka.example", 1), Address("0.0.0.0", 9092), Address("kafka.example", 1)),
        (Address("kafka.example", 1), Address("127.0.0.1", 9092), Address("kafka.example", 1)),
    ],
)
def test_clients_are_told_an_address_that_works(
    configured: Address | None, bound: Address, told: Address
) -> None:
    assert Advertised(configured=configured, bound=bound).address_for(PEER) == told
