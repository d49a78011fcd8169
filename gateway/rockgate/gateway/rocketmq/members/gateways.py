"""A gateway as brokers list it: its Kafka address and its node id, which are its client id.

    10.0.0.5:9092@1804289383

What brokers list is not trusted: another client may be a member of the group.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final, NamedTuple

from rockgate.gateway.kafka.topics.placement import Node
from rockgate.gateway.net.address import Address

GROUP: Final = "rockgate_gateways"
"""The group of all gateways: its members are they, and its locks theirs."""
GATEWAYS_MAX: Final = 1_000
NODE_ID_MAX: Final = (1 << 31) - 1


class Gateway(NamedTuple):
    """A gateway. They are sorted by node id, which is what placement goes by."""

    node_id: int
    host: str
    port: int

    @classmethod
    def at(cls, address: Address, node_id: int | None = None) -> Gateway:
        """The gateway with an address; without a node id it is the address's CRC-32, 31 bits."""
        if node_id is None:
            node_id = zlib.crc32(str(address).encode()) & NODE_ID_MAX
        return cls(node_id, address.host, address.port)

    @classmethod
    def parse(cls, client_id: str) -> Gateway | None:
        """The gateway of a client id; None if it is none of a gateway."""
        text, _, digits = client_id.rpartition("@")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):
            return None
        try:
            address = Address.parse(text)
        except ValueError:
            return None
        node_id = int(digits)
        if address.is_closed or not address.port or node_id > NODE_ID_MAX:
            return None
        return cls(node_id, address.host, address.port)

    @property
    def client_id(self) -> str:
        """Its name at brokers."""
        return f"{Address(self.host, self.port)}@{self.node_id}"

    @property
    def node(self) -> Node:
        """It as a Kafka node."""
        return Node(self.node_id, self.host, self.port)


def gateways_of(client_ids: Iterable[str]) -> tuple[Gateway, ...]:
    """The gateways among the members of a group, sorted, each once."""
    found = {Gateway.parse(each) for each in client_ids}
    return tuple(sorted(each for each in found if each is not None)[:GATEWAYS_MAX])
