"""Brokers and a name server in memory, as far as a consumer group knows them.

What lasts through a crash of a broker: messages, those that wait for their time, topics, and the
offsets that it wrote to its disk last. What does not: members, locks, pulls that it holds. That is
RocketMQ's way, and the hardest that a client meets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol

from tests.sdk.simulation.wires import End, Wires

from rockgate.protocol.entry import pack_host, pack_properties
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting import properties as names
from rockgate.protocol.remoting.bodies.nameserver import BrokerData, QueueData, RouteData
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.message import encode
from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.results import Queue

NAME_SERVER: Final = "ns:1"
DEAD_PREFIX: Final = "%DLQ%"
REGISTER_S: Final = 30.0
FORGET_S: Final = 120.0
"""Time without a heartbeat after which a name server forgets a broker, and a broker a client."""
DISK_S: Final = 5.0
HOST: Final = pack_host(bytes(4), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One message where it lies. `number` is the same at every try."""

    number: int
    queue: Queue
    offset: int
    position: int
    topic: str
    """The one that it was sent to first."""
    tag: str
    retries: int
    stored_ms: int

    def encoded(self) -> bytes:
        """As a pull's answer has it."""
        properties = {names.TAGS: self.tag, names.UNIQUE_KEY: f"M{self.number}"}
        if self.topic != self.queue.topic:
            properties[names.RETRY_TOPIC] = self.topic
        return encode(
            topic=self.queue.topic.encode(),
            body=b"%d" % self.number,
            properties=pack_properties(properties.items()),
            queue_id=self.queue.id,
            queue_offset=self.offset,
            position=self.position,
            born_ms=self.stored_ms,
            born_host=HOST,
            store_ms=self.stored_ms,
            store_host=HOST,
            reconsume_times=self.retries,
        )


@dataclass(slots=True)
class Log:
    """One queue."""

    stored: list[Stored] = field(default_factory=list)
    begin: int = 0
    """Everything before it was deleted."""

    @property
    def end(self) -> int:
        return len(self.stored)


class Watch(Protocol):
    """Notified of what a group does, as brokers see it."""

    def taken_up(self, queue: Queue, by: str) -> None:
        """A member has asked where to begin."""

    def committed(self, queue: Queue, offset: int, before: int | None, by: str) -> None:
        """A member says how far the group is, and how far it was."""

    def returned(self, message: Stored) -> None:
        """A broker has taken a message back: it comes again, or is a dead letter."""

    def crashed(self, broker: str) -> None:
        """A broker has lost what it does not write to its disk."""


class Cluster:
    """All of it: brokers by name, and what they have in common."""

    def __init__(self, wires: Wires, watch: Watch, seed: int) -> None:
        self.wires = wires
        self.watch = watch
        self.seed = seed
        self.name_server = NameServer(self)
        wires.nodes[NAME_SERVER] = self.name_server
        self.brokers: dict[str, Store] = {}
        self.by_position: dict[int, Stored] = {}

    def now_ms(self) -> int:
        """The clock of all brokers."""
        return 1_700_000_000_000 + round(asyncio.get_running_loop().time() * 1000)

    def log(self, queue: Queue) -> Log:
        """The messages of a queue."""
        return self.brokers[queue.broker].topics[queue.topic][queue.id]

    def queues(self, *prefixes: str) -> list[Queue]:
        """Every queue of the topics whose names begin so."""
        return sorted(
            Queue(topic, name, number)
            for name, broker in self.brokers.items()
            for topic, logs in broker.topics.items()
            if topic.startswith(prefixes)
            for number in range(len(logs))
        )


