"""A name server and brokers in memory, for consumers on a virtual clock.

    async def scenario() -> None:
        cluster = MemoryCluster({"a": 2})         brokers, and the queues of every topic at each
        cluster["a"].put("t", 0, b"one")
        async with cluster.client("one") as client:
            async with Heard(cluster, client) as heard: …

    run(scenario())

Brokers hold pulls, keep progress, locks and members, and note what they were asked and when.
`silent` codes are not answered, `refusing` ones with the answer that is named there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import msgspec
from tests.sdk.memorynet import MemoryNet, now

from rockgate.protocol.entry import pack_host, pack_properties
from rockgate.protocol.entry.tagcode import tag_code
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.clients import (
    ConsumerData,
    ConsumerIds,
    HeartbeatBody,
    SubscriptionData,
)
from rockgate.protocol.remoting.bodies.queues import LockBody, LockedBody
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.pull import COMMIT_OFFSET, SUSPEND, PulledHeader
from rockgate.protocol.remoting.message import encode
from rockgate.sdk import Client, Consumer, ConsumerSettings, Received, Start

BEGINNING = ConsumerSettings(start=Start.BEGINNING)
T = TypeVar("T")
HOST = pack_host(b"\x7f\0\0\1", 1)


@dataclass(frozen=True)
class Asked:
    """One request that came."""

    at_s: float
    """Since the cluster was made."""
    broker: str
    command: Command

    @property
    def code(self) -> int:
        return self.command.code

    @property
    def fields(self) -> dict[str, str]:
        return self.command.fields

    def body(self, kind: type[T]) -> T:
        return javajson.decode(self.command.body, kind, "body")


@dataclass
class Stored:
    """One queue."""

    begin: int = 0
    messages: list[tuple[bytes, str | None]] = field(default_factory=list)
    """Packed, each with its tag."""

    @property
    def end(self) -> int:
        return self.begin + len(self.messages)


class MemoryCluster:
    """Brokers by name, all of which have every topic."""

    def __init__(self, queue_counts: dict[str, int]) -> None:
        self.net = MemoryNet()
        self.began_s = now()
        self.asked: list[Asked] = []
        self.queue_counts = queue_counts
        self.topics = {"t"}
        self.members: dict[str, dict[str, ConsumerData]] = {}
        """What clients have said in heartbeats, by group and client."""
        self.offsets: dict[tuple[str, str, str, int], int] = {}
        """By group, topic, broker and queue."""
        self.brokers = {name: MemoryBroker(self, name) for name in queue_counts}
        self.name_server = self.net.listen("n:1")
        self.name_server.script[105] = self._route

    def __getitem__(self, broker: str) -> MemoryBroker:
        return self.brokers[broker]

    def client(self, instance: str = "one", **more: Any) -> Client:
        return Client("n:1", instance=instance, dial=self.net.dial, **more)

    @property
    def now_s(self) -> float:
        return now() - self.began_s

    def of(self, code: int, broker: str | None = None) -> list[Asked]:
        return [each for each in self.asked if each.code == code and broker in (None, each.broker)]

    def pulls(self, topic: str = "t") -> list[Asked]:
        return [each for each in self.of(11) if each.fields["topic"] == topic]

    def heartbeats(self, group: str = "g") -> list[Asked]:
        """Those that tell of a group."""
        return [
            each
            for each in self.of(34)
            if group in {told.group_name for told in each.body(HeartbeatBody).consumer_data_set}
        ]

    def times(self, code: int, broker: str | None = None) -> list[float]:
        """When a code was asked for, to a tenth of a second."""
        return [round(each.at_s, 1) for each in self.of(code, broker)]

    def notify(self, group: str) -> None:
        """Members of a group have changed, say all brokers to all who are connected."""
        for broker in self.brokers.values():
            for transport in broker.peer.transports:
                transport.connection.request(40, {"consumerGroup": group})
                transport.flush()

    def _route(self, request: Command) -> Command:
        self.asked.append(Asked(self.now_s, "", request))
        topic = request.fields["topic"]
        counts = self.queue_counts
        if topic.startswith("%RETRY%"):
            counts = dict.fromkeys(list(counts)[:1], 1)
        elif topic not in self.topics:
            return Command(17, remark="no route")
        body = {
            "brokerDatas": [
                {"brokerName": name, "cluster": "c", "brokerAddrs": {"0": f"{name}:10"}}
                for name in counts
            ],
            "queueDatas": [
                {"brokerName": name, "perm": 6, "readQueueNums": count, "writeQueueNums": count}
                for name, count in counts.items()
            ],
        }
        return Command(0, body=msgspec.json.encode(body))


class MemoryBroker:
    """One broker."""

    def __init__(self, cluster: MemoryCluster, name: str) -> None:
        self.name = name
        self.cluster = cluster
        self.peer = cluster.net.listen(f"{name}:10")
        self.queues: dict[tuple[str, int], Stored] = {}
        self.locks: dict[tuple[str, int], str] = {}
        self.sent_back: list[dict[str, str]] = []
        self.silent: set[int] = set()
        self.refusing: dict[int, Command] = {}
        self.waiting: list[tuple[Command, asyncio.Future[Command]]] = []
        """Pulls that are held."""
        scripts: dict[int, Callable[[Command], Command | asyncio.Future[Command]]] = {
            11: self._pull,
            14: self._query,
            15: self._update,
            29: lambda request: self._offset(self.queue(request).begin),
            30: lambda request: self._offset(self.queue(request).end),
            31: lambda request: self._offset(self.queue(request).begin),
            34: self._heartbeat,
            35: self._unregister,
            36: self._send_back,
            38: self._members,
            41: self._lock,
            42: self._unlock,
            46: lambda _: Command(0),
            310: lambda _: Command(1, remark="nothing is sent here"),
        }
        for code, script in scripts.items():
            self.peer.script[code] = self._noting(script)

    def put(
        self, topic: str, queue: int, *bodies: bytes, tag: str | None = None, begin: int = 0
    ) -> None:
        """Store messages; pulls that wait for them are answered at once."""
        stored = self.queues.setdefault((topic, queue), Stored(begin))
        for body in bodies:
            properties = {"UNIQ_KEY": f"{topic}-{self.name}-{queue}-{stored.end}"}
            if tag is not None:
                properties["TAGS"] = tag
            if topic.startswith("%RETRY%"):
                properties["RETRY_TOPIC"] = "t"
            packed = encode(
                topic=topic.encode(),
                body=body,
                properties=pack_properties(properties.items()),
                queue_id=queue,
                queue_offset=stored.end,
                position=stored.end * 1000,
                born_ms=0,
                born_host=HOST,
                store_ms=0,
                store_host=HOST,
            )
            stored.messages.append((packed, tag))
        waiting, self.waiting = self.waiting, []
        for request, future in waiting:
            if (request.fields["topic"], int(request.fields["queueId"])) != (topic, queue):
                self.waiting.append((request, future))
            elif not future.done():
                future.set_result(self._read(request))

    def queue(self, request: Command) -> Stored:
        fields = request.fields
        return self.queues.setdefault((fields["topic"], int(fields["queueId"])), Stored())

    def progress(self, group: str, topic: str = "t", queue: int = 0) -> int | None:
        return self.cluster.offsets.get((group, topic, self.name, queue))

    def set_progress(self, group: str, offset: int, topic: str = "t", queue: int = 0) -> None:
        self.cluster.offsets[group, topic, self.name, queue] = offset

    # What it is asked

    def _noting(
        self, script: Callable[[Command], Command | asyncio.Future[Command]]
    ) -> Callable[[Command], Command | asyncio.Future[Command] | None]:
        def noted(request: Command) -> Command | asyncio.Future[Command] | None:
            self.cluster.asked.append(Asked(self.cluster.now_s, self.name, request))
            if request.code in self.silent:
                return None
            return self.refusing.get(request.code) or script(request)

        return noted

    def _pull(self, request: Command) -> Command | asyncio.Future[Command]:
        fields, flags = request.fields, int(request.fields["sysFlag"])
        if flags & COMMIT_OFFSET:
            key = fields["consumerGroup"], fields["topic"], self.name, int(fields["queueId"])
            self.cluster.offsets[key] = int(fields["commitOffset"])
        if int(fields["queueOffset"]) != self.queue(request).end or not flags & SUSPEND:
            return self._read(request)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Command] = loop.create_future()
        self.waiting.append((request, future))
        loop.call_later(int(fields["suspendTimeoutMillis"]) / 1000, self._give_up, request, future)
        return future

    def _give_up(self, request: Command, future: asyncio.Future[Command]) -> None:
        if not future.done():
            self.waiting.remove((request, future))
            future.set_result(self._read(request))

    def _read(self, request: Command) -> Command:
        fields, stored = request.fields, self.queue(request)
        offset, count = int(fields["queueOffset"]), int(fields["maxMsgNums"])
        if not stored.begin <= offset <= stored.end:
            return self._pulled(21, stored, max(stored.begin, min(offset, stored.end)))
        if offset == stored.end:
            return self._pulled(19, stored, offset)
        scanned = stored.messages[offset - stored.begin :][:count]
        codes = self._codes(fields["consumerGroup"], fields["topic"])
        found = [
            packed
            for packed, tag in scanned
            if not codes or tag_code((tag or "").encode()) in codes
        ]
        code = 0 if found else 20
        return self._pulled(code, stored, offset + len(scanned), b"".join(found))

    def _codes(self, group: str, topic: str) -> set[int]:
        """Those of the tags that the group has subscribed to."""
        return {
            code
            for data in self.cluster.members.get(group, {}).values()
            for each in data.subscription_data_set
            if each.topic == topic
            for code in each.code_set
        }

    def _pulled(self, code: int, stored: Stored, next_offset: int, body: bytes = b"") -> Command:
        header = PulledHeader(
            next_begin_offset=next_offset, min_offset=stored.begin, max_offset=stored.end
        )
        return Command(code, headers.write(header), body)

    def _query(self, request: Command) -> Command:
        fields = request.fields
        found = self.progress(fields["consumerGroup"], fields["topic"], int(fields["queueId"]))
        return Command(22, remark="not known") if found is None else self._offset(found)

    def _update(self, request: Command) -> Command:
        fields = request.fields
        key = fields["consumerGroup"], fields["topic"], self.name, int(fields["queueId"])
        self.cluster.offsets[key] = int(fields["commitOffset"])
        return Command(0)

    def _offset(self, offset: int) -> Command:
        return Command(0, {"offset": str(offset)})

    def _heartbeat(self, request: Command) -> Command:
        body = javajson.decode(request.body, HeartbeatBody, "heartbeat")
        for data in body.consumer_data_set:
            self.cluster.members.setdefault(data.group_name, {})[body.client_id] = data
        return Command(0)

    def _unregister(self, request: Command) -> Command:
        group = request.fields.get("consumerGroup") or ""
        self.cluster.members.get(group, {}).pop(request.fields["clientID"], None)
        return Command(0)

    def _members(self, request: Command) -> Command:
        found = self.cluster.members.get(request.fields["consumerGroup"], {})
        # Not sorted: that is for the members to do.
        return Command(0, body=javajson.encode(ConsumerIds(consumer_id_list=list(found)[::-1])))

    def _send_back(self, request: Command) -> Command:
        self.sent_back.append(dict(request.fields))
        return Command(0)

    def _lock(self, request: Command) -> Command:
        body = javajson.decode(request.body, LockBody, "locks")
        locked = [
            each
            for each in body.mq_set
            if self.locks.setdefault((each.topic, each.queue_id), body.client_id) == body.client_id
        ]
        return Command(0, body=javajson.encode(LockedBody(lock_ok_mq_set=locked)))

    def _unlock(self, request: Command) -> Command:
        body = javajson.decode(request.body, LockBody, "locks")
        for each in body.mq_set:
            if self.locks.get((each.topic, each.queue_id)) == body.client_id:
                del self.locks[each.topic, each.queue_id]
        return Command(0)


class Heard:
    """A consumer whose listener notes what it is given, and when."""

    def __init__(
        self,
        cluster: MemoryCluster,
        client: Client,
        *topics: str,
        group: str = "g",
        settings: ConsumerSettings | None = None,
        **more: Any,
    ) -> None:
        self._cluster = cluster
        self.messages: list[Received] = []
        self.times: list[float] = []
        self.before: Callable[[Received], Awaitable[None] | None] = lambda _: None
        """Runs first in the listener; it may wait or raise."""
        self.consumer = Consumer(client=client, group=group, settings=settings or BEGINNING, **more)
        for topic in topics or ("t",):
            self.consumer.on(topic)(self.listen)

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]

    async def listen(self, message: Received) -> None:
        self.messages.append(message)
        self.times.append(round(self._cluster.now_s, 1))
        wait = self.before(message)
        if wait is not None:
            await wait

    async def __aenter__(self) -> Self:
        await self.consumer.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.consumer.close()


async def forever(_: Received) -> None:
    """A listener that hangs."""
    await asyncio.Event().wait()


def subscriptions(heartbeat: Asked, group: str) -> dict[str, SubscriptionData]:
    """What a heartbeat says of one group, by topic."""
    (data,) = [
        each for each in heartbeat.body(HeartbeatBody).consumer_data_set if each.group_name == group
    ]
    return {each.topic: each for each in data.subscription_data_set}


def numbered(begin: int, end: int) -> Sequence[bytes]:
    return [b"%03d" % number for number in range(begin, end)]
