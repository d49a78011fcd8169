"""Brokers over the SDK's client: masters by name, and the name servers' values and lists.

Where masters are is asked of the name servers every few seconds, and again when one is not known.
The client keeps links to all masters, though no route of its own names them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from rockgate.gateway.rocketmq.cluster.brokers import PullAnswer, QueueName
from rockgate.gateway.rocketmq.cluster.errors import BrokerLost
from rockgate.gateway.telemetry.requests import RequestStats
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.nameserver import RouteData
from rockgate.protocol.remoting.bodies.topics import KeyValues, TopicList
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.connection import Write
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.nameserver import (
    KvHeader,
    NamespaceHeader,
    PutKvHeader,
    RouteHeader,
    ValueAnswer,
)
from rockgate.protocol.remoting.headers.pull import PullHeader
from rockgate.protocol.remoting.headers.send import SendHeaderV2
from rockgate.protocol.remoting.hot.sends import SendHead
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.cluster import MASTER, brokers_of, find_brokers, masters_of
from rockgate.sdk.client.connection import Dial, Link, LinkSettings, dial_tcp, dial_tls
from rockgate.sdk.client_config import ClientConfig
from rockgate.sdk.errors import SdkError

FRAME_BYTES_MAX: Final = 64 << 20
"""Largest answer: a pull of a broker whose limits were lifted."""
SEND_S: Final = 60.0
"""How long an answer may take while the broker answers others: clients get an error before."""
LOST: Final = -1
"""Counted as the code of an answer that did not come."""
VALUES_BYTES_MAX: Final = 1 << 20
"""Largest list of values of a namespace."""
HEADS_MAX: Final = 10_000
"""Queues whose send header is cached; beyond that the cache starts over."""

log = logging.getLogger(__name__)


class ClusterClient:
    """All brokers of one cluster."""

    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self._group = group
        self._masters: dict[str, str] = {}
        self._slaves: dict[str, str] = {}
        """Slaves of brokers that have no master now."""
        self.cluster = ""
        """The name of the cluster; of several that share name servers, the first."""
        self._heads: dict[QueueName, SendHead] = {}
        self.stats = RequestStats()
        """Requests to brokers, by request code."""
        self._finding: asyncio.Task[None] | None = None
        self.on_lost: list[Callable[[str], None]] = []
        """Called with the name of each broker whose master's connection is lost, or that moved."""
        self.on_members: list[Callable[[str], None]] = []
        """Called with the name of a broker that says that the members of a group have changed."""
        client.on_lost.append(self._lost)
        client.handlers[RequestCode.NOTIFY_CONSUMER_IDS_CHANGED] = self._members_changed

    @classmethod
    async def open(
        cls, name_servers: Sequence[str], group: str, config: Path | None = None
    ) -> ClusterClient:
        """A client of the cluster of these name servers; nothing is dialled yet.

        The file `config` says how to connect; ValueError if it is wrong.
        """
        how = ClientConfig() if config is None else ClientConfig.find(config, {})
        tls = how.tls
        client = Client(
            name_servers,
            settings=LinkSettings(frame_bytes_max=FRAME_BYTES_MAX),
            dial=_unlingering(dial_tcp if tls is None else dial_tls(tls)),
            credentials=how.credentials,
        )
        return cls(await client.open(), group)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    @property
    def masters(self) -> list[str]:
        """The names of masters, as far as they are known, sorted."""
        return sorted(self._masters)

    @property
    def readable(self) -> set[str]:
        """The brokers without a master that have a slave which may be read."""
        return {name for name in self._slaves if name not in self._masters}

    def version(self, broker: str) -> int:
        """The version of RocketMQ that a master reports; 0 if it has not answered yet."""
        address = self._masters.get(broker)
        return 0 if address is None else self._client.broker(address).version or 0

    # Brokers

    async def pull(self, broker: str, header: PullHeader, *, timeout_s: float) -> PullAnswer:
        """Pull from a master, or from a slave if the broker has none; BrokerLost without answer."""
        slave = self._slaves.get(broker) if broker not in self._masters else None
        if slave is None:
            code = RequestCode.PULL_MESSAGE
            return PullAnswer(await self.ask(broker, code, header, timeout_s=timeout_s), False)
        try:
            link = self._client.broker(slave)
            fields = headers.write(header)
            code = RequestCode.PULL_MESSAGE
            asking = link.request(code, fields, timeout_s=timeout_s)
            return PullAnswer(await self._counted(code, asking), True)
        except SdkError as failed:
            raise BrokerLost(str(failed)) from failed

    async def ask(
        self,
        broker: str,
        code: RequestCode,
        header: msgspec.Struct | None = None,
        body: Buffer = b"",
        *,
        timeout_s: float = 5.0,
    ) -> Command:
        """Ask a master; BrokerLost if no answer comes."""
        fields = None if header is None else headers.write(header)
        try:
            link = self._client.broker(await self._address(broker))
            return await self._counted(code, link.request(code, fields, body, timeout_s=timeout_s))
        except SdkError as failed:
            raise BrokerLost(str(failed)) from failed

    async def send(self, queue: QueueName, body: Buffer, born_ms: int) -> Command:
        """Send messages to a queue in one request; BrokerLost if no answer comes."""
        try:
            link = self._client.broker(await self._address(queue.broker))
            code = RequestCode.SEND_BATCH_MESSAGE
            if self._client.rpc_hooks:
                # A header that is written by hand is not signed.
                fields = headers.write(self._fields(queue, born_ms))
                asking = link.request(code, fields, body, timeout_s=SEND_S)
            else:
                asking = link.ask(code, self._written(queue, born_ms), body, SEND_S)
            return await self._counted(code, asking)
        except SdkError as failed:
            raise BrokerLost(str(failed)) from failed

    async def send_alone(
        self, queue: QueueName, body: Buffer, properties: str, born_ms: int, sys_flag: int = 0
    ) -> Command:
        """Send one message to a queue (310); BrokerLost if no answer comes."""
        head = self._head(queue, is_batch=False)

        def written(opaque: int, flag: int, body_size: int) -> bytes:
            return head.write(opaque, flag, body_size, sys_flag, born_ms, 0, properties)

        try:
            link = self._client.broker(await self._address(queue.broker))
            code = RequestCode.SEND_MESSAGE_V2
            if self._client.rpc_hooks:
                fields = headers.write(self._fields(queue, born_ms, properties, sys_flag))
                asking = link.request(code, fields, body, timeout_s=SEND_S)
            else:
                asking = link.ask(code, written, body, SEND_S)
            return await self._counted(code, asking)
        except SdkError as failed:
            raise BrokerLost(str(failed)) from failed

    async def find_masters(self) -> None:
        """Learn where all masters are; BrokerLost if no name server answers."""
        if self._finding is None or self._finding.done():
            self._finding = asyncio.get_running_loop().create_task(self._find())
        try:
            await asyncio.shield(self._finding)
        except SdkError as failed:
            raise BrokerLost(str(failed)) from failed

    # Name servers

    async def route(self, topic: str) -> RouteData | None:
        """The route of a topic, None if it has none; BrokerLost if no name server answers."""
        header = RouteHeader(topic=topic, accept_standard_json_only=True)
        try:
            found = await self._client.name_servers.find(
                RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.write(header), RouteData, "route"
            )
        except SdkError as failed:
            raise BrokerLost(str(failed)) from failed
        return found.value

    async def topics(self) -> list[str]:
        """The names of all topics; BrokerLost if no name server answers."""
        code = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
        try:
            found = await self._client.name_servers.find(code, {}, TopicList, "topics")
        except SdkError as failed:
            raise BrokerLost(str(failed)) from failed
        return [] if found.value is None else list(found.value.topic_list)

    async def system_topics(self) -> set[str]:
        """The names of topics that are RocketMQ's own; BrokerLost if no name server answers."""
        code = RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS
        try:
            found = await self._client.name_servers.find(code, {}, TopicList, "system topics")
        except SdkError as failed:
            raise BrokerLost(str(failed)) from failed
        return set() if found.value is None else set(found.value.topic_list)

    async def values(self, namespace: str, key: str) -> list[str]:
        """What name servers have under a key, if they do; BrokerLost if none answers."""
        fields = headers.write(KvHeader(namespace=namespace, key=key))
        try:
            answers = await self._client.name_servers.ask_each(RequestCode.GET_KV_CONFIG, fields)
        except SdkError as failed:
            raise BrokerLost(str(failed)) from failed
        found: list[str] = []
        for answer in answers:
            if answer.code == ResponseCode.SUCCESS:
                try:
                    value = headers.read(answer, ValueAnswer).value
                except MalformedRequest:
                    continue
                if value:
                    found.append(value)
        return found

    async def namespace(self, namespace: str) -> dict[str, str]:
        """All values of a namespace that any name server has; BrokerLost if none answers."""
        code, fields = RequestCode.GET_KVLIST_BY_NAMESPACE, NamespaceHeader(namespace=namespace)
        try:
            answers = await self._client.name_servers.ask_each(code, headers.write(fields))
        except SdkError as failed:
            raise BrokerLost(str(failed)) from failed
        found: dict[str, str] = {}
        for answer in answers:
            if answer.code == ResponseCode.SUCCESS and len(answer.body) <= VALUES_BYTES_MAX:
                try:
                    found |= javajson.decode(answer.body, KeyValues, "219").table
                except MalformedRequest:
                    continue
        return found

    async def put_value(self, namespace: str, key: str, value: str) -> None:
        """Store a value at every name server; BrokerLost if one did not take it."""
        header = PutKvHeader(namespace=namespace, key=key, value=value)
        await self._tell(RequestCode.PUT_KV_CONFIG, header)

    async def remove_value(self, namespace: str, key: str) -> None:
        """Delete a value at every name server; BrokerLost if one did not."""
        await self._tell(RequestCode.DELETE_KV_CONFIG, KvHeader(namespace=namespace, key=key))

    async def tell_name_servers(self, code: RequestCode, header: msgspec.Struct) -> None:
        """Ask every name server to do something; BrokerLost if one did not."""
        await self._tell(code, header)

    # Private

    async def _counted(self, code: RequestCode, asking: Awaitable[Command]) -> Command:
        began = time.perf_counter()
        stats = self.stats.of(code)
        try:
            answer = await asking
        except SdkError:
            stats.count_error(LOST)
            raise
        finally:
            stats.add(time.perf_counter() - began)
        if answer.code:
            stats.count_error(answer.code)
        return answer

    async def _tell(self, code: RequestCode, header: msgspec.Struct) -> None:
        try:
            await self._client.name_servers.send_all(code, headers.write(header))
        except SdkError as failed:
            raise BrokerLost(str(failed)) from failed

    async def _address(self, broker: str) -> str:
        address = self._masters.get(broker)
        if address is None:
            await self._find()
            address = self._masters.get(broker)
        if address is None:
            raise BrokerLost(f"Broker {broker} has no master.")
        return address

    async def _find(self) -> None:
        brokers = await find_brokers(self._client.name_servers)
        self.cluster = min((each.cluster for each in brokers), default=self.cluster)
        found = masters_of(brokers)
        self._slaves = {
            name: addresses[min(addresses)]
            for name, addresses in brokers_of(brokers).items()
            if MASTER not in addresses
        }
        if found != self._masters:
            log.info("masters %s", " ".join(f"{k}={v}" for k, v in sorted(found.items())))
        before, self._masters = self._masters, found
        self._client.retained = set(found.values()) | set(self._slaves.values())
        for name, address in before.items():
            if name in found and found[name] != address:
                self._notify(self.on_lost, name)

    def _lost(self, address: str) -> None:
        for name, each in self._masters.items():
            if each == address:
                self._notify(self.on_lost, name)

    def _members_changed(self, link: Link, command: Command) -> None:
        for name, each in self._masters.items():
            if each == link.address:
                self._notify(self.on_members, name)

    def _notify(self, listeners: Sequence[Callable[[str], None]], broker: str) -> None:
        for listener in listeners:
            listener(broker)

    def _head(self, queue: QueueName, *, is_batch: bool) -> SendHead:
        return SendHead(
            RequestCode.SEND_BATCH_MESSAGE if is_batch else RequestCode.SEND_MESSAGE_V2,
            group=self._group,
            topic=queue.topic,
            default_topic="",
            default_queue_count=0,
            queue_id=queue.queue_id,
            broker=queue.broker,
            is_batch=is_batch,
        )

    def _fields(
        self, queue: QueueName, born_ms: int, properties: str | None = None, sys_flag: int = 0
    ) -> SendHeaderV2:
        return SendHeaderV2(
            producer_group=self._group,
            topic=queue.topic,
            default_topic="",
            default_topic_queue_nums=0,
            queue_id=queue.queue_id,
            sys_flag=sys_flag,
            born_timestamp=born_ms,
            flag=0,
            properties=properties or "",
            reconsume_times=0,
            unit_mode=False,
            batch=properties is None,
            bname=queue.broker,
        )

    def _written(self, queue: QueueName, born_ms: int) -> Write:
        head = self._heads.get(queue)
        if head is None:
            if len(self._heads) >= HEADS_MAX:
                self._heads.clear()
            head = self._heads[queue] = self._head(queue, is_batch=True)
        write = head.write

        def written(opaque: int, flag: int, body_size: int) -> bytes:
            return write(opaque, flag, body_size, 0, born_ms, 0, "")

        return written


def _unlingering(dial: Dial) -> Dial:
    """Connect so that a close discards what the system has not sent yet.

    Packets that were dropped would be sent again for minutes after this gateway gave a broker up,
    or was killed, and a write would arrive when another gateway leads.
    """

    async def unlingering(
        factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.BaseTransport, object]:
        made = await dial(factory, host, port)
        linger = struct.pack("ii", 1, 0)
        made[0].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        return made

    return unlingering
