"""Assembles the Kafka listener: folds, upkeep and the services of its handlers.

The app creates the folds with the store, then the listener; shutdown closes the listener first.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.broker_configs import broker_configs, topic_defaults
from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.folds import KafkaFolds
from rockgate.gateway.compose.kafka.delays import record_delays
from rockgate.gateway.compose.kafka.following import (
    follow_counts,
    follow_defaults,
    follow_expiry,
    follow_store,
)
from rockgate.gateway.compose.kafka.groups import GroupsAssembly, streams_groups
from rockgate.gateway.compose.kafka.services import ReadPath, Services, markers, pushing_clients
from rockgate.gateway.compose.kafka.shares import SharesAssembly
from rockgate.gateway.compose.kafka.table import opened
from rockgate.gateway.compose.metrics.client_metrics import ClientMetricsSource
from rockgate.gateway.compose.metrics.kafka import GroupSource, RequestSource, TopicSource
from rockgate.gateway.compose.metrics.producers import RememberedSource
from rockgate.gateway.compose.security import SecurityAssembly
from rockgate.gateway.kafka.authentication.authenticator import Authenticator
from rockgate.gateway.kafka.authentication.enabled import authenticators
from rockgate.gateway.kafka.authorization.changes import audited
from rockgate.gateway.kafka.authorization.guards import Context
from rockgate.gateway.kafka.authorization.permissions import Permissions
from rockgate.gateway.kafka.authorization.table import guarded
from rockgate.gateway.kafka.embedded.catalog import StoreCatalog
from rockgate.gateway.kafka.embedded.placement import SingleNode
from rockgate.gateway.kafka.embedded.progress import StoreProgress
from rockgate.gateway.kafka.features.switched import switched
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.internal_topics.writer import InternalTopics
from rockgate.gateway.kafka.produce.producer_expiry import ProducerExpiry
from rockgate.gateway.kafka.produce.validate import SettingsCache
from rockgate.gateway.kafka.quotas.throttling import Throttling
from rockgate.gateway.kafka.request.handler import Row
from rockgate.gateway.kafka.request.permitted import UNCHECKED
from rockgate.gateway.kafka.server.accounting import Accounting
from rockgate.gateway.kafka.server.dispatch import Dispatcher
from rockgate.gateway.kafka.server.held_produce import HeldProduce
from rockgate.gateway.kafka.server.listener import KafkaConnections
from rockgate.gateway.kafka.server.request_metrics import Traffic, counting
from rockgate.gateway.kafka.server.standby import answer_as_standby
from rockgate.gateway.kafka.topics.metadata_cache import MetadataCache
from rockgate.gateway.kafka.topics.sizes import QueueSizes
from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.deadlines import Deadlines
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.net.listening.listeners import Listeners
from rockgate.gateway.runtime.identity import Identity
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.storage.stalls import Stalls
from rockgate.gateway.telemetry.requests import RequestStats
from rockgate.gateway.telemetry.telemetry import Telemetry
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.store.store import Store


def permissions_of(security: SecurityAssembly) -> Permissions | None:
    """What guards ask; None if nothing is authorized."""
    if security.authorizer is None:
        return None
    return Permissions(security.authorizer, security.audit)


class KafkaAssembly:
    """What the Kafka listener is built from. The app creates one and calls `open` once."""

    def __init__(
        self,
        *,
        config: Config,
        identity: Identity,
        store: Store,
        security: SecurityAssembly,
        folds: KafkaFolds,
        poll_registry: PollRegistry,
        durability: Durability,
        cold_reads: ColdReads,
        telemetry: Telemetry,
        threads: BatchThreads,
        stalls: Stalls,
        given: Collection[str] = (),
        permissions: Permissions | None = None,
    ) -> None:
        """Without `permissions` nothing is authorized."""
        self.config = config
        self._permissions = permissions
        self.given = given
        self.threads = threads
        self._stalls = stalls
        self.identity = identity
        self.store = store
        self.security = security
        self.folds = folds
        self.poll_registry = poll_registry
        self.durability = durability
        self._cold_reads = cold_reads
        self.telemetry = telemetry
        self.stats = RequestStats()
        self.defaults = topic_defaults(config)
        follow_defaults(folds.changed, self.defaults)
        follow_store(folds.changed, config.store, store)
        self.settings = SettingsCache(self.defaults)
        store.topics.on_deleted.append(self.settings.forget)
        self.catalog = StoreCatalog(
            store.topics,
            config.topics.partitions_max,
            lists_system_topics=config.topics.system_topics_listed,
        )
        self.streams = streams_groups(config, folds, self.catalog)
        self.delays, self.scheduling = record_delays(config, store, folds, self.settings, threads)
        self.coordinator = self._coordinator()
        self.internal_topics = self._internal_topics()
        self.shares = SharesAssembly(config, store, folds, self.catalog, poll_registry)

    async def open(
        self,
        resources: AsyncExitStack,
        listeners: Listeners,
        groups: Groups,
        connections_max: int,
        security: SecurityAssembly,
    ) -> None:
        """Create the handlers and listen; `resources` drains and closes the listeners."""
        config, loop, quotas = self.config, asyncio.get_running_loop(), self.folds.quotas
        throttling = Throttling(quotas=quotas, config=config.quotas, clock=loop)
        services = self.services(listeners.endpoints, groups, throttling)
        stats, traffic = self.stats, Traffic()
        dispatcher = Dispatcher(counting(self.rows(), stats, traffic), services)
        self._hold_produce(dispatcher, resources)
        connections = KafkaConnections(
            replace(config.kafka, connections_max=connections_max),
            Accounting(
                dispatcher,
                stats=stats,
                throttling=throttling,
                slow_appends=self._stalls.slow_appends,
            ),
            loop,
            may_connect=throttling.may_connect,
            identify=security.identity.principal,
            authenticators=self._authenticators(listeners, security),
        )
        security.tokens.stored.on_removed.append(connections.close_tokens)
        users = security.users
        users.on_changed.append(
            lambda names: connections.close_users(
                {name for name in names if not users.is_enabled(name)}
            )
        )
        connections.counts = listeners.counts
        follow_counts(self.folds.changed, config.security, listeners.counts)
        quotas.on_changed.append(connections.end_throttle_pauses)
        self.telemetry.sources += [
            RequestSource(stats=stats, connections=connections, throttling=throttling),
            TopicSource(
                catalog=self.catalog,
                store=self.store,
                sizes=services.sizes,
                traffic=traffic,
                config=config.metrics,
            ),
            GroupSource(
                groups=groups, store=self.store, empty=self.folds.empty, config=config.metrics
            ),
            self.shares.source,
            RememberedSource(
                producers=self.folds.producers,
                transactions=self.folds.transactions,
                progress=self.store.progress,
            ),
        ]
        if config.client_metrics.enabled:
            self.telemetry.sources.append(ClientMetricsSource(services.clients))
        resources.push_async_callback(connections.drain, config.server.drain_ms_max / 1000)
        resources.callback(self.poll_registry.finish)
        resources.callback(groups.finish)
        resources.callback(listeners.close)
        await listeners.listen(connections.session, backlog=config.kafka.backlog)

    def _authenticators(
        self, listeners: Listeners, security: SecurityAssembly
    ) -> dict[str, Authenticator]:
        """Make what authenticates the clients of listeners with SASL."""
        return authenticators(
            listeners.endpoints,
            security.config,
            logins=security.logins,
            audit=security.audit,
            failures=security.failures,
            clock=asyncio.get_running_loop(),
            now_ms=self.store.clock.now_ms,
            tokens=security.tokens,
            bearers=security.bearers,
        )

    def rows(self) -> Sequence[Row[Services]]:
        """The table of handlers, whose changes are audited; guarded if the server authorizes."""
        levels = self.folds.features
        table = [switched(each, levels) for each in opened(self.config.client_metrics)]
        rows = audited(table, self.security.audit)
        if self._permissions is None:
            return rows
        return guarded(rows, Context(permissions=self._permissions, catalog=self.catalog))

    def _hold_produce(self, dispatcher: Dispatcher, resources: AsyncExitStack) -> None:
        """Let Produce wait while appends wait for the disk, unless overload protection is off."""
        if not self.config.replication.replica_of.is_closed:
            answer_as_standby(dispatcher)
        if not (self.config.overload.enabled and self.config.replication.replica_of.is_closed):
            return

        def swap(is_held: bool) -> None:
            if is_held:
                dispatcher.replace(ApiKey.PRODUCE, held)
            else:
                dispatcher.restore(ApiKey.PRODUCE)

        handler = dispatcher.handler_of(ApiKey.PRODUCE)
        held = HeldProduce(
            handler, asyncio.get_running_loop(), swap, self._stalls.slow_appends.note
        )
        self._stalls.on_stalled.append(held.stalled)
        resources.callback(held.stop)

    def upkeep(self) -> dict[str, Callable[[], bool]]:
        """Periodic work: each call does a little, and returns true while there is more."""
        config, clock = self.config, self.store.clock
        expiry = ProducerExpiry(
            self.folds.producers,
            clock,
            expiry_ms=config.kafka.producer_expiry_ms,
            count_max=config.kafka.producers_max,
        )
        follow_expiry(self.folds.changed, config.kafka, expiry)
        deadlines = Deadlines(
            transactions=self.folds.transactions,
            coordinator=self.coordinator,
            clock=clock,
            id_expiry_ms=config.transactions.id_expiry_ms,
        )
        writer = self.internal_topics
        return {
            "producers": expiry.step,
            "deadlines": deadlines.step,
            "markers": self.coordinator.step,
            "record-delays": self.scheduling.step,
            **({} if writer is None else {"internal-topics": writer.step}),
            **self.shares.upkeep(),
        }

    def _internal_topics(self) -> InternalTopics | None:
        """Create the writer of Kafka's internal topics, which reads what it has missed first."""
        store, folds = self.store, self.folds
        if not self.config.internal_topics.enabled:
            return None
        return InternalTopics(
            config=self.config.internal_topics,
            topics=store.topics,
            queues=store.queues,
            progress=store.progress,
            transactions=folds.transactions,
            groups=folds.groups,
            position=folds.internal_topics,
            end=lambda: store.log.end,
            appender=store.appender,
            epochs=store.epochs,
            clock=store.clock,
        )

    def _coordinator(self) -> Coordinator:
        """Create the completion of transactions; those interrupted by the last stop are resumed."""
        store, folds = self.store, self.folds
        coordinator = Coordinator(
            transactions=folds.transactions,
            producers=folds.producers,
            markers=markers(store, folds.stable_offsets, folds.producers, folds.held),
            appender=store.appender,
            progress=store.progress,
            topics=store.topics,
            timeout_ms_max=self.config.transactions.timeout_ms_max,
            offsets_bytes_max=self.config.transactions.offsets_bytes_max,
        )
        coordinator.resume()
        return coordinator

    def services(
        self, endpoints: Sequence[Endpoint], groups: Groups, throttling: Throttling
    ) -> Services:
        """The services of the handlers."""
        config, store = self.config, self.store
        broker = broker_configs(
            config, self.identity.node_id, self.defaults, endpoints=endpoints, given=self.given
        )
        placement = SingleNode(
            node_id=self.identity.node_id,
            leader_epoch=store.epochs.current,
        )
        metadata_cache = MetadataCache(placement)
        store.topics.on_deleted.append(metadata_cache.forget)
        return Services(
            identity=self.identity,
            data_dir=str(config.server.data_dir.absolute()),
            store=store,
            security=self.security,
            durability=self.durability,
            reading=ReadPath(
                cold_reads=self._cold_reads,
                store=store,
                poll_registry=self.poll_registry,
                delays=self.delays,
                stable_offsets=self.folds.stable_offsets,
                threads=self.threads,
            ),
            sizes=self._sizes(),
            producers=self.folds.producers,
            transactions=self.folds.transactions,
            stable_offsets=self.folds.stable_offsets,
            delays=self.delays,
            threads=self.threads,
            coordinator=self.coordinator,
            configs=self.folds.configs,
            features=self.folds.features,
            changed=self.folds.changed,
            quotas=self.folds.quotas,
            throttling=throttling,
            defaults=self.defaults,
            broker_configs=broker,
            settings=self.settings,
            catalog=self.catalog,
            permitted=self._permissions or UNCHECKED,
            placement=placement,
            prepare_coordinator=self.internal_topics.prepare if self.internal_topics else None,
            progress=StoreProgress(store.progress),
            metadata_cache=metadata_cache,
            poll_registry=self.poll_registry,
            groups=groups,
            streams=self.streams,
            shares=self.shares,
            groups_config=config.groups,
            topics_config=config.topics,
            kafka_config=config.kafka,
            transactions_config=config.transactions,
            client_metrics_config=config.client_metrics,
            clients=pushing_clients(config.client_metrics, self.folds.configs),
        )

    def _sizes(self) -> QueueSizes:
        """Create the size counts of queues, which drop deleted topics."""
        sizes = QueueSizes()
        self.store.topics.on_deleted.append(sizes.forget)
        return sizes

    def make_groups(self, resources: AsyncExitStack) -> Groups:
        """Restore the groups, and expire old offsets periodically."""
        assembly = GroupsAssembly(
            config=self.config,
            store=self.store,
            folds=self.folds,
            catalog=self.catalog,
            durability=self.durability,
            others=[self.streams, self.shares.groups],
        )
        return assembly.make(resources)
