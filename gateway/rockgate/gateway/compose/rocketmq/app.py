"""A gateway to a RocketMQ cluster: the Kafka listener without a store."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import uvloop

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.broker_configs import broker_configs, topic_defaults
from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.config.renamed import warn_of_renamed
from rockgate.gateway.compose.listeners import (
    bind,
    certificate_identity,
    connection_counts,
    ready,
    refuse_anonymous,
    tls_contexts,
)
from rockgate.gateway.compose.metrics.kafka import RequestSource
from rockgate.gateway.compose.rocketmq.http import GatewayPages
from rockgate.gateway.compose.rocketmq.metrics import ClusterSource
from rockgate.gateway.compose.rocketmq.table import GATEWAY_HANDLERS, GatewayServices
from rockgate.gateway.kafka.fetch.sessions import FetchSessions
from rockgate.gateway.kafka.groups.groups import new_member_id
from rockgate.gateway.kafka.server.accounting import Accounting
from rockgate.gateway.kafka.server.dispatch import Dispatcher
from rockgate.gateway.kafka.server.listener import KafkaConnections
from rockgate.gateway.kafka.server.request_metrics import Traffic, counting
from rockgate.gateway.kafka.topics.metadata_cache import MetadataCache
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.net.listening.listeners import Listeners
from rockgate.gateway.rocketmq.cluster.broker_settings import ClusterBrokerSettings
from rockgate.gateway.rocketmq.cluster.client import ClusterClient
from rockgate.gateway.rocketmq.cluster.errors import BrokerError, BrokerLost
from rockgate.gateway.rocketmq.cluster.fence import BrokerFence
from rockgate.gateway.rocketmq.groups.coordinated import CoordinatedGroups
from rockgate.gateway.rocketmq.groups.memory import AtBrokers, NoTransactions, RememberedGroups
from rockgate.gateway.rocketmq.groups.progress import ClusterProgress
from rockgate.gateway.rocketmq.groups.rocketmq_members import RocketmqMembers
from rockgate.gateway.rocketmq.handlers.fetch import EXAMINE_MS, NoLimits, WatchedReaders
from rockgate.gateway.rocketmq.members.cluster_member import ClusterMember
from rockgate.gateway.rocketmq.members.gateways import GROUP, Gateway
from rockgate.gateway.rocketmq.members.placement import GatewayPlacement
from rockgate.gateway.rocketmq.members.slots import slot_of
from rockgate.gateway.rocketmq.queues.queues import ClusterQueues
from rockgate.gateway.rocketmq.topics.catalog import ClusterCatalog
from rockgate.gateway.rocketmq.topics.written import WrittenTables
from rockgate.gateway.runtime import logs
from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.runtime.stop_signal import Stop
from rockgate.gateway.runtime.tuning import tune_allocator, tune_collector, tune_threads
from rockgate.gateway.security.tls.contexts import TlsContexts
from rockgate.gateway.security.tls.identity import CertificateIdentity
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.storage.slow_appends import SlowAppends
from rockgate.gateway.telemetry.requests import RequestStats
from rockgate.store.clock import SystemClock

REFRESH_S: Final = 5.0
log = logging.getLogger(__name__)


def run(
    config: Config, given: Collection[str] = (), deprecated: Mapping[str, str] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT; StartError if the gateway cannot start."""
    logs.set_up(config.server.log_level)
    warn_of_renamed(deprecated or {}, log)
    tune_allocator()
    tune_threads()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, given))