class Store:
    """What a broker has on its disk, and the routes that it tells of."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.address = f"{name}:1"
        self.random = Random(f"{cluster.seed}/{name}")
        self.topics: dict[str, list[Log]] = {}
        self.offsets: dict[Queue, int] = {}
        self._offsets_on_disk: dict[Queue, int] = {}
        self.is_up = True
        self.is_frozen = False
        self._timers: list[asyncio.TimerHandle] = []
        self.appended: Callable[[Queue], None] = lambda _: None
        cluster.brokers[name] = self
        self._again(REGISTER_S, self.register)
        self._again(DISK_S, self._write_offsets)

    def make(self, topic: str, queue_count: int) -> None:
        """Have a topic, or more queues of it."""
        logs = self.topics.setdefault(topic, [])
        while len(logs) < queue_count:
            logs.append(Log())
        self.register()

    def register(self) -> None:
        """Tell the name server, if both are there."""
        if self.is_up and not self.is_frozen:
            counts = {topic: len(logs) for topic, logs in self.topics.items()}
            self.cluster.name_server.register(self.name, counts)

    def append(self, topic: str, number_of_queue: int, message: Stored) -> Stored:
        """Store a message as the next of a queue."""
        queue = Queue(topic, self.name, number_of_queue)
        log = self.topics[topic][number_of_queue]
        stored = Stored(
            number=message.number,
            queue=queue,
            offset=log.end,
            position=len(self.cluster.by_position) + 1,
            topic=message.topic,
            tag=message.tag,
            retries=message.retries,
            stored_ms=self.cluster.now_ms(),
        )
        log.stored.append(stored)
        self.cluster.by_position[stored.position] = stored
        self.appended(queue)
        return stored

    def return_later(self, message: Stored, group: str, retries: int, seconds: float) -> None:
        """Deliver it once more, from the retry topic; durable from now on."""
        again = Stored(
            number=message.number,
            queue=message.queue,
            offset=0,
            position=0,
            topic=message.topic,
            tag=message.tag,
            retries=retries,
            stored_ms=0,
        )
        self.cluster.watch.returned(message)
        loop = asyncio.get_running_loop()
        loop.call_later(seconds, self._return, f"{RETRY_PREFIX}{group}", again)

    def bury(self, message: Stored, group: str) -> None:
        """Make it a dead letter."""
        topic = f"{DEAD_PREFIX}{group}"
        self.make(topic, 1)
        self.cluster.watch.returned(message)
        self.append(topic, 0, message)

    def roll_back_offsets(self) -> None:
        """A crash: offsets are as they were written last."""
        self.offsets = dict(self._offsets_on_disk)

    def close(self) -> None:
        """No more timers."""
        for timer in self._timers:
            timer.cancel()

    def _return(self, topic: str, message: Stored) -> None:
        if not self.is_up:
            # It waits until the broker is there again.
            asyncio.get_running_loop().call_later(1.0, self._return, topic, message)
            return
        self.make(topic, 1)
        self.append(topic, 0, message)

    def _write_offsets(self) -> None:
        if self.is_up and not self.is_frozen:
            self._offsets_on_disk = dict(self.offsets)

    def _again(self, seconds: float, work: Callable[[], None]) -> None:
        at = len(self._timers)
        loop = asyncio.get_running_loop()

        def due() -> None:
            work()
            self._timers[at] = loop.call_later(seconds, due)

        self._timers.append(loop.call_later(seconds, due))

    def every(self, seconds: float, work: Callable[[], None]) -> None:
        """Have something done from now on, whether it is up or not."""
        self._again(seconds, work)


class NameServer:
    """Where topics are, as brokers have told."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, tuple[dict[str, int], float]] = {}
        self.is_up = True
        self.is_frozen = False

    def register(self, broker: str, counts: dict[str, int]) -> None:
        """A broker says what it has."""
        if self.is_up and not self.is_frozen:
            self._known[broker] = (counts, asyncio.get_running_loop().time())

    def forget(self, broker: str) -> None:
        """The broker's connection is gone."""
        if self.is_up:
            self._known.pop(broker, None)

    def crash(self) -> None:
        """It has lost its state."""
        self.is_up = False
        self._known.clear()
        self._cluster.wires.reset(NAME_SERVER)

    def accepted(self, end: End) -> None:
        """A client has connected."""

    def lost(self, end: End) -> None:
        """A client is gone."""

    def asked(self, end: End, command: Command) -> None:
        """Where is this topic?"""
        now_s = asyncio.get_running_loop().time()
        topic = command.fields.get("topic", "")
        found = {
            name: counts[topic]
            for name, (counts, since_s) in sorted(self._known.items())
            if topic in counts and now_s - since_s < FORGET_S
        }
        if not found:
            end.respond(command, Command(ResponseCode.TOPIC_NOT_EXIST, remark="no such topic"))
            return
        route = RouteData(
            broker_datas=[
                BrokerData(broker_addrs={0: f"{name}:1"}, broker_name=name, cluster="c")
                for name in found
            ],
            queue_datas=[
                QueueData(broker_name=name, perm=6, read_queue_nums=count, write_queue_nums=count)
                for name, count in found.items()
            ],
        )
        end.respond(command, Command(ResponseCode.SUCCESS, body=javajson.encode(route)))
