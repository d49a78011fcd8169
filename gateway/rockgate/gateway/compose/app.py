"""The composition root: constructs the whole server, listener by listener, and shuts it down.

Startup checks that the data directory is free, binds every listener, opens the store, loads the
identity, starts listening, and logs `ready`. Shutdown is the reverse: listeners close first,
requests in flight finish, then the store is flushed and closed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compaction.bodies import EntryBodies
from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.config.renamed import warn_of_renamed
from rockgate.gateway.compose.folds import ServerFolds
from rockgate.gateway.compose.http import page_access
from rockgate.gateway.compose.kafka.assembly import KafkaAssembly, permissions_of
from rockgate.gateway.compose.listeners import ServerListeners, authenticates, endpoints_of, ready
from rockgate.gateway.compose.metrics.batches import BatchSource
from rockgate.gateway.compose.metrics.store import StoreSource, UpkeepSource
from rockgate.gateway.compose.nameserver.assembly import NameServerAssembly
from rockgate.gateway.compose.remoting.access import RemotingAccess
from rockgate.gateway.compose.remoting.assembly import RemotingAssembly
from rockgate.gateway.compose.remoting.services import Load, RemotingServices
from rockgate.gateway.compose.replication import (
    ReplicationAssembly,
    as_standby,
    is_standby,
    mend,
    prepare,
    with_ports,
)
from rockgate.gateway.compose.security import SecurityAssembly, SecurityFolds
from rockgate.gateway.compose.storage import Ticking, close_store, open_store, posting
from rockgate.gateway.delay.delivery_timer import Delivering
from rockgate.gateway.http.pages import pages
from rockgate.gateway.http.session import HttpConnections
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.net.listening.listeners import Listeners
from rockgate.gateway.remoting.topics.local_broker import store_host
from rockgate.gateway.runtime import logs
from rockgate.gateway.runtime.datadir import refuse_if_in_use
from rockgate.gateway.runtime.identity import Identity, identify
from rockgate.gateway.runtime.malloc_trim import Trimming, TrimmingThread
from rockgate.gateway.runtime.stop_signal import Stop
from rockgate.gateway.runtime.tuning import Freezer, tune_allocator, tune_collector, tune_threads
from rockgate.gateway.security.tls.acceptor import HANDSHAKES_MAX
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.storage.stalls import Stalls
from rockgate.gateway.telemetry.loop import LoopWatch
from rockgate.gateway.telemetry.process import ProcessSource
from rockgate.gateway.telemetry.telemetry import Telemetry
from rockgate.gateway.transcode.keys import RecordKeys
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.store.api.queues import Queue
from rockgate.store.clock import Clock
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics
from rockgate.store.store import Store
from rockgate.store.upkeep.steps import Steps

HTTP_BACKLOG = 64
OWN_FILES = 256
"""Descriptors reserved for the log's files and the listeners themselves."""
KEYS_SECONDS = 0.01
"""How long keys of single messages are held, so that many are indexed together."""
log = logging.getLogger(__name__)


