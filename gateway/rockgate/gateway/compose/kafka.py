"""Assembles the Kafka listener: folds, upkeep and the services of its handlers.

The app creates the folds with the store, then the listener; shutdown closes the listener first.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.broker_configs import broker_configs, topic_defaults
from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.kafka_services import ReadPath, Services, markers
from rockgate.gateway.compose.kafka_table import HANDLERS
from rockgate.gateway.compose.metrics.kafka import GroupSource, RequestSource, TopicSource
from rockgate.gateway.compose.metrics.producers import RememberedSource
from rockgate.gateway.delay.headers import Terms
from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.kafka.configs.stored import ResourceConfigs
from rockgate.gateway.kafka.embedded.catalog import StoreCatalog
from rockgate.gateway.kafka.embedded.placement import SingleNode
from rockgate.gateway.kafka.embedded.progress import StoreProgress
from rockgate.gateway.kafka.groups.expiry import Expiry
from rockgate.gateway.kafka.groups.fold import SavedGroups
from rockgate.gateway.kafka.groups.groups import Groups, new_member_id
from rockgate.gateway.kafka.produce.delay import RecordDelays
from rockgate.gateway.kafka.produce.delay_schedule import HeldScheduling
from rockgate.gateway.kafka.produce.producer_expiry import ProducerExpiry
from rockgate.gateway.kafka.produce.producers import Producers
from rockgate.gateway.kafka.produce.redelivery import Redelivering
from rockgate.gateway.kafka.produce.validate import SettingsCache
from rockgate.gateway.kafka.quotas.stored import StoredQuotas
from rockgate.gateway.kafka.quotas.throttling import Throttling
from rockgate.gateway.kafka.server.accounting import Accounting
from rockgate.gateway.kafka.server.dispatch import Dispatcher
from rockgate.gateway.kafka.server.held_produce import HeldProduce
from rockgate.gateway.kafka.server.listener import KafkaConnections
from rockgate.gateway.kafka.server.request_metrics import Traffic, counting
from rockgate.gateway.kafka.topics.advertised import Advertised
from rockgate.gateway.kafka.topics.metadata_cache import MetadataCache
from rockgate.gateway.kafka.topics.sizes import QueueSizes
from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.deadlines import Deadlines
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listener import Listener
from rockgate.gateway.runtime.identity import Identity
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.storage.stalls import Stalls
from rockgate.gateway.telemetry.requests import RequestStats
from rockgate.gateway.telemetry.telemetry import Telemetry
from rockgate.gateway.visibility.empty_offsets import EmptyOffsets
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.store.delay.held import HeldEntries
from rockgate.store.state.fold import Fold, Journal
from rockgate.store.state.topics import Topics
from rockgate.store.store import Store
from rockgate.store.upkeep.expiry import TrustedTime


@dataclass(frozen=True, slots=True)
class KafkaFolds:
    """The folds of the Kafka listener. Created with the store, which feeds them."""

    producers: Producers
    groups: SavedGroups
    transactions: Transactions
    stable_offsets: StableOffsets
    held: HeldEntries
    configs: ResourceConfigs
    quotas: StoredQuotas
    empty: EmptyOffsets

    @classmethod
    def make(cls, journal: Journal, topics: Topics) -> "KafkaFolds":
        """Create empty folds; the store restores them."""
        stable_offsets, empty = StableOffsets(topics), EmptyOffsets(topics)
        stable_offsets.on_ended.append(empty.marked)
        return cls(
            Producers(journal, topics),
            SavedGroups(journal),
            Transactions(),
            stable_offsets,
            HeldEntries(topics),
            ResourceConfigs(journal),
            StoredQuotas(journal),
            empty,
        )

    def all(self) -> list[Fold]:
        """All folds, in the order of a snapshot."""
        return [
            self.producers,
            self.groups,
            self.transactions,
            self.stable_offsets,
            self.held,
            self.configs.fold,
            self.quotas.fold,
            self.empty,
        ]


class KafkaAssembly:
    """What the Kafka listener is built from. The app creates one and calls `open` once."""

    def __init__(
        self,
        *,
        config: Config,
        identity: Identity,
        store: Store,
        folds: KafkaFolds,
        poll_registry: PollRegistry,
        durability: Durability,
        cold_reads: ColdReads,
        telemetry: Telemetry,
        threads: BatchThreads,
        stalls: Stalls,
        given: Collection[str] = (),
    ) -> None:
        self.config = config
        self.given = given
        self.threads = threads
        self._stalls = stalls
        self.identity = identity
        self.store = store
        self.folds = folds
        self.poll_registry = poll_registry
        self.durability = durability
        self._cold_reads = cold_reads
        self.telemetry = telemetry
        self.stats = RequestStats()
        self.defaults = topic_defaults(config)
        self.settings = SettingsCache(self.defaults)
        store.topics.on_deleted.append(self.settings.forget)
        self.catalog = StoreCatalog(store.topics, config.topics.partitions_max)
        self.delays, self.scheduling = self._delays()
        self.coordinator = self._coordinator()

    async def open(
        self, resources: AsyncExitStack, listener: Listener, groups: Groups, connections_max: int
    ) -> None:
        """Create the handlers and listen; `resources` drains and closes the listener."""
        config, loop = self.config, asyncio.get_running_loop()
        advertised = Advertised(configured=config.kafka.advertise, bound=listener.address)
        quotas = self.folds.quotas
        throttling = Throttling(quotas=quotas, config=config.quotas, clock=loop)
        services = self._services(advertised, listener.address, groups, throttling)
        stats, traffic = self.stats, Traffic()
        dispatcher = Dispatcher(counting(HANDLERS, stats, traffic), services)
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
        )
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
            RememberedSource(
                producers=self.folds.producers,
                transactions=self.folds.transactions,
                progress=self.store.progress,
            ),
        ]
        resources.push_async_callback(connections.drain, config.server.drain_ms_max / 1000)
        resources.callback(self.poll_registry.finish)
        resources.callback(groups.finish)
        resources.callback(listener.close)
        await listener.listen(connections.session, backlog=config.kafka.backlog)

    def _hold_produce(self, dispatcher: Dispatcher, resources: AsyncExitStack) -> None:
        """Let Produce wait while appends wait for the disk, unless overload protection is off."""
        if not self.config.overload.enabled:
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
        deadlines = Deadlines(
            transactions=self.folds.transactions,
            coordinator=self.coordinator,
            clock=clock,
            id_expiry_ms=config.transactions.id_expiry_ms,
        )
        return {
            "producers": expiry.step,
            "deadlines": deadlines.step,
            "markers": self.coordinator.step,
            "record-delays": self.scheduling.step,
        }

    def _delays(self) -> tuple[RecordDelays, HeldScheduling]:
        """Create the delay of records and attach it to deliveries; held batches are resumed."""
        store, held, remoting = self.store, self.folds.held, self.config.remoting
        terms = Terms(read_levels(remoting.delay_levels), remoting.delay_ms_max)
        store.attach(
            records=Redelivering(
                topics=store.topics,
                queues=store.queues,
                epochs=store.epochs,
                clock=store.clock,
                settings=self.settings,
            )
        )
        store.retention.keep(held)
        return (
            RecordDelays(
                appender=store.appender,
                deliveries=store.deliveries,
                lookup=store.lookup,
                held=held,
                terms=terms,
                threads=self.threads,
            ),
            HeldScheduling(
                appender=store.appender,
                deliveries=store.deliveries,
                queues=store.queues,
                reader=store.reader,
                residency=store.residency,
                commit_log=store.log,
                clock=store.clock,
                held=held,
                terms=terms,
            ),
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

    def _services(
        self, advertised: Advertised, bound: Address, groups: Groups, throttling: Throttling
    ) -> Services:
        config, store = self.config, self.store
        broker = broker_configs(
            config, self.identity.node_id, self.defaults, bound=bound, given=self.given
        )
        placement = SingleNode(
            node_id=self.identity.node_id,
            leader_epoch=store.epochs.current,
            advertised=advertised,
        )
        metadata_cache = MetadataCache(placement)
        store.topics.on_deleted.append(metadata_cache.forget)
        return Services(
            identity=self.identity,
            data_dir=str(config.server.data_dir.absolute()),
            advertised=advertised,
            store=store,
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
            quotas=self.folds.quotas,
            throttling=throttling,
            defaults=self.defaults,
            broker_configs=broker,
            settings=self.settings,
            catalog=self.catalog,
            placement=placement,
            progress=StoreProgress(store.progress),
            metadata_cache=metadata_cache,
            poll_registry=self.poll_registry,
            groups=groups,
            groups_config=config.groups,
            topics_config=config.topics,
            kafka_config=config.kafka,
            transactions_config=config.transactions,
        )

    def _sizes(self) -> QueueSizes:
        """Create the size counts of queues, which drop deleted topics."""
        sizes = QueueSizes()
        self.store.topics.on_deleted.append(sizes.forget)
        return sizes

    def make_groups(self, resources: AsyncExitStack) -> Groups:
        """Restore the groups, and expire old offsets periodically."""
        config, store, saved = self.config.groups, self.store, self.folds.groups
        groups = Groups(
            config=config,
            saved=saved,
            progress=StoreProgress(store.progress),
            durability=self.durability,
            new_id=new_member_id,
            pending=self.folds.transactions.pending,
        )
        groups.load()
        expiry = Expiry(
            config=config,
            groups=groups,
            saved=saved,
            progress=store.progress,
            topics=store.topics,
            now_ms=TrustedTime(store.clock).now_ms,
            is_pending=self.folds.transactions.pending.has_at,
        )
        expiry.start(asyncio.get_running_loop())
        resources.callback(expiry.stop)
        return groups
