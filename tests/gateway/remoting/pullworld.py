"""A world in which a client pulls, without the network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from tests.gateway.fakes import HandClock, turns
from tests.gateway.remoting.world import Everybody, FakeCaller, RemotingWorld

from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.groups.forbidden import ForbiddenReads
from rockgate.gateway.remoting.groups.offsets import ConsumerOffsets, Resets
from rockgate.gateway.remoting.groups.settings import GroupSettings
from rockgate.gateway.remoting.messages.long_polls import LongPolls
from rockgate.gateway.remoting.messages.puller import Puller
from rockgate.gateway.remoting.processors.pull import Pulls
from rockgate.gateway.remoting.server.dispatch import Dispatcher
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics


class PullWorld(RemotingWorld):
    """One topic, and one client that pulls from it."""

    def __init__(
        self, *, suspend_ms_max: int = 60_000, now: Callable[[], float] = perf_counter
    ) -> None:
        self.hand = HandClock()
        self._suspend_ms_max, self._now = suspend_ms_max, now
        self._client = Connection()
        super().__init__()

    def make_folds(self, journal: Journal, topics: Topics) -> Sequence[Fold]:
        self.settings = GroupSettings(journal)
        self.forbidden = ForbiddenReads(journal)
        return [self.settings.fold, self.forbidden.fold]

    def open(self) -> None:
        super().open()
        self.poll_registry = PollRegistry(self.hand)
        self.store.attach(
            on_append=self.poll_registry.wake, on_flushed=self.poll_registry.wake_flushed
        )
        self.poll_registry.follow(self.store.topics, self.store.queues)
        self.puller = Puller(
            reader=self.store.reader,
            cold_reads=ColdReads(self.store.residency, self.store.log),
            stable_offsets=StableOffsets(self.store.topics),
            transcoder=Transcoder(cache_bytes_max=1 << 20, message_bytes_max=1 << 24),
            now=self._now,
        )
        self.pulls = Pulls(
            puller=self.puller,
            topics=self.book,
            queues=self.store.queues,
            clients=Clients(Everybody(), 10**9),
            settings=self.settings,
            forbidden=self.forbidden,
            offsets=ConsumerOffsets(
                self.store.progress, Everybody(), Resets(self.poll_registry.wake_changed)
            ),
            poll_registry=self.poll_registry,
            count_max=32,
            size_max=1 << 20,
            suspend_ms_max=self._suspend_ms_max,
            polls=LongPolls(connection_max=100, bytes_max=1 << 20),
        )
        self._dispatcher = Dispatcher({RequestCode.PULL_MESSAGE: self.pulls.pull})

    def put(self, body: bytes, tag: str | None = None) -> None:
        """Store a message."""
        self.message(body=body, properties={} if tag is None else {"TAGS": tag})

    async def begin(self, offset: int, **more: Any) -> asyncio.Future[Command]:
        """Send a pull; return its response, which is immediate unless the pull is held."""
        told = self.send(offset, **more)
        await turns()
        return told

    def send(self, offset: int, **more: Any) -> asyncio.Future[Command]:
        """Send a pull, and let nothing happen after it."""
        fields = {
            "consumerGroup": "group",
            "topic": "orders",
            "queueId": 0,
            "queueOffset": offset,
            "maxMsgNums": 32,
            "sysFlag": 4,
            "commitOffset": 0,
            "suspendTimeoutMillis": 0,
            "subscription": "*",
            "subVersion": 0,
            "expressionType": "TAG",
            **more,
        }
        texts = {name: str(value) for name, value in fields.items()}
        opaque = self._client.request(11, texts)
        self._client.data_to_send()
        request = Command(11, texts, opaque=opaque)
        told: asyncio.Future[Command] = asyncio.get_running_loop().create_future()

        def answered(frame: list[Any]) -> None:
            [command] = self._client.receive_data(b"".join(map(bytes, frame)))
            told.set_result(command)

        outcome = self._dispatcher.dispatch(request, FakeCaller(1))  # type: ignore[arg-type]
        if isinstance(outcome, list):
            answered(outcome)
        else:
            outcome.add_done_callback(lambda done: answered(done.result()))
        return told
