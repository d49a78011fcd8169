"""Placement over all gateways: the leaders of partitions, and the coordinators of groups.

Both go by what the brokers list (`terms`). A partition has no leader while its broker has no master
or cannot be asked; a group has no coordinator while the master of its slot cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Peer
from rockgate.gateway.kafka.topics.catalog import TopicView
from rockgate.gateway.kafka.topics.placement import NO_NODE, CoordinatorType, LeaderRun, Node
from rockgate.gateway.net.address import Address
from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.members.gateways import Gateway
from rockgate.gateway.rocketmq.members.rendezvous import Rendezvous
from rockgate.gateway.rocketmq.members.slots import Slots, slot_of
from rockgate.gateway.rocketmq.members.terms import LeaderTerms
from rockgate.gateway.rocketmq.topics.catalog import Cluster, ClusterCatalog
from rockgate.protocol.kafka.errors import ErrorCode

NO_TRANSACTIONS: Final = "Transactions are not supported over a RocketMQ cluster."


class GatewayPlacement:
    """All gateways as nodes. The client of a connection gets this one by its own listener."""

    def __init__(
        self,
        me: Gateway,
        *,
        terms: LeaderTerms,
        slots: Slots,
        catalog: ClusterCatalog,
        cluster: Cluster,
    ) -> None:
        self._me = me
        self._terms = terms
        self._slots = slots
        self._catalog = catalog
        self._cluster = cluster
        self._nodes_of: tuple[int, Address | None] = (-1, None)
        self._nodes: tuple[Node, ...] = ()

    @property
    def version(self) -> int:
        """Differs after every change of topics, masters and gateways."""
        return self._catalog.version + self._terms.version

    @property
    def controller_id(self) -> int:
        """The gateway with the lowest node id: all can do what controllers do."""
        return min((each.node_id for each in self._gateways()), default=self._me.node_id)

    def nodes(self, peer: Peer) -> tuple[Node, ...]:
        """All gateways that any broker lists, and this one in any case."""
        key = (self._terms.version, peer.advertised)
        if key != self._nodes_of:
            others = {each.node_id: each.node for each in self._gateways()}
            others[self._me.node_id] = self._here(peer)
            self._nodes_of, self._nodes = key, tuple(others[each] for each in sorted(others))
        return self._nodes

    def leaders(self, topic: TopicView, first: int, end: int) -> Iterator[LeaderRun]:
        """Who leads each partition; none where the broker has no master or cannot be asked."""
        known = self._catalog.find_id(topic.id)
        if known is None:
            return
        masters, readable = set(self._cluster.masters), self._cluster.readable
        anybody = Rendezvous([each.node_id for each in self._gateways()]) if readable else None
        run: tuple[int, int] | None = None
        for begin, stop, broker, queue_id in known.table.spans(first, end):
            for at in range(begin, stop):
                leader: int | None = None
                if broker in masters:
                    queue = QueueName(known.wire, broker, queue_id + at - begin)
                    leader = self._terms.leader(queue)
                elif broker in readable and anybody is not None:
                    # Any gateway may read: they need not agree.
                    queue = QueueName(known.wire, broker, queue_id + at - begin)
                    leader = anybody.leader(queue)
                node_id = NO_NODE if leader is None else leader
                if run is None:
                    run = (at, node_id)
                elif run[1] != node_id:
                    yield LeaderRun(run[0], at, run[1], 0)
                    run = (at, node_id)
        if run is not None:
            yield LeaderRun(run[0], end, run[1], 0)

    def coordinator(self, type_: CoordinatorType, key: str, peer: Peer) -> Node:
        """The gateway of a group's slot; for transactions an error that ends clients at once."""
        if type_ is CoordinatorType.TRANSACTION:
            raise RequestError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_TRANSACTIONS)
        queue = self._slots.place(key)
        leader = None if queue is None else self._terms.leader(queue)
        for each in () if leader is None or queue is None else self._terms.gateways(queue.broker):
            if each.node_id == leader:
                return self._here(peer) if leader == self._me.node_id else each.node
        where = "" if queue is None else f", broker {queue.broker},"
        raise RequestError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"The master of coordinator slot {slot_of(key)}{where} cannot be asked now.",
        )

    def _gateways(self) -> list[Gateway]:
        return self._terms.all_gateways()

    def _here(self, peer: Peer) -> Node:
        address = peer.advertised
        return Node(self._me.node_id, address.host, address.port)
