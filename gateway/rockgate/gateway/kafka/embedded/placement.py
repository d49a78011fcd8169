"""One node, which leads every partition and coordinates everything."""

from __future__ import annotations

from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.kafka.topics.catalog import TopicView
from rockgate.gateway.kafka.topics.placement import CoordinatorType, LeaderRun, Node
from rockgate.gateway.net.address import Address


class SingleNode:
    """This node as the only one."""

    def __init__(self, *, node_id: int, leader_epoch: int) -> None:
        self.version = 0
        self.controller_id = node_id
        self._leader_epoch = leader_epoch
        # The last node that was returned: nearly always the next client gets the same.
        self._address: Address | None = None
        self._nodes = (Node(node_id, "", -1),)

    def nodes(self, peer: Peer) -> tuple[Node]:
        """This node alone."""
        address = peer.advertised
        return self._nodes if address is self._address else self._moved(address)

    def leaders(self, topic: TopicView, first: int, end: int) -> tuple[LeaderRun]:
        """This node for all of them."""
        return (LeaderRun(first, end, self.controller_id, self._leader_epoch),)

    def coordinator(self, type_: CoordinatorType, key: str, peer: Peer) -> Node:
        """This node, whatever the key."""
        address = peer.advertised
        return (self._nodes if address is self._address else self._moved(address))[0]

    def _moved(self, address: Address) -> tuple[Node]:
        self._address = address
        self._nodes = (Node(self.controller_id, address.host, address.port),)
        return self._nodes
