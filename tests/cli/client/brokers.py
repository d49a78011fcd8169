"""Brokers in memory: real bytes through real links, without a socket.

    brokers = Brokers(leaders={("orders", 0): 1, ("orders", 1): 2})
    brokers.answers[ApiKey.LIST_OFFSETS] = lambda node, request: ListOffsetsResponse(...)
    cluster = brokers.cluster()

ApiVersions, Metadata and FindCoordinator are answered from the given topology; every other API by
the function in `answers`. A function that returns None never responds.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.link import Link
from rockgate.gateway.net.address import Address
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.connection import Exchange, ServerConnection
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.api_versions import ApiVersion, ApiVersionsResponse
from rockgate.protocol.kafka.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rockgate.protocol.kafka.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rockgate.protocol.kafka.schema import decode, encode

Place = tuple[str, int]
Answer = Callable[[int, Any], Any]
PORT = 9092


class Wire:
    """The transport of one link: writes go to a node, and its responses come back."""

    def __init__(self, brokers: "Brokers", node: int, link: Link) -> None:
        self._brokers = brokers
        self._node = node
        self._link = link
        self._server = ServerConnection()
        self.is_closed = False

    def writelines(self, buffers: list[Any]) -> None:
        data = b"".join(bytes(buffer) for buffer in buffers)
        for exchange in self._server.receive_data(data):
            answer = self._brokers.answer(self._node, exchange)
            if answer is not None:
                self._server.respond(exchange, [answer])
        out = b"".join(bytes(buffer) for buffer in self._server.data_to_send())
        if out:
            asyncio.get_running_loop().call_soon(self._deliver, out)

    def close(self) -> None:
        self.is_closed = True

    def get_extra_info(self, name: str) -> None:
        """There is no TLS."""

    def _deliver(self, data: bytes) -> None:
        if not self.is_closed:
            self._link.data_received(data)

    def cut(self) -> None:
        """Close the connection, like a broker that dies."""
        self._link.connection_lost(None)


class Brokers:
    """Some nodes, the topics they lead, and their responses."""

    def __init__(
        self, leaders: dict[Place, int] | None = None, *, nodes: tuple[int, ...] = (1,)
    ) -> None:
        self.leaders = leaders or {}
        self.nodes = nodes
        self.coordinator = nodes[-1]
        self.controller = nodes[0]
        self.down: set[int] = set()
        self.answers: dict[ApiKey, Answer] = {}
        self.served = {key: (api.advertised.min, api.advertised.max) for key, api in APIS.items()}
        self.asked: list[tuple[int, Any]] = []
        self.versions: list[tuple[ApiKey, int]] = []
        self.wires: list[Wire] = []

    def cluster(self, *, timeout_s: float = 1.0) -> Cluster:
        """A client with the first node as its seed."""
        return Cluster([_address(self.nodes[0])], timeout_s=timeout_s, dial=self.dial)

    async def dial(self, make: Callable[[], Link], address: Address) -> Link:
        node = int(address.host.removeprefix("node"))
        if node in self.down:
            raise ConnectionRefusedError(111, "Connect call failed")
        link = make()
        wire = Wire(self, node, link)
        self.wires.append(wire)
        link.connection_made(cast(asyncio.Transport, wire))
        return link

    def requests(self, kind: type[Any]) -> list[tuple[int, Any]]:
        """The requests of one API so far, each with the node that received it."""
        return [(node, request) for node, request in self.asked if isinstance(request, kind)]

    def answer(self, node: int, exchange: Exchange) -> bytes | None:
        header = exchange.header
        key = ApiKey(header.api_key)
        low, high = self.served.get(key, (0, -1))
        if key is ApiKey.API_VERSIONS and not low <= header.api_version <= high:
            refusal = self._api_versions(ErrorCode.UNSUPPORTED_VERSION)
            return encode(refusal, 0)
        request = decode(APIS[key].request, header.api_version, exchange.body)
        self.asked.append((node, request))
        self.versions.append((key, header.api_version))
        response: Any
        if key is ApiKey.API_VERSIONS:
            response = self._api_versions()
        elif key in self.answers:
            response = self.answers[key](node, request)
        elif key is ApiKey.METADATA:
            response = self.metadata(request)
        elif key is ApiKey.FIND_COORDINATOR:
            response = self._find_coordinator(request, header.api_version)
        else:
            raise AssertionError(f"nobody said how to answer {request}")
        return None if response is None else encode(response, header.api_version)

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = (
            sorted({name for name, _ in self.leaders})
            if request.topics is None
            else [topic.name or "" for topic in request.topics]
        )
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node, host=f"node{node}", port=PORT)
                for node in self.nodes
            ],
            cluster_id="in-memory",
            controller_id=self.controller,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        parts = sorted(index for topic, index in self.leaders if topic == name)
        return MetadataResponseTopic(
            name=name,
            error_code=ErrorCode.NONE if parts else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=self.leaders[name, index],
                    replica_nodes=[self.leaders[name, index]],
                    isr_nodes=[self.leaders[name, index]],
                )
                for index in parts
            ],
        )

    def _api_versions(self, code: int = 0) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            error_code=code,
            api_keys=[
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in self.served.items()
            ],
        )

    def _find_coordinator(
        self, request: FindCoordinatorRequest, version: int
    ) -> FindCoordinatorResponse:
        found = Coordinator(
            key=(request.coordinator_keys or [request.key])[0],
            node_id=self.coordinator,
            host=f"node{self.coordinator}",
            port=PORT,
        )
        return FindCoordinatorResponse(
            node_id=found.node_id, host=found.host, port=found.port, coordinators=[found]
        )


def _address(node: int) -> Address:
    return Address(f"node{node}", PORT)
