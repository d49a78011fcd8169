"""A store in memory with half messages, producers that are connected, and a clock by hand."""

from __future__ import annotations

from tests.store.reading import entries

from rockgate.gateway.net.address import Address
from rockgate.gateway.remoting.groups.clients import Client, Clients
from rockgate.gateway.remoting.messages.check_back import Checking
from rockgate.gateway.remoting.messages.halves import Halves
from rockgate.gateway.remoting.messages.sending import Incoming
from rockgate.gateway.remoting.server.caller import Peer
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.entry import Buffer, pack_properties
from rockgate.protocol.remoting.command import Fields
from rockgate.protocol.remoting.headers.sending import SendHeaderV2
from rockgate.protocol.remoting.message import Message, decode
from rockgate.store.clock import ManualClock
from rockgate.store.config import StoreConfig
from rockgate.store.half.fold import MESSAGES, HalfMessages
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.write.append import Appended

CONFIG = StoreConfig(segment_bytes=1 << 20, populate_ahead_bytes=1 << 16, key_index=False)
SYSTEM = (MESSAGES.decode(), "TRANS_CHECK_MAX_TIME_TOPIC")
SECOND = 1_000


class FakeCaller:
    """A connection that keeps what it is told."""

    def __init__(self, number: int) -> None:
        remote = Address("127.0.0.1", 50_000 + number)
        self.peer = Peer(connection_id=number, local=remote, remote=remote)
        self.is_open = True
        self.told: list[tuple[int, Fields, Message]] = []

    def tell(self, code: int, fields: Fields, body: Buffer = b"") -> None:
        self.told.append((code, fields, decode(body)))

    def ask(self, code: int, fields: Fields, body: Buffer, seconds_max: float) -> object:
        raise AssertionError("nobody is asked")


class _Everybody:
    def take(self, group: str) -> bool:
        return True

    def give_back(self, group: str) -> None:
        pass


class HalfWorld:
    """Everything of half messages but the wire."""

    def __init__(self, disk: MemoryDisk | None = None, **settings: int) -> None:
        self.disk = disk or MemoryDisk()
        self.clock = ManualClock()
        self.config = RemotingConfig(**settings)  # type: ignore[arg-type]
        self.open()

    def open(self) -> None:
        self.undecided = HalfMessages()
        self.store = Store(
            self.disk.root(), CONFIG, self.clock, folds=lambda journal, topics: [self.undecided]
        )
        for name, count in ((SYSTEM[0], 1), (SYSTEM[1], 1), ("orders", 2)):
            if self.store.topics.find(name) is None:
                self.store.topics.create(NewTopic(name=name, queue_count=count))
        self.clients = Clients(_Everybody(), 10**9)
        self.halves = Halves(
            store=self.store, halves=self.undecided, durability=Durability(self.store)
        )
        self.checking = Checking(
            halves=self.halves,
            undecided=self.undecided,
            clients=self.clients,
            journal=self.store.appender,
            clock=self.clock,
            config=self.config,
            store_host=bytes(8),
        )
        self.store.retention.keep(self.undecided)
        self._callers = 0

    def kill(self) -> None:
        """Die, and start again with what the page cache has."""
        self.disk = self.disk.killed()
        self.open()

    def producer(self, group: str = "payers") -> FakeCaller:
        """Connect a producer of a group."""
        self._callers += 1
        caller = FakeCaller(self._callers)
        client = Client(f"client-{self._callers}", caller, "JAVA", 513, 0)  # type: ignore[arg-type]
        self.clients.produce(group, client)
        return caller

    def prepare(
        self,
        body: bytes = b"half",
        *,
        group: str = "payers",
        queue: int = 0,
        **properties: str,
    ) -> Appended:
        """Send a half message for `orders`; where it lies."""
        topic = self.store.topics.get("orders")
        pairs = {"TRAN_MSG": "true", "PGROUP": group, "UNIQ_KEY": "u1", **properties}
        header = SendHeaderV2(
            producer_group=group,
            topic="orders",
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue,
            sys_flag=4,
            born_timestamp=5,
            flag=9,
        )
        incoming = Incoming(
            topic,
            self.store.queue(topic, queue),
            header,
            body,
            pack_properties(pairs.items()),
            FakeCaller(0),  # type: ignore[arg-type]
        )
        taken = self.halves.prepare(incoming)
        assert isinstance(taken, Appended)
        return taken

    def delivered(self, topic: str = "orders", queue: int = 0) -> list[Message]:
        """What consumers of a queue are shown."""
        found = self.store.queue(self.store.topics.get(topic), queue)
        return [decode(each.entry) for each in entries(self.store, found, 0, 1 << 24)]

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass, and do what is due."""
        self.clock.advance(milliseconds)
        while self.checking.step():
            pass
