"""What producers of one process share: connections, routes, heartbeats, and what brokers ask.

    async with Client("127.0.0.1:9876") as client:
        async with Producer(client=client, group="shop") as producer: …

Producers that are given addresses share one by themselves (`sharing`). It has one task of its own
and no thread: every 30 s it asks for the routes again and tells every broker that it is alive. A
broker is told also when a connection to it is made.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.clients import HeartbeatBody, ProducerData
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Buffer, Command, Fields
from rockgate.protocol.remoting.headers.clients import UnregisterClientHeader
from rockgate.protocol.remoting.ids import client_id
from rockgate.sdk.connection import Dial, Link, LinkSettings, dial_tcp, split_address
from rockgate.sdk.errors import Closed, NoNameServer, SdkError
from rockgate.sdk.hooks import RpcHook
from rockgate.sdk.replies import Replies
from rockgate.sdk.routes import Routes
from rockgate.sdk.transaction import Checks

UPKEEP_S: Final = 30.0
ASK_TIMEOUT_S: Final = 3.0

Handler = Callable[[Link, Command], None]
"""Takes a request of a broker's; it may answer it with `link.respond`, then or later."""

_log: Final = logging.getLogger(__name__)
_numbers: Final = itertools.count()


def wall_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Client:
    """Connections and routes of one set of name servers. It belongs to the loop it is opened on."""

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        instance: str | None = None,
        vip_channel: bool = False,
        rpc_hooks: Sequence[RpcHook] = (),
        dial: Dial = dial_tcp,
        settings: LinkSettings | None = None,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        """`name_servers`: host:port, several with semicolons between, or a list.

        `instance` is this client's name on its host; without one it is the process and a number.
        With `vip_channel` brokers are dialled at their second port, two below the first.
        """
        addresses = addresses_of(name_servers)
        name = instance or f"{os.getpid()}#{next(_numbers)}"
        self.id = client_id(socket.gethostname(), name)
        self.rpc_hooks = tuple(rpc_hooks)
        self._vip_channel = vip_channel
        self.now_ms = now_ms
        self.routes = Routes(addresses, self._ask_name_server)
        self.checks = Checks()
        self.replies = Replies()
        self.handlers: dict[int, Handler] = {
            RequestCode.CHECK_TRANSACTION_STATE: self.checks.asked,
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self.replies.pushed,
        }
        """What is done with a broker's requests, by code; others are answered as unknown."""
        self._dial = dial
        self._settings = settings
        self._links: dict[str, Link] = {}
        self._to_brokers: dict[str, Link] = {}
        """By the address that routes name, whatever is dialled."""
        self._brokers: set[str] = set()
        self._groups: set[str] = set()
        self._upkeep: asyncio.Task[None] | None = None
        self._is_closed = False

    # Life

    async def open(self) -> Self:
        """Begin the upkeep. Nothing is dialled before something is asked for."""
        if self._is_closed or self._upkeep is not None:
            raise Closed("a client is opened once")
        self._upkeep = asyncio.get_running_loop().create_task(self._keep_up())
        return self

    async def close(self) -> None:
        """Take leave of every broker and close every connection."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._upkeep is not None:
            self._upkeep.cancel()
            await asyncio.gather(self._upkeep, return_exceptions=True)
        await self.routes.close()
        await self.checks.close()
        for group in list(self._groups):
            self.remove_producer(group)
        await asyncio.gather(*(link.close() for link in self._links.values()))

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # Asking

    def broker(self, address: str) -> Link:
        """The connection to a broker, which may not be open yet."""
        link = self._to_brokers.get(address)
        if link is None:
            dialled = vip_address(address) if self._vip_channel else address
            link = self._to_brokers[address] = self._link(dialled)
            self._brokers.add(dialled)
        elif self._is_closed:
            raise Closed("the client is closed")
        return link

    async def learn(self, link: Link, timeout_s: float) -> None:
        """Know a broker's version and language, of which it tells with every answer."""
        if link.version is None:
            await link.request(RequestCode.HEART_BEAT, None, self._heartbeat(), timeout_s=timeout_s)

    def is_backing_off(self, address: str) -> bool:
        """Whether a dial of this broker has just failed."""
        link = self._to_brokers.get(address)
        return link is not None and link.retry_in_s > 0

    # Producers

    def add_producer(self, group: str) -> None:
        """Say in heartbeats that this group produces here; one producer for each group."""
        if group in self._groups:
            raise ValueError(
                f"this client has a producer of the group {group} already: "
                "give the second another group, or another `instance`"
            )
        self._groups.add(group)
        self._tell_all()

    def remove_producer(self, group: str) -> None:
        """Take leave for one group, of every broker that is connected."""
        self._groups.discard(group)
        header = UnregisterClientHeader(client_id=self.id, producer_group=group)
        for address in self._brokers:
            self._links[address].notify(RequestCode.UNREGISTER_CLIENT, headers.write(header))

    # Private

    def _link(self, address: str) -> Link:
        if self._is_closed:
            raise Closed("the client is closed")
        if self._upkeep is None:
            raise Closed("the client is not open: use `async with`, or `await client.open()`")
        link = self._links.get(address)
        if link is None:
            link = self._links[address] = Link(
                address,
                dial=self._dial,
                settings=self._settings,
                on_request=self._asked,
                on_open=self._greet,
                hooks=self.rpc_hooks,
            )
        return link

    async def _ask_name_server(self, address: str, code: int, fields: Fields) -> Command:
        return await self._link(address).request(code, fields, timeout_s=ASK_TIMEOUT_S)

    def _asked(self, link: Link, command: Command) -> None:
        handler = self.handlers.get(command.code)
        if handler is not None:
            handler(link, command)
        else:
            unknown = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            link.respond(command, Command(unknown, remark=f"code {command.code} is not served"))

    def _heartbeat(self) -> Buffer:
        groups = [ProducerData(group_name=group) for group in sorted(self._groups)]
        return javajson.encode(HeartbeatBody(client_id=self.id, producer_data_set=groups))

    def _greet(self, link: Link) -> None:
        if link.address in self._brokers and self._groups:
            link.notify(RequestCode.HEART_BEAT, None, self._heartbeat())

    def _tell_all(self) -> None:
        for address in self._brokers:
            self._greet(self._links[address])

    async def _keep_up(self) -> None:
        while True:
            await asyncio.sleep(UPKEEP_S)
            await self.routes.refresh()
            await self._drop_unused()
            await asyncio.gather(*(self._beat(address) for address in list(self._brokers)))

    async def _beat(self, address: str) -> None:
        try:
            await self._link(address).request(
                RequestCode.HEART_BEAT, None, self._heartbeat(), timeout_s=ASK_TIMEOUT_S
            )
        except SdkError as failed:
            _log.warning("heartbeat to %s failed: %s", address, failed)

    async def _drop_unused(self) -> None:
        """Close connections to brokers that no route names any more."""
        for address in self._to_brokers.keys() - self.routes.addresses:
            link = self._to_brokers.pop(address)
            self._brokers.discard(link.address)
            del self._links[link.address]
            await link.close()


def addresses_of(name_servers: str | Sequence[str]) -> list[str]:
    """The addresses of name servers, each of them checked."""
    given = name_servers.split(";") if isinstance(name_servers, str) else list(name_servers)
    addresses = [address.strip() for address in given if address.strip()]
    if not addresses:
        raise NoNameServer("no name server: give at least one host:port")
    for address in addresses:
        split_address(address)
    return addresses


def vip_address(address: str) -> str:
    """A broker's second port."""
    host, port = split_address(address)
    return f"{host}:{port - 2}"
