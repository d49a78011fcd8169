"""What producers and consumers share: connections, routes, heartbeats, and brokers' requests.

    async with Client("127.0.0.1:9876") as client:
        async with Producer(client=client, group="shop") as producer: …

Producers and consumers of a process that are given addresses share one client automatically
(`shared_clients`). It has one task and no thread: every 30 s it refreshes the routes and sends a
heartbeat to every broker. A broker also gets one when a connection to it is made. While a group
here has a checker the client is connected to every master of the cluster, as any may send checks.
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
from rockgate.sdk.client.checks import Checks, GroupChecker
from rockgate.sdk.client.cluster import find_masters
from rockgate.sdk.client.connection import (
    Dial,
    Link,
    LinkSettings,
    dial_tcp,
    dial_tls,
    split_address,
)
from rockgate.sdk.client.consumers import CODES, Consumers, GroupConsumer
from rockgate.sdk.client.name_servers import NameServers
from rockgate.sdk.client.periodic import Upkeep
from rockgate.sdk.client.replies import Replies
from rockgate.sdk.client.routes import Routes
from rockgate.sdk.credentials import Credentials, Signing, Tls, context_of
from rockgate.sdk.errors import Closed, NoNameServer, SdkError
from rockgate.sdk.hooks import RpcHook

UPKEEP_S: Final = 30.0
BEAT_TIMEOUT_S: Final = 3.0

Handler = Callable[[Link, Command], None]
"""Handles a broker's request; it may answer with `link.respond`, at once or later."""

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
        tls: Tls | None = None,
        credentials: Credentials | None = None,
        dial: Dial = dial_tcp,
        settings: LinkSettings | None = None,
        upkeep_s: float = UPKEEP_S,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        """`name_servers`: host:port, several with semicolons between, or a list.

        `instance` is this client's name on its host; without one it is the process and a number.
        With `tls` name servers and brokers are dialled over TLS, and trusted as the context says;
        True trusts what the system trusts. With `credentials` every request is signed.
        With `vip_channel` brokers are dialled at their second port, two below the first. Routes are
        asked for again and heartbeats sent every `upkeep_s`.
        """
        addresses = addresses_of(name_servers)
        name = instance or f"{os.getpid()}#{next(_numbers)}"
        self.id = client_id(socket.gethostname(), name)
        signing = (Signing(credentials),) if credentials is not None else ()
        self.rpc_hooks = (*rpc_hooks, *signing)
        self._vip_channel = vip_channel
        self.now_ms = now_ms
        self.name_servers = NameServers(addresses, self._ask_name_server)
        self.consumers = Consumers()
        self.routes = Routes(self.name_servers, self.consumers.route_changed)
        self.checks = Checks()
        self.replies = Replies()
        self.handlers: dict[int, Handler] = {
            RequestCode.CHECK_TRANSACTION_STATE: self.checks.asked,
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self.replies.pushed,
            **dict.fromkeys(CODES, self.consumers.asked),
        }
        """What is done with a broker's requests, by code; others are answered as unknown."""
        context = context_of(tls)
        self._dial = dial if context is None else dial_tls(context)
        self._settings = settings
        self._links: dict[str, Link] = {}
        self._to_brokers: dict[str, Link] = {}
        """By the address that routes name, whatever is dialled."""
        self._brokers: set[str] = set()
        self._masters: set[str] = set()
        """Every master of the cluster, while a producer here answers transaction checks."""
        self.retained: set[str] = set()
        """Brokers that stay connected although no route names them."""
        self.on_lost: list[Callable[[str], None]] = []
        """Called with the address of each connection that is lost."""
        self._groups: set[str] = set()
        self._upkeep = Upkeep(
            upkeep_s,
            {
                "refreshing routes": self.routes.refresh,
                "refreshing brokers": self._find_masters,
                "closing idle brokers": self._drop_unused,
                "heartbeats": self._beat_all,
            },
        )
        self._over = asyncio.Event()
        self.is_closed = False
        """Whether it is closed, or being closed."""

    # Life

    async def open(self) -> Self:
        """Begin the upkeep. The first connection is made by the first request."""
        if self.is_closed or self._upkeep.is_started:
            raise Closed("The client is already open; a client can be opened only once.")
        self._upkeep.start()
        return self

    async def close(self) -> None:
        """Unregister from every broker and close every connection, in a few seconds at most.

        Pending calls raise Closed. If this is cancelled, everything is closed at once.
        """
        self.is_closed = True
        self._over.set()
        self.replies.close()
        try:
            await self._upkeep.close()
            await self.routes.close()
            await self.checks.close()
            for group in list(self._groups):
                self.remove_producer(group)
            for group in list(self.consumers.groups):
                self.remove_consumer(group)
            await asyncio.gather(*(link.close() for link in self._links.values()))
        finally:
            self.abort()

    def abort(self) -> None:
        """Close at once, without unregistering."""
        self.is_closed = True
        self._over.set()
        self.replies.close()
        self._upkeep.cancel()
        self.routes.cancel()
        self.checks.cancel()
        for link in self._links.values():
            link.abort()

    async def pause(self, seconds: float) -> None:
        """Sleep this long; Closed as soon as the client is."""
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return
        raise Closed("The client was closed.")

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
        elif self.is_closed:
            raise Closed("The client is closed.")
        return link

    async def learn(self, link: Link, timeout_s: float) -> None:
        """Learn a broker's version and language, which every response carries."""
        if link.version is None:
            await link.request(RequestCode.HEART_BEAT, None, self._heartbeat(), timeout_s=timeout_s)

    def is_backing_off(self, address: str) -> bool:
        """Whether a dial of this broker has just failed."""
        link = self._to_brokers.get(address)
        return link is not None and link.retry_in_s > 0

    # Producers

    def add_producer(self, group: str, checker: GroupChecker | None = None) -> None:
        """Announce this group's producer in heartbeats; one producer for each group.

        With a checker every master gets them, now and from now on.
        """
        if group in self._groups:
            raise ValueError(
                f"The client already has a producer of group {group}. "
                "Use another group, or another `instance`."
            )
        self._groups.add(group)
        self._send_heartbeats()
        if checker is not None:
            self.checks.add(group, checker)
            self._upkeep.wake()

    def remove_producer(self, group: str) -> None:
        """Unregister one group from every connected broker."""
        self.checks.remove(group)
        self._groups.discard(group)
        self._unregister(UnregisterClientHeader(client_id=self.id, producer_group=group))

    # Consumers

    def add_consumer(self, group: str, consuming: GroupConsumer) -> None:
        """Include a consumer group in heartbeats; a client has one consumer for each group."""
        self.consumers.add(group, consuming)

    def remove_consumer(self, group: str) -> None:
        """Unregister one group, so that its other members take over at once."""
        self.consumers.remove(group)
        self._unregister(UnregisterClientHeader(client_id=self.id, consumer_group=group))

    async def announce(self) -> None:
        """Tell every broker at once what is consumed here, and wait until they know."""
        await self._beat_all()

    # Private

    def _unregister(self, header: UnregisterClientHeader) -> None:
        for address in self._brokers:
            self._links[address].notify(RequestCode.UNREGISTER_CLIENT, headers.write(header))

    def _link(self, address: str) -> Link:
        if self.is_closed:
            raise Closed("The client is closed.")
        if not self._upkeep.is_started:
            raise Closed("The client is not open. Use `async with` or `await client.open()`.")
        link = self._links.get(address)
        if link is None:
            link = self._links[address] = Link(
                address,
                dial=self._dial,
                settings=self._settings,
                on_request=self._asked,
                on_open=self._send_heartbeat,
                on_lost=self._lost,
                hooks=self.rpc_hooks,
            )
        return link

    async def _ask_name_server(
        self, address: str, code: int, fields: Fields, timeout_s: float
    ) -> Command:
        return await self._link(address).request(code, fields, timeout_s=timeout_s)

    def _asked(self, link: Link, command: Command) -> None:
        handler = self.handlers.get(command.code)
        if handler is None:
            unknown = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            link.respond(
                command, Command(unknown, remark=f"request code {command.code} is not supported")
            )
            return
        try:
            handler(link, command)
        except Exception:  # noqa: BLE001 # handlers are dispatched here: one may not end the socket
            _log.exception("request code %d from %s failed", command.code, link.address)
            link.respond(
                command, Command(ResponseCode.SYSTEM_ERROR, remark="request handler failed")
            )

    def _lost(self, link: Link) -> None:
        if not self.is_closed:
            for listener in self.on_lost:
                listener(link.address)

    def _heartbeat(self) -> Buffer:
        groups = [ProducerData(group_name=group) for group in sorted(self._groups)]
        return javajson.encode(
            HeartbeatBody(
                client_id=self.id,
                producer_data_set=groups,
                consumer_data_set=self.consumers.data(),
            )
        )

    def _send_heartbeat(self, link: Link) -> None:
        if link.address in self._brokers and (self._groups or self.consumers.groups):
            link.notify(RequestCode.HEART_BEAT, None, self._heartbeat())

    def _send_heartbeats(self) -> None:
        for address in self._brokers:
            self._send_heartbeat(self._links[address])

    async def _find_masters(self) -> None:
        """Discover every master while a group here has a checker, as any may send checks."""
        if not self.checks.groups:
            self._masters = set()
            return
        found = await find_masters(self.name_servers)
        if found:
            self._masters = found
        for address in self._masters:
            self.broker(address)

    async def _drop_unused(self) -> None:
        """Close connections to brokers that are no longer referenced."""
        used = self.routes.addresses | self._masters | self.retained
        for address in self._to_brokers.keys() - used:
            link = self._to_brokers[address]
            if link.is_idle:
                del self._to_brokers[address]
                self._brokers.discard(link.address)
                del self._links[link.address]
                await link.close()

    async def _beat_all(self) -> None:
        await asyncio.gather(*(self._beat(self._links[address]) for address in self._brokers))

    async def _beat(self, link: Link) -> None:
        try:
            if link.is_open:
                await link.request(
                    RequestCode.HEART_BEAT, None, self._heartbeat(), timeout_s=BEAT_TIMEOUT_S
                )
            else:
                # A broker gets a heartbeat as soon as it is connected.
                await link.connect(BEAT_TIMEOUT_S)
        except SdkError as failed:
            _log.warning("heartbeat to %s failed: %s", link.address, failed)
        except Exception:  # noqa: BLE001 # a hook of the application's: the others are notified too
            _log.exception("heartbeat to %s failed", link.address)


def addresses_of(name_servers: str | Sequence[str]) -> list[str]:
    """The addresses of name servers, each of them checked."""
    given = name_servers.split(";") if isinstance(name_servers, str) else list(name_servers)
    addresses = [address.strip() for address in given if address.strip()]
    if not addresses:
        raise NoNameServer("No name server given. Give at least one as host:port.")
    for address in addresses:
        split_address(address)
    return addresses


def vip_address(address: str) -> str:
    """A broker's second port; its first where there is none."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) - 2}" if int(port) > 2 else address
