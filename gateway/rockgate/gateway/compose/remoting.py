"""Assembles the RocketMQ listeners: the broker's and the name server's.

The app makes the folds with the store, then the listeners; a stop takes the listeners down first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.metrics.remoting import BrokerSource, RequestSource
from rockgate.gateway.compose.remoting_table import Families, table
from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.groups.ownership import GroupOwnership
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.net.listener import Listener
from rockgate.gateway.remoting.admin.dead_letters import DeadLetterAdmin, KnownGroups
from rockgate.gateway.remoting.admin.delays import DelayAdmin
from rockgate.gateway.remoting.admin.empty_offsets import EmptyOffsetsAdmin
from rockgate.gateway.remoting.admin.halves import HalfAdmin
from rockgate.gateway.remoting.admin.resent import Resent
from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.groups.locks import Locks
from rockgate.gateway.remoting.groups.offsets import ConsumerOffsets, Resets
from rockgate.gateway.remoting.groups.settings import GroupSettings
from rockgate.gateway.remoting.messages.check_back import Checking
from rockgate.gateway.remoting.messages.delay import Delays
from rockgate.gateway.remoting.messages.halves import Halves
from rockgate.gateway.remoting.messages.long_polls import LongPolls
from rockgate.gateway.remoting.messages.puller import Puller
from rockgate.gateway.remoting.messages.retry import Retries
from rockgate.gateway.remoting.messages.sender import MessageKind, Sender
from rockgate.gateway.remoting.nameserver import processors as nameserver
from rockgate.gateway.remoting.nameserver.kv import KeyValues
from rockgate.gateway.remoting.nameserver.routes import Local, Routes
from rockgate.gateway.remoting.processors.admin import OperatorRequests
from rockgate.gateway.remoting.processors.broker import BrokerRequests
from rockgate.gateway.remoting.processors.clients import ClientRequests
from rockgate.gateway.remoting.processors.delays import DelayRequests
from rockgate.gateway.remoting.processors.groups import GroupRequests
from rockgate.gateway.remoting.processors.halves import HalfRequests
from rockgate.gateway.remoting.processors.locks import LockRequests
from rockgate.gateway.remoting.processors.offsets import OffsetRequests
from rockgate.gateway.remoting.processors.pull import Pulls
from rockgate.gateway.remoting.processors.query import Queries
from rockgate.gateway.remoting.processors.send import Sends
from rockgate.gateway.remoting.processors.send_back import RetryRequests
from rockgate.gateway.remoting.processors.topics import TopicRequests
from rockgate.gateway.remoting.server.dispatch import Dispatcher
from rockgate.gateway.remoting.server.listener import RemotingConnections
from rockgate.gateway.remoting.server.periodic import now_and_then
from rockgate.gateway.remoting.topics.local_broker import LocalBroker
from rockgate.gateway.remoting.topics.registration import Registrar
from rockgate.gateway.remoting.topics.topic_registry import TopicBook
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.storage.long_poll import Waiting
from rockgate.gateway.telemetry.telemetry import Telemetry
from rockgate.gateway.transcode.lookup import MessageLookup
from rockgate.gateway.transcode.transcoder import Transcoder
from rockgate.gateway.visibility.aborted import AbortedBatches
from rockgate.gateway.visibility.empty_offsets import EmptyOffsets
from rockgate.gateway.visibility.stable_offsets import Unstable
from rockgate.store.clock import Clock
from rockgate.store.errors import StoreFull
from rockgate.store.half.fold import HalfMessages
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.store import Store

log = logging.getLogger(__name__)

HEADER_ROOM = 64 * 1024


@dataclass(frozen=True, slots=True)
class RemotingFolds:
    """What RocketMQ's listener knows by the log. Made with the store, which feeds it."""

    settings: GroupSettings
    halves: HalfMessages
    resent: Resent

    @classmethod
    def make(cls, journal: Journal) -> RemotingFolds:
        """Make them empty; the store restores them."""
        return cls(GroupSettings(journal), HalfMessages(), Resent(journal))

    def all(self) -> list[Fold]:
        """All of them, in the order that a snapshot has."""
        return [self.settings.fold, self.halves, self.resent.fold]


