"""The services of the Kafka handlers, and construction that takes more than one line.

The app collects the services; a row of the table picks those that its handler uses, and no handler
sees all of them.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.compose.kafka.shares import SharesAssembly
from rockgate.gateway.compose.security import SecurityAssembly
from rockgate.gateway.kafka.client_metrics.clients import PushingClients
from rockgate.gateway.kafka.client_metrics.config import ClientMetricsConfig
from rockgate.gateway.kafka.client_metrics.subscriptions import MetricsSubscriptions
from rockgate.gateway.kafka.configs.broker import BrokerConfig
from rockgate.gateway.kafka.configs.dynamic import BrokerResources
from rockgate.gateway.kafka.configs.resources import (
    Alterable,
    Resources,
    ResourceType,
    TopicResources,
    client_metrics_resources,
    group_resources,
)
from rockgate.gateway.kafka.configs.stored import ResourceConfigs
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.features.levels import FeatureLevels
from rockgate.gateway.kafka.fetch.converted_batches import ConvertedBatches
from rockgate.gateway.kafka.fetch.finder import Finder
from rockgate.gateway.kafka.fetch.leader_epochs import LeaderEpochs
from rockgate.gateway.kafka.fetch.partitions import PartitionReader
from rockgate.gateway.kafka.fetch.sessions import FetchSessions
from rockgate.gateway.kafka.fetch.time_search import TimeSearch
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.groups.progress import GroupProgress
from rockgate.gateway.kafka.groups.streams.coordinator import StreamsGroups
from rockgate.gateway.kafka.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeat
from rockgate.gateway.kafka.handlers.create_topics import CreateTopics
from rockgate.gateway.kafka.handlers.describe_log_dirs import DescribeLogDirs
from rockgate.gateway.kafka.handlers.fetch import Fetch
from rockgate.gateway.kafka.handlers.list_offsets import ListOffsets
from rockgate.gateway.kafka.handlers.offset_for_leader_epoch import OffsetForLeaderEpoch
from rockgate.gateway.kafka.handlers.streams_group_heartbeat import StreamsGroupHeartbeat
from rockgate.gateway.kafka.handlers.write_txn_markers import WriteTxnMarkers
from rockgate.gateway.kafka.produce.delay import RecordDelays
from rockgate.gateway.kafka.produce.producers import Producers
from rockgate.gateway.kafka.produce.validate import SettingsCache
from rockgate.gateway.kafka.quotas.stored import StoredQuotas
from rockgate.gateway.kafka.quotas.throttling import Throttling
from rockgate.gateway.kafka.request.permitted import Permitted
from rockgate.gateway.kafka.server.config import KafkaConfig
from rockgate.gateway.kafka.topics.catalog import TopicCatalog
from rockgate.gateway.kafka.topics.metadata_cache import MetadataCache
from rockgate.gateway.kafka.topics.placement import CoordinatorType, Placement
from rockgate.gateway.kafka.topics.replicas import Replicas
from rockgate.gateway.kafka.topics.sizes import QueueSizes
from rockgate.gateway.kafka.transactions.config import TransactionsConfig
from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.kafka.transactions.markers import Markers
from rockgate.gateway.runtime.identity import Identity
from rockgate.gateway.settings.changed import ChangedSettings
from rockgate.gateway.storage.cold_reads import ColdReads
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.gateway.transcode.batches import BatchTranscoder
from rockgate.gateway.transcode.compressed_bodies import CompressedBodies
from rockgate.gateway.visibility.stable_offsets import StableOffsets
from rockgate.store.api.delay import HeldEntries
from rockgate.store.store import Store


class ReadPath:
    """What the reading handlers share: one of each, so that caches are shared."""

    def __init__(
        self,
        *,
        store: Store,
        cold_reads: ColdReads,
        poll_registry: PollRegistry,
        delays: RecordDelays,
        stable_offsets: StableOffsets,
        threads: BatchThreads,
    ) -> None:
        self.epochs = LeaderEpochs(store.epochs, store.reader)
        self.cold_reads = cold_reads
        transcoder = BatchTranscoder(CompressedBodies(poll_registry.wake_changed))
        store.attach(on_compacted=transcoder.cache.clear)
        self.reader = PartitionReader(
            reader=store.reader,
            epochs=self.epochs,
            converted=ConvertedBatches(
                reader=store.reader,
                epochs=self.epochs,
                transcoder=transcoder,
                visible_batches=delays.visible_batches,
            ),
            stable_offsets=stable_offsets,
        )
        self.search = TimeSearch(store.reader, self.epochs, self.cold_reads, threads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services that handlers are made of;

    collected by the app, and not seen whole by any handler.
    """

    identity: Identity
    data_dir: str
    store: Store
    security: SecurityAssembly
    durability: Durability
    reading: ReadPath
    sizes: QueueSizes
    producers: Producers
    transactions: Transactions
    stable_offsets: StableOffsets
    delays: RecordDelays
    threads: BatchThreads
    coordinator: Coordinator
    configs: ResourceConfigs
    features: FeatureLevels
    changed: ChangedSettings
    quotas: StoredQuotas
    throttling: Throttling
    defaults: TopicDefaults
    broker_configs: Mapping[str, BrokerConfig]
    settings: SettingsCache
    catalog: TopicCatalog
    permitted: Permitted
    placement: Placement
    prepare_coordinator: Callable[[CoordinatorType], None] | None
    """Called when a coordinator is asked for."""
    progress: GroupProgress
    metadata_cache: MetadataCache
    poll_registry: PollRegistry
    groups: Groups
    streams: StreamsGroups
    shares: SharesAssembly
    groups_config: GroupsConfig
    topics_config: TopicsConfig
    kafka_config: KafkaConfig
    transactions_config: TransactionsConfig
    client_metrics_config: ClientMetricsConfig
    clients: PushingClients
    """Those that push their metrics."""