async def _serve(config: Config, given: Collection[str]) -> None:
    stop = Stop()
    async with AsyncExitStack() as resources:
        endpoints = await GatewayAssembly(config, given).open(resources)
        sys.stdout.write(f"{ready(endpoints)}\n")
        sys.stdout.flush()
        log.info("stopping signal=%s", await stop.asked())
    log.info("stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayListeners:
    """The listeners of `rockgate gateway`, bound and not yet listening."""

    kafka: Listeners
    http: Listeners
    contexts: TlsContexts | None
    identity: CertificateIdentity


class GatewayAssembly:
    """What a gateway is built from."""

    def __init__(self, config: Config, given: Collection[str]) -> None:
        self._config = config
        self._given = given

    async def open(self, resources: AsyncExitStack) -> list[Endpoint]:
        """Connect to the cluster and listen; `resources` drains and closes the listeners."""
        config = self._config
        listeners = self._bind(resources)
        cluster = await self._connect(resources)
        threads = BatchThreads(config.batches)
        resources.callback(threads.close)
        member = self._member(cluster, listeners.kafka.first.address)
        settings = ClusterBrokerSettings(cluster)
        await settings.learn()
        queues = ClusterQueues(
            cluster,
            threads,
            member.terms,
            BrokerFence(cluster, asyncio.get_running_loop()),
            group=GROUP,
            now_ms=_now_ms,
            pull_count=settings.pull_count,
            cache_bytes_max=config.rocketmq.cache_bytes_max,
        )
        resources.push_async_callback(queues.close)
        tables = WrittenTables(cluster, member.table_locks, fixed=config.rocketmq.broker_list())
        catalog = ClusterCatalog(
            cluster,
            partitions_max=config.topics.partitions_max,
            tables=tables,
            on_dropped=queues.forget,
        )
        services = self._services(cluster, catalog, queues, member)
        stats = RequestStats()
        connections = self._connections(services, stats, listeners.identity)
        pages = GatewayPages(
            config,
            listeners.identity,
            resources,
            RequestSource(stats=stats, connections=connections),
            ClusterSource(cluster, member, services),
        )
        await pages.listen(listeners.http)
        await self._join(cluster, member, tables)
        upkeep = asyncio.get_running_loop().create_task(
            _keep_up(services, member, settings, listeners.contexts)
        )
        resources.callback(upkeep.cancel)
        resources.push_async_callback(connections.drain, config.server.drain_ms_max / 1000)
        resources.callback(services.groups.finish)
        resources.callback(services.polls.finish)
        resources.push_async_callback(member.leave)
        resources.callback(listeners.kafka.close)
        await listeners.kafka.listen(connections.session, backlog=config.kafka.backlog)
        tune_collector()
        pages.phase = "ready"
        return [*listeners.kafka.endpoints, *listeners.http.endpoints]

    def _bind(self, resources: AsyncExitStack) -> GatewayListeners:
        """Bind the listeners; nothing is accepted yet."""
        config = self._config
        if config.kafka.listen.is_closed:
            raise StartError("The gateway requires a Kafka listener. Set --kafka HOST:PORT.")
        endpoints = config.kafka.endpoints(self._given)
        _refuse_sasl(endpoints)
        # Many gateways may run on one machine: none takes the default port for its pages.
        pages = [config.http.endpoint()] if "http.listen" in self._given else []
        every = [*endpoints, *pages]
        refuse_anonymous(every, config)
        contexts, identity = tls_contexts(every, config), certificate_identity(config)
        return GatewayListeners(
            kafka=bind(resources, endpoints, config, contexts, identity),
            http=bind(resources, pages, config, contexts, identity),
            contexts=contexts,
            identity=identity,
        )

    def _connections(
        self, services: GatewayServices, stats: RequestStats, identity: CertificateIdentity
    ) -> KafkaConnections:
        connections = KafkaConnections(
            self._config.kafka,
            Accounting(
                Dispatcher(counting(GATEWAY_HANDLERS, stats, Traffic()), services),
                stats=stats,
                throttling=NoLimits(),
                slow_appends=SlowAppends(SystemClock()),
            ),
            asyncio.get_running_loop(),
            identify=identity.principal,
        )
        connections.counts = connection_counts(self._config.security)
        return connections

    async def _connect(self, resources: AsyncExitStack) -> ClusterClient:
        """Find the masters of the cluster."""
        try:
            name_servers = self._config.rocketmq.name_server_list()
        except ValueError as wrong:
            raise StartError(f"Invalid rocketmq.name_servers: {wrong}") from None
        if not name_servers:
            raise StartError("No name server given. Set --name-servers HOST:PORT.")
        try:
            cluster = await ClusterClient.open(
                [str(each) for each in name_servers], GROUP, self._config.rocketmq.client_config
            )
        except ValueError as wrong:
            raise StartError(f"Cannot use rocketmq.client_config. {wrong}") from None
        resources.push_async_callback(cluster.close)
        try:
            await cluster.find_masters()
        except BrokerLost as lost:
            raise StartError(f"Cannot reach the RocketMQ cluster: {lost}") from None
        if not cluster.masters:
            raise StartError("The name servers have no master of a RocketMQ cluster.")
        return cluster

    def _member(self, cluster: ClusterClient, bound: Address) -> ClusterMember:
        """This gateway as one among others."""
        config = self._config
        address = config.kafka.advertise or bound
        if address.is_wildcard:
            # Other gateways name this one to their clients, so it needs an address of its own.
            host = _own_host(config.rocketmq.name_server_list()[0])
            address = Address(host, address.port)
        member = ClusterMember(
            Gateway.at(address, config.server.node_id),
            cluster,
            asyncio.get_running_loop(),
            fixed=config.rocketmq.broker_list(),
        )
        cluster.on_lost.append(member.membership.lost)
        cluster.on_members.append(member.membership.changed)
        return member

    async def _join(
        self, cluster: ClusterClient, member: ClusterMember, tables: WrittenTables
    ) -> None:
        """Become a member of the cluster's gateways."""
        is_confirmed = self._config.rocketmq.confirm_tables
        try:
            await tables.check(GROUP, is_confirmed=is_confirmed)
        except BrokerError as failed:
            raise StartError(f"Cannot read the partition tables: {failed}") from None
        await member.join()
        log.info("gateway %s", member.me.client_id)

    def _services(
        self,
        cluster: ClusterClient,
        catalog: ClusterCatalog,
        queues: ClusterQueues,
        member: ClusterMember,
    ) -> GatewayServices:
        config = self._config
        progress = ClusterProgress(cluster, catalog)
        placement = GatewayPlacement(
            member.me,
            terms=member.terms,
            slots=member.slots,
            catalog=catalog,
            cluster=cluster,
        )
        groups = CoordinatedGroups(
            member.slots,
            slot_of,
            RocketmqMembers(cluster),
            config=config.groups,
            saved=RememberedGroups(),
            progress=progress,
            durability=AtBrokers(),
            new_id=new_member_id,
            pending=NoTransactions(),
        )
        member.slots.on_lost.append(groups.give_up)
        return GatewayServices(
            node_id=member.me.node_id,
            cluster_id=cluster.cluster,
            cluster=cluster,
            catalog=catalog,
            placement=placement,
            leadership=member.terms,
            progress=progress,
            queues=queues,
            groups=groups,
            metadata_cache=MetadataCache(placement),
            defaults=topic_defaults(config),
            broker_configs=broker_configs(
                config, member.me.node_id, topic_defaults(config), given=self._given
            ),
            groups_config=config.groups,
            topics_config=config.topics,
            fetch_bytes_max=config.kafka.fetch_bytes_max,
            fetch_sessions=FetchSessions(
                WatchedReaders(),
                SystemClock(),
                sessions_max=config.kafka.fetch_sessions_max,
                partitions_max=config.kafka.fetch_session_partitions_max,
                examine_ms=EXAMINE_MS,
            ),
            polls=PollRegistry(),
            now_ms=_now_ms,
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _own_host(towards: Address) -> str:
    """The address of this machine on the way to another; nothing is sent."""
    try:
        [(family, *_, there), *_] = socket.getaddrinfo(
            towards.host, towards.port, type=socket.SOCK_DGRAM
        )
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(there)
            host: str = probe.getsockname()[0]
            return host
    except OSError as failed:
        raise StartError(
            f"Cannot tell this machine's address: {failed}. Set --advertise-kafka HOST:PORT."
        ) from None


def _refuse_sasl(endpoints: Iterable[Endpoint]) -> None:
    """Refuse listeners whose clients have to log in: users are in the log of a server."""
    for endpoint in endpoints:
        if endpoint.authentication == "sasl":
            raise StartError(
                f"Listener {endpoint.label} authenticates by SASL, which takes users, and a gateway"
                " has none. Use SSL with tls.client_auth=required instead."
            )


async def _keep_up(
    services: GatewayServices,
    member: ClusterMember,
    settings: ClusterBrokerSettings,
    contexts: TlsContexts | None,
) -> None:
    """Ask for masters and routes again, close what is idle, and renew certificates."""
    while True:
        await asyncio.sleep(REFRESH_S)
        try:
            await services.catalog.refresh()
            await settings.learn()
        except BrokerLost as lost:
            log.warning("cannot refresh topics: %s", lost)
        except Exception:  # one failed refresh must not be the last
            log.exception("refreshing topics failed")
        services.fetch_sessions.expire()
        services.queues.sweep()
        member.refresh()
        if contexts is not None:
            contexts.renew()