class RemotingAssembly:
    """What the broker listener is built from. The app makes one and calls `open` once."""

    def __init__(
        self,
        *,
        config: Config,
        store: Store,
        folds: RemotingFolds,
        groups: Groups,
        unstable: Unstable,
        empty: EmptyOffsets,
        waiting: Waiting,
        durability: Durability,
        store_host: bytes,
        threads: BatchThreads,
    ) -> None:
        self._config = config
        self._store = store
        self._empties = EmptyOffsetsAdmin(store.queues, empty)
        self._waiting = waiting
        self._store_host = store_host
        remoting = config.remoting
        self.topics = _book(store, config)
        tenancy = GroupOwnership(groups)
        call_soon = asyncio.get_running_loop().call_soon
        self.clients = Clients(tenancy, remoting.client_expiry_ms, call_soon)
        self._folds = folds
        self._known = KnownGroups(store, self.clients, folds.settings, groups)
        resets = Resets(waiting.wake_changed)
        self.clients.on_emptied.append(resets.forget)
        self.offsets = ConsumerOffsets(store.progress, tenancy, resets)
        self.transcoder = Transcoder(
            cache_bytes_max=remoting.batch_cache_bytes_max,
            message_bytes_max=remoting.frame_bytes_max - HEADER_ROOM,
            is_aborted=AbortedBatches(store.topics, unstable),
            threads=threads,
        )
        self.puller = Puller(store=store, unstable=unstable, transcoder=self.transcoder)
        self.lookup = MessageLookup(store.lookup, self.puller.end, self.transcoder)
        self.durability = durability
        self.sender = Sender(
            appender=store.appender,
            queues=store.queues,
            topics=self.topics,
            durability=self.durability,
            body_bytes_max=remoting.message_bytes_max,
            asks=self.clients.asks,
        )
        self.locks = Locks(remoting.lock_expiry_ms)
        self.polls = LongPolls(remoting.waiting_pulls_max, remoting.waiting_bytes_max)
        self.delays = Delays(
            store=store,
            durability=self.durability,
            levels_ms=read_levels(remoting.delay_levels),
            delay_ms_max=remoting.delay_ms_max,
        )
        self.sender.on_kind[MessageKind.DELAYED] = self.delays.take
        self.halves = Halves(
            store=store, halves=folds.halves, durability=durability, place=self.delays.place
        )
        self.sender.on_kind[MessageKind.HALF] = self.halves.prepare
        self.retries = Retries(
            topics=self.topics,
            queues=store.queues,
            settings=folds.settings,
            clock=store.clock,
            append=self.delays.append,
            is_ordered=lambda group: self.locks.is_held(group, store.clock.monotonic_ms()),
        )
        self.sender.on_kind[MessageKind.RETRY] = self.retries.take
        self.checking = self._make_checking(folds.halves)
        store.retention.keep(folds.halves)

    def _make_checking(self, undecided: HalfMessages) -> Checking:
        return Checking(
            halves=self.halves,
            undecided=undecided,
            clients=self.clients,
            journal=self._store.appender,
            clock=self._store.clock,
            config=self._config.remoting,
            store_host=self._store_host,
        )

    async def open(
        self, resources: AsyncExitStack, listener: Listener, telemetry: Telemetry
    ) -> LocalBroker:
        """Make the processors and listen; `resources` drains and closes the listener again."""
        config, loop, known = self._config.remoting, asyncio.get_running_loop(), self._known
        if not listener.address.is_closed:
            try:
                self.topics.make_system_topics()
            except StoreFull as error:
                # Those that are there go on; the next start makes the others.
                log.error("cannot create RocketMQ system topics: %s", error)
        store, resent = self._store, self._folds.resent
        dead_letters = DeadLetterAdmin(
            store=store, resent=resent, transcoder=self.transcoder, end=self.puller.end, knows=known
        )
        families = self._families(str(config.advertise or listener.address), dead_letters)
        dispatcher = Dispatcher(table(families))
        connections = RemotingConnections(config, dispatcher, loop)
        connections.on_lost.append(self.clients.lost)
        if not listener.address.is_closed:
            telemetry.sources += [
                RequestSource("broker", dispatcher.stats, connections),
                self._source(dead_letters),
            ]
        resources.push_async_callback(connections.drain, self._config.server.drain_ms_max / 1000)
        resources.callback(self._waiting.finish)
        resources.callback(listener.close)
        await listener.listen(connections.session, backlog=config.backlog)
        if not listener.address.is_closed:
            registrar = Registrar(
                topics=self._store.topics,
                book=self.topics,
                broker_name=config.broker_name,
                address=str(config.advertise or listener.address),
            )
            registrar.start(config.name_server_list())
            resources.push_async_callback(registrar.stop)
        return LocalBroker(
            self.topics,
            broker_name=config.broker_name,
            advertised=config.advertise,
            bound=listener.address,
        )

    def upkeep(self) -> dict[str, Callable[[], bool]]:
        """Ask about half messages, and look for silent clients and locks now and then."""
        clock = self._store.clock
        return {
            "clients": now_and_then(clock, self.clients.expire),
            "locks": now_and_then(clock, self.locks.expire),
            "checks": self.checking.step,
        }

    def _source(self, dead_letters: DeadLetterAdmin) -> BrokerSource:
        return BrokerSource(
            clients=self.clients,
            puller=self.puller,
            transcoder=self.transcoder,
            halves=self.halves,
            checking=self.checking,
            retries=self.retries,
            dead_letters=dead_letters,
        )

    def _families(self, address: str, dead_letters: DeadLetterAdmin) -> Families:
        config, store, name = self._config.remoting, self._store, self._config.remoting.broker_name
        topics, clients, puller = self.topics, self.clients, self.puller
        return Families(
            sends=Sends(
                sender=self.sender,
                clients=clients,
                clock=store.clock,
                store_host=self._store_host,
                address=address,
                broker_name=name,
            ),
            halves=HalfRequests(halves=self.halves, durability=self.durability),
            delays=DelayRequests(delays=self.delays, durability=self.durability),
            retries=RetryRequests(retries=self.retries, lookup=self.lookup),
            pulls=Pulls(
                puller=puller,
                topics=topics,
                queues=store.queues,
                clients=clients,
                settings=self._folds.settings,
                offsets=self.offsets,
                waiting=self._waiting,
                count_max=config.pull_messages_max,
                size_max=min(config.pull_bytes_max, config.frame_bytes_max - HEADER_ROOM),
                suspend_ms_max=config.suspend_ms_max,
                polls=self.polls,
            ),
            offsets=OffsetRequests(
                lookup=store.topics,
                queues=store.queues,
                progress=store.progress,
                topics=topics,
                puller=puller,
                offsets=self.offsets,
                clients=clients,
                durability=self.durability,
                broker_name=name,
                address=address,
            ),
            clients=ClientRequests(
                clients=clients,
                settings=self._folds.settings,
                topics=topics,
                lookup=self.lookup,
                clock=store.clock,
                broker_name=name,
            ),
            locks=LockRequests(self.locks, store.clock),
            topics=TopicRequests(
                store=store,
                topics=topics,
                clients=clients,
                puller=puller,
                durability=self.durability,
                broker_name=name,
            ),
            groups=GroupRequests(
                settings=self._folds.settings,
                clients=clients,
                progress=store.progress,
                topics=store.topics,
                durability=self.durability,
            ),
            queries=self._queries(),
            broker=BrokerRequests(store=store, config=config, address=address),
            operators=self._operators(dead_letters),
        )

    def _queries(self) -> Queries:
        return Queries(
            topics=self.topics,
            lookup=self.lookup,
            queues=self._store.queues,
            reader=self._store.reader,
            puller=self.puller,
            clients=self.clients,
        )

    def _operators(self, dead_letters: DeadLetterAdmin) -> OperatorRequests:
        halves = HalfAdmin(
            store=self._store,
            undecided=self.halves.undecided,
            halves=self.halves,
            checking=self.checking,
            clients=self.clients,
        )
        return OperatorRequests(
            delays=DelayAdmin(self._store, self.puller.is_shown, self.transcoder.threads),
            halves=halves,
            dead_letters=dead_letters,
            empty=self._empties.count,
            durability=self.durability,
        )