def replicas(services: Services) -> Replicas:
    """Return the rules about replicas, which exist once."""
    return Replicas(services.identity.node_id, is_strict=services.topics_config.replication_strict)


def alterable(services: Services, **more: Resources) -> Alterable:
    """Return the configs that can be altered, by resource type."""
    resources: dict[ResourceType, Resources] = {
        ResourceType.TOPIC: TopicResources(catalog=services.catalog, defaults=services.defaults),
        ResourceType.BROKER: BrokerResources(services.broker_configs, services.changed),
        ResourceType.GROUP: group_resources(services.configs),
        ResourceType.CLIENT_METRICS: client_metrics_resources(services.configs),
    }
    return Alterable(
        catalog=services.catalog,
        resources=resources | {ResourceType[name]: each for name, each in more.items()},
        node_id=services.identity.node_id,
        broker_configs=services.broker_configs,
    )


def describe_log_dirs(services: Services) -> DescribeLogDirs:
    """Create DescribeLogDirs."""
    return DescribeLogDirs(
        catalog=services.catalog,
        queues=services.store.queues,
        path=services.data_dir,
        sizes=services.sizes,
    )


def consumer_group_heartbeat(services: Services) -> ConsumerGroupHeartbeat:
    """Create ConsumerGroupHeartbeat."""
    consumers = services.groups.consumers
    assert consumers is not None, "a server over the store has groups of the consumer protocol"
    return ConsumerGroupHeartbeat(consumers, services.durability, services.permitted)


def create_topics(services: Services) -> CreateTopics:
    """Create CreateTopics."""
    return CreateTopics(
        catalog=services.catalog,
        replicas=replicas(services),
        defaults=services.defaults,
        config=services.topics_config,
        durability=services.durability,
        throttling=services.throttling,
        permitted=services.permitted,
    )


def streams_group_heartbeat(services: Services) -> StreamsGroupHeartbeat:
    """Create StreamsGroupHeartbeat, which creates topics as CreateTopics does."""
    return StreamsGroupHeartbeat(
        services.streams,
        services.durability,
        create_topics(services).handle,
        services.permitted,
    )


def fetch(services: Services) -> Fetch:
    """Create Fetch with its sessions."""
    config, reading = services.kafka_config, services.reading
    return Fetch(
        finder=Finder(services.store.topics, services.store.queues),
        poll_registry=services.poll_registry,
        sessions=FetchSessions(
            services.poll_registry,
            services.store.clock,
            sessions_max=config.fetch_sessions_max,
            partitions_max=config.fetch_session_partitions_max,
        ),
        reader=reading.reader,
        cold_reads=reading.cold_reads,
        visible_batches=services.delays.visible_batches,
        bytes_max=config.fetch_bytes_max,
        throttling=services.throttling,
        permitted=services.permitted,
    )


def list_offsets(services: Services) -> ListOffsets:
    """Create ListOffsets."""
    reading = services.reading
    return ListOffsets(
        topics=services.store.topics,
        queues=services.store.queues,
        reader=reading.reader,
        epochs=reading.epochs,
        search=reading.search,
        cold_reads=reading.cold_reads,
    )


def offset_for_leader_epoch(services: Services) -> OffsetForLeaderEpoch:
    """Create OffsetForLeaderEpoch."""
    reading = services.reading
    return OffsetForLeaderEpoch(
        topics=services.store.topics,
        queues=services.store.queues,
        reader=reading.reader,
        epochs=reading.epochs,
        cold_reads=reading.cold_reads,
    )


def markers(
    store: Store, stable_offsets: StableOffsets, producers: Producers, held: HeldEntries
) -> Markers:
    """Create the writer of transaction markers."""
    return Markers(
        appender=store.appender,
        queues=store.queues,
        reader=store.reader,
        clock=store.clock,
        epochs=store.epochs,
        deliveries=store.deliveries,
        stable_offsets=stable_offsets,
        producers=producers,
        held=held,
    )


def write_txn_markers(services: Services) -> WriteTxnMarkers:
    """Create WriteTxnMarkers."""
    store, producers, stable_offsets = services.store, services.producers, services.stable_offsets
    return WriteTxnMarkers(
        topics=store.topics,
        markers=markers(store, stable_offsets, producers, services.delays.held),
        stable_offsets=stable_offsets,
        durability=services.durability,
        accepts_all=services.transactions_config.accept_markers,
    )


def pushing_clients(config: ClientMetricsConfig, configs: ResourceConfigs) -> PushingClients:
    """Create what is known of clients that push metrics."""
    return PushingClients(MetricsSubscriptions(configs), config, time.monotonic)