def run(
    config: Config, given: Collection[str] = (), deprecated: Mapping[str, str] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT; StartError if the server cannot start.

    `given` names the settings that were given a value, `deprecated` the old names used for them.
    """
    logs.set_up(config.server.log_level)
    warn_of_renamed(deprecated or {}, log)
    _raise_file_limit()
    tune_allocator()
    tune_threads()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, given))


async def _serve(config: Config, given: Collection[str]) -> None:
    """Serve until the signal; a standby whose log has to be mended starts again after that."""
    asked = asyncio.create_task(Stop().asked())
    is_ready = False
    while not asked.done():
        async with AsyncExitStack() as resources:
            server = Server(config, given)
            if not await _prepared(server, asked):
                break
            await server.start(resources)
            if not is_ready:
                sys.stdout.write(server.ready_line() + "\n")
                sys.stdout.flush()
            is_ready, config = True, with_ports(config, server.addresses)
            outcome = server.replication.outcome
            waited: list[asyncio.Future[Any]] = [asked] if outcome is None else [asked, outcome]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                log.info("stopping signal=%s", asked.result())
            server.phase = "stopping"
        if outcome is not None and outcome.done():
            await mend(config, server.data_dir, outcome.result())
    log.info("stopped")


async def _prepared(server: Server, asked: asyncio.Task[str]) -> bool:
    """Wait until the store may be opened; False if the signal came before."""
    preparing = asyncio.create_task(server.prepare())
    await asyncio.wait([preparing, asked], return_when=asyncio.FIRST_COMPLETED)
    if preparing.done():
        preparing.result()
        return True
    preparing.cancel()
    await asyncio.wait([preparing])
    return False


def _keep_up(
    resources: AsyncExitStack, store: Store, upkeep: dict[str, Callable[[], bool]]
) -> UpkeepSource:
    """Start the periodic work, and return the metrics source for its failures."""
    steps, loop = Steps(store.clock), asyncio.get_running_loop()
    for name, step in upkeep.items():
        steps.add(name, step)
    resources.callback(Ticking(lambda: store.upkeep() | steps.run(), loop).stop)
    delivering = Delivering(store.deliveries, store.delay, loop)
    store.attach(on_sooner=delivering.sooner)
    resources.callback(delivering.stop)
    return UpkeepSource(store.steps, steps, delivering)


def _attach(store: Store, wake: Callable[[], None] | None) -> tuple[PollRegistry, Stalls]:
    """Make what the store notifies, and attach it; `wake` is called after appends, too."""
    poll_registry, stalls = PollRegistry(), Stalls(store.clock)

    def woken(queue: Queue) -> None:
        poll_registry.wake(queue)
        assert wake is not None, "or this is not attached"
        wake()

    store.attach(
        on_append=poll_registry.wake if wake is None else woken,
        on_flushed=poll_registry.wake_flushed,
        on_stalled=stalls.stalled,
    )
    poll_registry.follow(store.topics, store.queues)
    return poll_registry, stalls


class Server:
    """All parts of one process. `phase` is starting, ready or stopping."""

    def __init__(self, config: Config, given: Collection[str] = ()) -> None:
        self._given = given
        config = as_standby(config)
        self.config = fitted(config, resource.getrlimit(resource.RLIMIT_NOFILE)[0], given)
        self.data_dir = config.server.data_dir.absolute()
        self.phase = "starting"
        self.endpoints: Sequence[Endpoint] = ()
        self._failing: Callable[[], str] = lambda: ""

    async def prepare(self) -> None:
        """Wait until the data directory may be opened: a new standby needs its primary for it."""
        refuse_if_in_use(self.data_dir)
        await prepare(self.config, self.data_dir)

    async def start(self, resources: AsyncExitStack) -> None:
        """Start everything; `resources` shuts it down again, however far the start came."""
        config, data_dir = self.config, self.data_dir
        log.info("starting pid=%d data_dir=%s", os.getpid(), data_dir)
        listeners = ServerListeners.bind(resources, config, self._given)
        self.endpoints, self._identity = listeners.endpoints(), listeners.identity

        watch = LoopWatch(asyncio.get_running_loop())
        resources.callback(watch.stop)
        telemetry = Telemetry()
        telemetry.sources.append(ProcessSource(watch, time.time()))
        http = await self._open_http(resources, listeners.http, telemetry)

        host = await store_host(listeners.remoting.first)
        threads = BatchThreads(config.batches)
        resources.callback(threads.close)
        store, folds = await self._open(resources, data_dir, host, threads)
        http.access = page_access(config, self.security)
        identity = identify(data_dir, config.server.node_id)
        log.info("opened node_id=%d cluster_id=%s", identity.node_id, identity.cluster_id)
        replication = await self._replicate(resources, identity, store)
        self._failing = lambda: str(store.syncs.failure or "")
        poll_registry, stalls = _attach(store, replication.wake)
        telemetry.sources += [StoreSource(store, stalls), BatchSource(threads), replication]
        durability, cold_reads = Durability(store), ColdReads(store.residency, store.log)
        kafka = KafkaAssembly(
            config=config,
            given=self._given,
            identity=identity,
            store=store,
            security=self.security,
            permissions=permissions_of(self.security),
            folds=folds.kafka,
            poll_registry=poll_registry,
            durability=durability,
            cold_reads=cold_reads,
            telemetry=telemetry,
            threads=threads,
            stalls=stalls,
        )
        groups = kafka.make_groups(resources)
        services = RemotingServices(
            config=config,
            store=store,
            folds=folds.remoting,
            groups=groups,
            stable_offsets=folds.kafka.stable_offsets,
            empty=folds.kafka.empty,
            poll_registry=poll_registry,
            durability=durability,
            cold_reads=cold_reads,
            store_host=host,
            threads=threads,
            load=Load(produces=kafka.stats.of(ApiKey.PRODUCE), loop=watch, stalls=stalls),
        )
        remoting, namesrv = await self._open_rocketmq(
            resources, services, listeners, telemetry, stalls
        )
        upkeep = namesrv.upkeep() | self.security.upkeep() | listeners.upkeep(store.clock)
        if not is_standby(config):
            upkeep |= kafka.upkeep() | remoting.upkeep()
        telemetry.sources.append(_keep_up(resources, store, upkeep))
        await kafka.open(
            resources, listeners.kafka, groups, config.kafka.connections_max, self.security
        )
        store.topics.on_created.append(Freezer(lambda: len(store.topics)).made)
        tune_collector()
        resources.callback(TrimmingThread(Trimming()).stop)
        self.phase = "ready"

    async def _open_http(
        self, resources: AsyncExitStack, listener: Listeners, telemetry: Telemetry
    ) -> HttpConnections:
        """Serve pages from the beginning: they report the progress of the start."""
        http = HttpConnections(self.config.http, pages(self.standing, telemetry.page))
        resources.callback(http.close)
        await listener.listen(http.session, backlog=HTTP_BACKLOG)
        return http

    async def _open_rocketmq(
        self,
        resources: AsyncExitStack,
        services: RemotingServices,
        listeners: ServerListeners,
        telemetry: Telemetry,
        stalls: Stalls,
    ) -> tuple[RemotingAssembly, NameServerAssembly]:
        """Open the broker's listeners, then those of the name server, which has its routes."""
        config, access = self.config, RemotingAccess(self.security, self.security.failures)
        remoting = RemotingAssembly(services, config=config, stalls=stalls, access=access)
        local = await remoting.open(resources, listeners.remoting, telemetry)
        namesrv = NameServerAssembly(
            config=config,
            folder=config.server.data_dir.absolute(),
            clock=services.store.clock,
            local=None if listeners.remoting.first.address.is_closed else local,
            guard=access.guard("namesrv", listeners.namesrv.endpoints),
            identify=self.security.identity.principal,
            audit=self.security.audit,
        )
        await namesrv.open(resources, listeners.namesrv, telemetry)
        return remoting, namesrv

    async def _open(
        self, resources: AsyncExitStack, data_dir: Path, host: bytes, threads: BatchThreads
    ) -> tuple[Store, ServerFolds]:
        """Open the store with the folds of every listener, and make what they ask of clients."""
        made: list[ServerFolds] = []

        def folds(journal: Journal, topics: Topics) -> list[Fold]:
            made.append(ServerFolds.make(journal, topics))
            return made[0].all()

        given = (data_dir, self.config.store, folds, RecordKeys(threads), host)
        store = await open_store(*given, is_standby=is_standby(self.config))
        resources.callback(close_store, store)
        loop = asyncio.get_running_loop()
        store.start(posting(loop))
        bodies = EntryBodies(store.reader, made[0].kafka.stable_offsets)
        store.attach(keys_later=partial(loop.call_later, KEYS_SECONDS), bodies=bodies)
        self.security = self._secure(resources, data_dir, made[0].security, store.clock)
        return store, made[0]

    async def _replicate(
        self, resources: AsyncExitStack, identity: Identity, store: Store
    ) -> ReplicationAssembly:
        """Listen for standbys, or follow a primary; most servers do neither."""
        self.replication = ReplicationAssembly(self.config.replication, identity, store)
        await self.replication.open(resources)
        self.endpoints = [*self.endpoints, *self.replication.endpoints]
        return self.replication

    def _secure(
        self, resources: AsyncExitStack, data_dir: Path, folds: SecurityFolds, clock: Clock
    ) -> SecurityAssembly:
        """Make what listeners ask about their clients."""
        return SecurityAssembly(
            config=self.config.security,
            folds=folds,
            data_dir=data_dir,
            identity=self._identity,
            is_authenticating=any(authenticates(each, self.config.tls) for each in self.endpoints),
            clock=clock,
            resources=resources,
            oauth=self.config.oauth,
        )

    def standing(self) -> str:
        """The response of `/ready`: the phase, or what prevents the server from working."""
        return self._failing() or self.phase if self.phase == "ready" else self.phase

    @property
    def addresses(self) -> dict[str, Address]:
        """The bound address of each listener, by its label on the ready line."""
        return {endpoint.label: endpoint.address for endpoint in self.endpoints}

    def ready_line(self) -> str:
        """What tests, benchmarks and scripts wait for."""
        return ready(self.endpoints)


def _raise_file_limit() -> None:
    """Raise the limit of file descriptors as far as allowed: each connection needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def fitted(config: Config, files_max: int, given: Collection[str] = ()) -> Config:
    """The settings, with the connections of all listeners limited by the available descriptors.

    If there are too few, the largest limits are lowered and small ones stay as they are.
    """
    # The name server allows as many as RocketMQ's own listener.
    listeners = {"kafka": 1, "remoting": 2, "http": 1}
    wanted = {each: getattr(config, each).connections_max for each in listeners}
    secured = sum(
        any(each.tls != "disabled" for each in endpoints)
        for endpoints in endpoints_of(config, given).values()
    )
    own = OWN_FILES + secured * HANDSHAKES_MAX
    possible = max(sum(listeners.values()), files_max - own)
    total = sum(count * listeners[each] for each, count in wanted.items())
    if files_max == resource.RLIM_INFINITY or total <= possible:
        return config
    log.info(
        "connection limits lowered to fit the open file limit max=%d configured=%d", possible, total
    )
    enough, level = 1, max(wanted.values())
    while enough < level:
        middle = (enough + level + 1) // 2
        used = sum(min(count, middle) * listeners[each] for each, count in wanted.items())
        enough, level = (middle, level) if used <= possible else (enough, middle - 1)
    return replace(
        config,
        **{
            each: replace(getattr(config, each), connections_max=level)
            for each, count in wanted.items()
            if count > level
        },
    )
