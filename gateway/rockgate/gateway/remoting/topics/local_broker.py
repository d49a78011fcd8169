"""The broker of this process, as its name server sees it, and its advertised address."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Sequence

import msgspec

from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry, describe
from rockgate.gateway.transcode import names
from rockgate.protocol.entry import pack_host
from rockgate.protocol.remoting.bodies.topics import TopicConfig
from rockgate.store.api.append import NO_HOST
from rockgate.store.api.topics import WRITE

LOOPBACK = "127.0.0.1"


async def store_host(endpoint: Endpoint) -> bytes:
    """The address in every entry: clients dial it to view a message by its id.

    There is one, so it is that of the broker's first listener.

    For a wildcard it is this machine's own address, as far as known.
    """
    address = endpoint.advertised or endpoint.address
    if address.is_closed:
        return NO_HOST
    host = socket.gethostname() if address.is_wildcard else address.host
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        ip = await _resolved(host)
    return pack_host(ip.packed, address.port)


async def _resolved(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, family=socket.AF_INET)
        return ipaddress.ip_address(found[0][4][0])
    except (OSError, ValueError, IndexError):
        return ipaddress.ip_address(LOOPBACK)


class LocalBroker:
    """The broker as the name server of the same process sees it."""

    def __init__(
        self, topics: TopicRegistry, *, broker_name: str, endpoints: Sequence[Endpoint]
    ) -> None:
        """`endpoints` are the broker's listeners, the first one first."""
        self._topics = topics
        self._first = endpoints[0]
        self._by_name = {each.name: each for each in endpoints}
        self._is_wiped = False
        self.broker_name = broker_name
        self.cluster_name = topics.cluster_name

    def address(self, caller: Caller) -> str:
        """The address that the client should dial; for a wildcard, the host it has just reached.

        A client of a name server's listener is sent to the broker's listener of the same name.
        """
        endpoint = self._by_name.get(caller.peer.listener.name, self._first)
        reached = Address(caller.peer.local.host, endpoint.address.port)
        return str(endpoint.address_for(reached))

    def topic(self, name: str) -> TopicConfig | None:
        """A topic by name."""
        topic = self._topics.find(name)
        if topic is None or not names.is_visible(topic.name):
            return None
        config = describe(topic)
        if self._is_wiped:
            return msgspec.structs.replace(config, perm=config.perm & ~WRITE)
        return config

    def topic_names(self) -> Iterable[str]:
        """All topics."""
        return (names.to_rocketmq(topic.name) for topic in self._topics)

    def system_topic_names(self) -> Iterable[str]:
        """RocketMQ's system topics."""
        return self._topics.system_names()

    def wipe_write(self, is_wiped: bool) -> int:
        """Remove or restore the write permission of topics; returns how many there are."""
        self._is_wiped = is_wiped
        return sum(1 for _ in self._topics)
