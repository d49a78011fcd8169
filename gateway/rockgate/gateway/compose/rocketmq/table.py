"""The table of handlers of a gateway to a RocketMQ cluster.

The rows that a rockgate server has as well are served by the same handlers, over what this
deployment has behind their Protocols. APIs of transactions are missing: they are not advertised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rockgate.gateway.kafka.configs.broker import BrokerConfig
from rockgate.gateway.kafka.configs.resources import (
    Alterable,
    Resources,
    ResourceType,
    TopicResources,
)
from rockgate.gateway.kafka.configs.topic_defaults import TopicDefaults
from rockgate.gateway.kafka.fetch.sessions import FetchSessions
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.gateway.kafka.groups.groups import Groups
from rockgate.gateway.kafka.handlers import fetch, join_group, sync_group
from rockgate.gateway.kafka.handlers.alter_configs import AlterConfigs
from rockgate.gateway.kafka.handlers.api_versions import ApiVersions, unsupported
from rockgate.gateway.kafka.handlers.create_partitions import CreatePartitions
from rockgate.gateway.kafka.handlers.create_topics import CreateTopics
from rockgate.gateway.kafka.handlers.delete_groups import DeleteGroups
from rockgate.gateway.kafka.handlers.delete_topics import DeleteTopics
from rockgate.gateway.kafka.handlers.describe_cluster import DescribeCluster
from rockgate.gateway.kafka.handlers.describe_configs import DescribeConfigs
from rockgate.gateway.kafka.handlers.describe_groups import DescribeGroups
from rockgate.gateway.kafka.handlers.describe_topic_partitions import DescribeTopicPartitions
from rockgate.gateway.kafka.handlers.elect_leaders import ElectLeaders
from rockgate.gateway.kafka.handlers.find_coordinator import FindCoordinator
from rockgate.gateway.kafka.handlers.heartbeat import Heartbeat
from rockgate.gateway.kafka.handlers.incremental_alter_configs import IncrementalAlterConfigs
from rockgate.gateway.kafka.handlers.join_group import JoinGroup
from rockgate.gateway.kafka.handlers.leave_group import LeaveGroup
from rockgate.gateway.kafka.handlers.list_config_resources import ListConfigResources
from rockgate.gateway.kafka.handlers.list_groups import ListGroups
from rockgate.gateway.kafka.handlers.metadata import Metadata
from rockgate.gateway.kafka.handlers.offset_commit import OffsetCommit
from rockgate.gateway.kafka.handlers.offset_delete import OffsetDelete
from rockgate.gateway.kafka.handlers.offset_fetch import OffsetFetch
from rockgate.gateway.kafka.handlers.sync_group import SyncGroup
from rockgate.gateway.kafka.produce import requests as produced
from rockgate.gateway.kafka.request.handler import Row, row
from rockgate.gateway.kafka.topics.metadata_cache import MetadataCache
from rockgate.gateway.kafka.topics.replicas import Replicas
from rockgate.gateway.rocketmq.groups.memory import (
    AtBrokers,
    NoConfigs,
    NoQuota,
    NoTransactions,
)
from rockgate.gateway.rocketmq.groups.progress import ClusterProgress
from rockgate.gateway.rocketmq.handlers.delete_records import ClusterDeleteRecords
from rockgate.gateway.rocketmq.handlers.fetch import (
    ClusterFetch,
    ClusterFinder,
    ClusterPartitionReader,
    NoLimits,
    NothingCold,
)
from rockgate.gateway.rocketmq.handlers.init_producer_id import ClusterInitProducerId
from rockgate.gateway.rocketmq.handlers.list_offsets import ClusterListOffsets
from rockgate.gateway.rocketmq.handlers.produce import ClusterProduce
from rockgate.gateway.rocketmq.members.leadership import Leadership
from rockgate.gateway.rocketmq.members.placement import GatewayPlacement
from rockgate.gateway.rocketmq.queues.queues import ClusterQueues
from rockgate.gateway.rocketmq.topics.catalog import Cluster, ClusterCatalog
from rockgate.gateway.rocketmq.topics.configs import CLUSTER_TOPICS
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.protocol.kafka import api


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayServices:
    """The services that handlers are made of."""

    node_id: int
    cluster_id: str
    cluster: Cluster
    catalog: ClusterCatalog
    placement: GatewayPlacement
    leadership: Leadership
    progress: ClusterProgress
    queues: ClusterQueues
    groups: Groups
    metadata_cache: MetadataCache
    defaults: TopicDefaults
    broker_configs: Mapping[str, BrokerConfig]
    groups_config: GroupsConfig
    topics_config: TopicsConfig
    fetch_bytes_max: int
    fetch_sessions: FetchSessions
    polls: PollRegistry
    now_ms: Callable[[], int]


_DURABLE = AtBrokers()


def _alterable(services: GatewayServices) -> Alterable:
    topics = TopicResources(catalog=services.catalog, defaults=services.defaults)
    resources: dict[ResourceType, Resources] = {ResourceType.TOPIC: topics}
    return Alterable(
        catalog=services.catalog,
        resources=resources,
        node_id=services.node_id,
        broker_configs=services.broker_configs,
    )


GATEWAY_HANDLERS: tuple[Row[GatewayServices], ...] = (
    row(
        api.PRODUCE,
        lambda s: ClusterProduce(
            catalog=s.catalog,
            cluster=s.cluster,
            queues=s.queues,
            message_bytes_max=s.topics_config.message_bytes_max,
            now_ms=s.now_ms,
        ),
        decode=produced.decode,
        encode=produced.encode,
        decode_large=produced.decode_large,
        is_bulk=False,
    ),
    row(
        api.FETCH,
        lambda s: ClusterFetch(
            s.catalog,
            fetch.Fetch(
                finder=ClusterFinder(s.catalog, s.queues),
                poll_registry=s.polls,
                sessions=s.fetch_sessions,
                reader=ClusterPartitionReader(s.cluster, s.leadership),
                cold_reads=NothingCold(),
                visible_batches=NothingCold(),
                bytes_max=s.fetch_bytes_max,
                throttling=NoLimits(),
            ),
        ),
        decode=fetch.decode,
        encode=fetch.encode,
    ),
    row(
        api.LIST_OFFSETS,
        lambda s: ClusterListOffsets(
            catalog=s.catalog, cluster=s.cluster, queues=s.queues, leadership=s.leadership
        ),
    ),
    row(
        api.METADATA,
        lambda s: Metadata(
            catalog=s.catalog,
            placement=s.placement,
            metadata_cache=s.metadata_cache,
            cluster_id=s.cluster_id,
            config=s.topics_config,
            durability=_DURABLE,
        ),
    ),
    row(
        api.OFFSET_COMMIT,
        lambda s: OffsetCommit(
            catalog=s.catalog,
            progress=s.progress,
            groups=s.groups,
            durability=_DURABLE,
            now_ms=s.now_ms,
            metadata_bytes_max=s.groups_config.metadata_bytes_max,
        ),
    ),
    row(
        api.OFFSET_FETCH,
        lambda s: OffsetFetch(catalog=s.catalog, progress=s.progress, pending=NoTransactions()),
    ),
    row(api.FIND_COORDINATOR, lambda s: FindCoordinator(s.placement)),
    row(api.JOIN_GROUP, lambda s: JoinGroup(s.groups), size_max=join_group.REQUEST_BYTES_MAX),
    row(api.HEARTBEAT, lambda s: Heartbeat(s.groups)),
    row(api.LEAVE_GROUP, lambda s: LeaveGroup(s.groups)),
    row(
        api.SYNC_GROUP,
        lambda s: SyncGroup(s.groups),
        size_max=sync_group.REQUEST_BYTES_MAX,
        too_large=sync_group.TOO_LARGE,
    ),
    row(api.DESCRIBE_GROUPS, lambda s: DescribeGroups(s.groups)),
    row(api.LIST_GROUPS, lambda s: ListGroups(s.groups)),
    row(
        api.API_VERSIONS,
        lambda _: ApiVersions({each.key: each.advertised for each in GATEWAY_HANDLERS}),
        answer_unknown_version=unsupported,
    ),
    row(
        api.CREATE_TOPICS,
        lambda s: CreateTopics(
            catalog=s.catalog,
            replicas=Replicas(s.node_id, is_strict=False),
            defaults=s.defaults,
            config=s.topics_config,
            durability=_DURABLE,
            throttling=NoQuota(),
            known=CLUSTER_TOPICS,
        ),
    ),
    row(
        api.DELETE_TOPICS,
        lambda s: DeleteTopics(catalog=s.catalog, durability=_DURABLE, throttling=NoQuota()),
    ),
    row(api.DELETE_RECORDS, lambda s: ClusterDeleteRecords(s.catalog)),
    row(api.INIT_PRODUCER_ID, lambda _: ClusterInitProducerId()),
    row(
        api.DESCRIBE_CONFIGS,
        lambda s: DescribeConfigs(
            catalog=s.catalog,
            defaults=s.defaults,
            node_id=s.node_id,
            broker_configs=s.broker_configs,
            configs=NoConfigs(),
        ),
    ),
    row(
        api.ALTER_CONFIGS,
        lambda s: AlterConfigs(alterable=_alterable(s), durability=_DURABLE),
    ),
    row(
        api.CREATE_PARTITIONS,
        lambda s: CreatePartitions(
            catalog=s.catalog,
            replicas=Replicas(s.node_id, is_strict=False),
            durability=_DURABLE,
            throttling=NoQuota(),
        ),
    ),
    row(api.DELETE_GROUPS, lambda s: DeleteGroups(groups=s.groups, durability=_DURABLE)),
    row(api.ELECT_LEADERS, lambda s: ElectLeaders(s.catalog)),
    row(
        api.INCREMENTAL_ALTER_CONFIGS,
        lambda s: IncrementalAlterConfigs(alterable=_alterable(s), durability=_DURABLE),
    ),
    row(
        api.OFFSET_DELETE,
        lambda s: OffsetDelete(
            catalog=s.catalog, progress=s.progress, groups=s.groups, durability=_DURABLE
        ),
    ),
    row(
        api.DESCRIBE_CLUSTER,
        lambda s: DescribeCluster(placement=s.placement, cluster_id=s.cluster_id),
    ),
    row(
        api.LIST_CONFIG_RESOURCES,
        lambda s: ListConfigResources(catalog=s.catalog, node_id=s.node_id, configs=NoConfigs()),
    ),
    row(
        api.DESCRIBE_TOPIC_PARTITIONS,
        lambda s: DescribeTopicPartitions(catalog=s.catalog, placement=s.placement),
    ),
)
