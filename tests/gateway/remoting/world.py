"""A world with the parts of RocketMQ's processors: topics, senders, and a caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.world import World

from rockgate.gateway.net.address import Address
from rockgate.gateway.remoting.messages.delay import Delays
from rockgate.gateway.remoting.messages.sender import Incoming
from rockgate.gateway.remoting.server.caller import Peer
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry
from rockgate.gateway.security.principal import Principal
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.protocol.entry import Buffer, pack_properties
from rockgate.protocol.remoting.command import Fields
from rockgate.protocol.remoting.headers.send import SendHeaderV2
from rockgate.protocol.remoting.message import Message, decode
from rockgate.store.store import Store


class FakeCaller:
    """A connection that records what it receives."""

    def __init__(self, number: int) -> None:
        remote = Address("127.0.0.1", 50_000 + number)
        self.peer = Peer(connection_id=number, local=remote, remote=remote)
        self.is_open = True
        self.told: list[tuple[int, Fields, Message]] = []

    def enter(self, principal: Principal) -> bool:
        return True

    def send_oneway(self, code: int, fields: Fields, body: Buffer = b"") -> None:
        self.told.append((code, fields, decode(body)))

    def ask(self, code: int, fields: Fields, body: Buffer, seconds_max: float) -> object:
        raise AssertionError("nobody is asked")


def make_delays(
    store: Store, *, durability: Durability, levels_ms: Sequence[int], delay_ms_max: int
) -> Delays:
    """Make the parts that accept and deliver delayed messages of a store."""
    delays = Delays(
        topics=store.topics,
        queues=store.queues,
        reader=store.reader,
        lookup=store.lookup,
        appender=store.appender,
        schedule=store.delay,
        deliveries=store.deliveries,
        durability=durability,
        levels_ms=levels_ms,
        delay_ms_max=delay_ms_max,
    )
    store.attach(redeliver=delays.redeliver)
    return delays


class Everybody:
    """All groups belong to RocketMQ."""

    def take(self, group: str) -> bool:
        return True

    def give_back(self, group: str) -> None:
        pass

    def is_foreign(self, group: str) -> bool:
        return False


class Noting(Durability):
    """Records what is waited for, and waits for nothing."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.waited: list[int] = []

    def after(self, position: int, answer: Any) -> Any:
        self.waited.append(position)
        return answer


class RemotingWorld(World):
    """A store with the topic `orders`, of two queues."""

    def open(self) -> None:
        super().open()
        self.durability = self.make_durability()
        self.book = TopicRegistry(
            self.store.topics, TopicsConfig(), broker_name="here", cluster_name="us"
        )
        self.ensure("orders", 2)

    def make_durability(self) -> Durability:
        return Durability(self.store)

    def delivered(self, topic: str = "orders", queue: int = 0) -> list[Message]:
        """The messages that consumers of a queue see."""
        return [decode(each.entry) for each in self.entries(topic, queue)]

    def incoming(
        self, body: bytes, properties: Mapping[str, str], *, queue: int = 0, **header: Any
    ) -> Incoming:
        """A send to `orders`, after its queue was resolved."""
        return Incoming(
            self.store.topics.get("orders"),
            self.queue("orders", queue),
            send_header(queue_id=queue, **header),
            body,
            pack_properties(properties.items()),
            FakeCaller(0),  # type: ignore[arg-type]
        )


class NotingWorld(RemotingWorld):
    """A world that never waits for the disk; mix it in before another."""

    noting: Noting

    def make_durability(self) -> Durability:
        self.noting = Noting(self.store)
        return self.noting


def send_header(**changes: Any) -> SendHeaderV2:
    """The header of a client's send to `orders`."""
    said = {
        "producer_group": "payers",
        "topic": "orders",
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": 5,
        "flag": 9,
    }
    return SendHeaderV2(**{**said, **changes})
