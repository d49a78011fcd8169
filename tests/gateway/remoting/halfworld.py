"""A world with half messages and connected producers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.gateway.remoting.world import Everybody, FakeCaller, RemotingWorld
from tests.world import CONFIG

from rockgate.gateway.remoting.groups.clients import Client, Clients
from rockgate.gateway.remoting.messages.check_back import CheckBacks
from rockgate.gateway.remoting.messages.halves import Halves
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.transcode.lookup import MessageLookup
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.store.api.append import Draft, Intake
from rockgate.store.api.queues import Queue
from rockgate.store.config import StoreConfig
from rockgate.store.half import MESSAGES, HalfMessages
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics
from rockgate.store.testing.memory_files import MemoryDisk
from rockgate.store.write.append import Appended

SYSTEM = (MESSAGES.decode(), "TRANS_CHECK_MAX_TIME_TOPIC")


class HalfWorld(RemotingWorld):
    """All parts of half messages except the network."""

    def __init__(
        self, disk: MemoryDisk | None = None, store: StoreConfig = CONFIG, **settings: Any
    ) -> None:
        self.remoting = RemotingConfig(**settings)
        super().__init__(store, disk)

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        self.undecided = HalfMessages()
        return [self.undecided]

    def open(self) -> None:
        super().open()
        for name in SYSTEM:
            self.ensure(name)
        self.clients = Clients(Everybody(), 10**9)
        self.halves = Halves(
            topics=self.store.topics,
            queues=self.store.queues,
            reader=self.store.reader,
            appender=self.store.appender,
            halves=self.undecided,
            durability=self.durability,
            place=self.place,
        )
        self.check_backs = CheckBacks(
            halves=self.halves,
            undecided=self.undecided,
            clients=self.clients,
            journal=self.store.appender,
            clock=self.clock,
            config=self.remoting,
            store_host=bytes(8),
        )
        self.lookup = MessageLookup(
            self.store.lookup,
            self.store.reader.high_watermark,
            Transcoder(cache_bytes_max=1 << 20, message_bytes_max=1 << 24),
        )
        self.store.retention.keep(self.undecided)
        self._callers = 0

    def place(self, queue: Queue, draft: Draft) -> list[Intake]:
        """Return where a committed half message goes: to its queue."""
        return [Intake(queue, draft)]

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
        """Send a half message for `orders`; return where it is stored."""
        pairs = {"TRAN_MSG": "true", "PGROUP": group, "UNIQ_KEY": "u1", **properties}
        incoming = self.incoming(body, pairs, queue=queue, producer_group=group, sys_flag=4)
        taken = self.halves.prepare(incoming)
        assert isinstance(taken, Appended)
        return taken

    def settle(self) -> None:
        while self.check_backs.step():
            pass