def _book(store: Store, config: Config) -> TopicBook:
    names = config.remoting
    return TopicBook(
        store.topics,
        config.topics,
        broker_name=names.broker_name,
        cluster_name=names.cluster_name,
    )


class NameServerAssembly:
    """The name server: beside a broker, or alone."""

    def __init__(
        self,
        *,
        config: Config,
        folder: Path,
        clock: Clock,
        local: Local | None = None,
        is_alone: bool = False,
    ) -> None:
        self._config = config
        self._clock = clock
        self._is_alone = is_alone
        self.routes = Routes(
            local,
            config.namesrv.broker_expiry_ms,
            shares_topics=config.namesrv.accept_brokers,
        )
        self._kv = KeyValues(folder)

    async def open(
        self, resources: AsyncExitStack, listener: Listener, telemetry: Telemetry
    ) -> None:
        """Listen; `resources` drains and closes the listener again."""
        config = self._config.namesrv
        requests = nameserver.NameServerRequests(
            routes=self.routes,
            kv=self._kv,
            clock=self._clock,
            accept_brokers=self._is_alone or config.accept_brokers,
            accept_values=self._is_alone or config.accept_values,
        )
        dispatcher = Dispatcher(nameserver.table(requests))
        connections = RemotingConnections(
            self._config.remoting, dispatcher, asyncio.get_running_loop()
        )
        connections.on_lost.append(self.routes.lost)
        if not listener.address.is_closed:
            telemetry.sources.append(RequestSource("namesrv", dispatcher.stats, connections))
        resources.push_async_callback(connections.drain, self._config.server.drain_ms_max / 1000)
        resources.callback(listener.close)
        await listener.listen(connections.session, backlog=self._config.remoting.backlog)

    def upkeep(self) -> dict[str, Callable[[], bool]]:
        """Forget brokers that were silent for too long."""
        return {"brokers": now_and_then(self._clock, self.routes.expire)}
