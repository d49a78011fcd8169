"""One server as one user sees it: its wires, what it offers, and the last hour of its metrics.

A `Peer` connects on first use and again after a loss; nothing here waits for a server longer than
its timeout. Names of topics and groups are remembered for seconds, so that a list of ten thousand
topics is read once and not for each page, row or letter of a search.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from rockgate.cli.admin.connecting import cluster_of, remoting_of
from rockgate.cli.admin.group_status import GroupStatus, status
from rockgate.cli.admin.metrics import Metrics, fetch
from rockgate.cli.client.admin.groups import Listed, list_groups
from rockgate.cli.client.kafka.errors import ClientError
from rockgate.cli.client.remoting import delays
from rockgate.console.session.history import INTERVAL_S, History, sample_of
from rockgate.console.session.lag_history import LagHistory
from rockgate.console.session.topic_history import TopicHistory
from rockgate.sdk.client_config import ClientConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.view import View
    from rockgate.cli.client.remoting.connection import RemotingConnection
    from rockgate.console.settings import Servers

T = TypeVar("T")

CLIENT_ID: Final = "rockgate-console"
REMEMBERED_S: Final = 3.0
"""How long lists of topics and groups are taken for current."""
METRICS_TIMEOUT_S: Final = 4.0
WATCH_S: Final = 15.0
PROBE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Offers:
    """What a server has beyond Kafka's wire; None before it was asked."""

    extras: bool | None = None
    """Delayed messages, half messages, dead letters and the key index."""
    metrics: bool | None = None


class Remembered(Generic[T]):
    """A value that is read again once it is old; many who ask at once wait for one read."""

    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read = read
        self._value: T | None = None
        self._until = 0.0
        self._reading = asyncio.Lock()

    async def get(self) -> T:
        """The value, read again if it is old."""
        async with self._reading:
            if self._value is None or time.monotonic() >= self._until:
                self._value = await self._read()
                self._until = time.monotonic() + REMEMBERED_S
            return self._value

    def forget(self) -> None:
        """Read it again the next time."""
        self._until = 0.0


class Peer:
    """The server of a session. `start` begins to sample it; `close` ends all connections."""

    def __init__(self, servers: Servers, config: ClientConfig, *, timeout_s: float) -> None:
        self.servers = servers
        self.config = config
        self.timeout_s = timeout_s
        self.history = History()
        self.topic_history = TopicHistory()
        self.lag_history = LagHistory()
        self.offers = Offers()
        self.metrics: Metrics | None = None
        """The newest page."""
        self.metrics_error: ClientError | None = None
        self.topics = Remembered(self._topics)
        self.groups = Remembered(self._groups)
        self.cluster = self._cluster()
        self._remoting: RemotingConnection | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Sample metrics and find out what the server offers, until closed."""
        works = (self._sample(), self._probe(), self._watch_lags())
        self._tasks = [asyncio.create_task(each) for each in works]

    async def close(self) -> None:
        """End everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.cluster.__aexit__()
        if self._remoting is not None:
            await self._remoting.__aexit__()

    @asynccontextmanager
    async def own_cluster(self) -> AsyncIterator[Cluster]:
        """Connections for reads that are held by the server: others must not wait behind them."""
        async with self._cluster() as cluster:
            yield cluster

    @property
    def remoting(self) -> RemotingConnection:
        """RocketMQ's listener. One that has failed is given up by `lose_remoting`."""
        if self._remoting is None:
            self._remoting = remoting_of(self.config, self.servers.remoting, self.timeout_s)
        return self._remoting

    async def lose_remoting(self) -> None:
        """Connect to RocketMQ's listener again the next time."""
        lost, self._remoting = self._remoting, None
        if lost is not None:
            await lost.__aexit__()

    async def view(self) -> View:
        """Brokers and topics, not older than a few seconds."""
        return await self.topics.get()

    async def check(self) -> None:
        """Ask Kafka's listener anything; ClientError if it cannot be used as this user."""
        await self.cluster.metadata(())

    async def probe(self) -> Offers:
        """Find out what the server offers now."""
        try:
            await delays.waiting_count(self.remoting)
            extras = True
        except ClientError:
            await self.lose_remoting()
            extras = False
        self.offers = Offers(extras, self.offers.metrics)
        return self.offers

    def changed(self) -> None:
        """Something was created or deleted: read lists again."""
        self.topics.forget()
        self.groups.forget()

    # Private

    def _cluster(self) -> Cluster:
        return cluster_of(
            self.config, self.servers.kafka, timeout_s=self.timeout_s, client_id=CLIENT_ID
        )

    async def _topics(self) -> View:
        return await self.cluster.metadata()

    async def _groups(self) -> list[Listed]:
        return await list_groups(self.cluster)

    async def _sample(self) -> None:
        source = self.servers.source(self.config)
        while source is not None:
            try:
                self.metrics = await fetch(source, METRICS_TIMEOUT_S)
                self.metrics_error = None
                now_ms = int(time.time() * 1000)
                self.history.add(sample_of(self.metrics, now_ms))
                self.topic_history.add(self.metrics, now_ms)
            except ClientError as error:
                self.metrics_error = error
            self.offers = Offers(self.offers.extras, self.metrics_error is None)
            await asyncio.sleep(INTERVAL_S)

    async def lag_of(self, group: str) -> GroupStatus:
        """A group's status now, which becomes part of its history."""
        try:
            found = await status(self.cluster, self.remoting, group)
        finally:
            if self.offers.extras is False:
                await self.lose_remoting()
        lags = {line.place: line.lag for line in found.lines if line.lag is not None}
        self.lag_history.add(group, lags, int(time.time() * 1000))
        return found

    async def _watch_lags(self) -> None:
        """Sample the groups whose pages were visited, also while they are closed."""
        while True:
            await asyncio.sleep(WATCH_S)
            now_ms = int(time.time() * 1000)
            for group in self.lag_history.watched(now_ms):
                if self.lag_history.is_old(group, now_ms - int(WATCH_S * 1000)):
                    with suppress(ClientError):
                        await self.lag_of(group)

    async def _probe(self) -> None:
        while True:
            await self.probe()
            await asyncio.sleep(PROBE_S)
