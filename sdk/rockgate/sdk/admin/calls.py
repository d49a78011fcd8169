"""Admin requests: to one broker, to every master, or to the name servers."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.sdk import answers
from rockgate.sdk.admin.values import Broker
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.cluster import MASTER, brokers_of, find_brokers
from rockgate.sdk.errors import ErrorCode, NoRoute, NotSupported

TIMEOUT_S: Final = 5.0
BODY_BYTES_MAX: Final = 8 << 20
"""The limit of one response: some forty thousand topics."""

T = TypeVar("T")


class AdminCalls:
    """Requests over one client."""

    def __init__(self, client: Client, timeout_s: float) -> None:
        self.client = client
        self._timeout_s = timeout_s

    async def ask(
        self,
        address: str,
        code: RequestCode,
        header: msgspec.Struct | None = None,
        body: Buffer = b"",
    ) -> Command:
        """A broker's response; Refused if it is an error, NotSupported for an unknown request."""
        fields = None if header is None else headers.write(header)
        link = self.client.broker(address)
        answer = await link.request(code, fields, body, timeout_s=self._timeout_s)
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise NotSupported(f"{address} does not know {code.name} ({code.value}).")
        return answers.checked(code, address, answer)

    async def read(
        self,
        address: str,
        code: RequestCode,
        kind: type[T],
        header: msgspec.Struct | None = None,
        body: Buffer = b"",
    ) -> T:
        """The body of a broker's answer."""
        answer = await self.ask(address, code, header, body)
        return await answers.read_any_body(code, address, answer, kind, BODY_BYTES_MAX)

    async def named(
        self, code: RequestCode, kind: type[T], header: msgspec.Struct | None = None
    ) -> T | None:
        """What a name server knows; None if none of them does."""
        fields = {} if header is None else headers.write(header)
        return (await self.client.name_servers.find(code, fields, kind, code.name)).value

    async def brokers(self) -> dict[str, Broker]:
        """Every broker of every cluster, by name."""
        brokers = await find_brokers(self.client.name_servers)
        clusters = {each.broker_name: each.cluster for each in brokers}
        return {
            name: Broker(name=name, cluster=clusters[name], addresses=addresses)
            for name, addresses in sorted(brokers_of(brokers).items())
        }

    async def masters(self, cluster: str | None = None, broker: str | None = None) -> list[str]:
        """The masters' addresses: of all clusters, of one, or of one broker; there must be one."""
        found = [
            each.addresses[MASTER]
            for each in (await self.brokers()).values()
            if MASTER in each.addresses
            and cluster in (None, each.cluster)
            and broker in (None, each.name)
        ]
        if not found:
            named = f"broker {broker}" if broker else f"cluster {cluster}" if cluster else "cluster"
            raise NoRoute(f"No master of {named} is known.", ErrorCode.BROKER_NOT_EXIST)
        return found

    async def masters_of(self, topic: str) -> dict[str, str]:
        """The masters' addresses of a topic's brokers, by name, from its current route."""
        route = await self.client.routes.ask_again(topic)
        return {
            name: addresses[MASTER]
            for name, addresses in sorted(route.brokers.items())
            if MASTER in addresses
        }
