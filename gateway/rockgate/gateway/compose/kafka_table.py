"""The table of handlers: ApiVersions and docs/reference/protocol.md come from it.

One line per API, in key order. A row's `make` picks the services that its handler uses. No handler
imports another.
"""

from rockgate.gateway.compose import kafka_services
from rockgate.gateway.compose.kafka_services import Services
from rockgate.gateway.kafka.configs.loggers import LoggerLevels
from rockgate.gateway.kafka.handlers import fetch, join_group, produce, sync_group
from rockgate.gateway.kafka.handlers.add_offsets_to_txn import AddOffsetsToTxn
from rockgate.gateway.kafka.handlers.add_partitions_to_txn import AddPartitionsToTxn
from rockgate.gateway.kafka.handlers.alter_client_quotas import AlterClientQuotas
from rockgate.gateway.kafka.handlers.alter_configs import AlterConfigs
from rockgate.gateway.kafka.handlers.alter_partition_reassignments import (
    AlterPartitionReassignments,
)
from rockgate.gateway.kafka.handlers.alter_replica_log_dirs import AlterReplicaLogDirs
from rockgate.gateway.kafka.handlers.api_versions import FEATURES, ApiVersions, unsupported
from rockgate.gateway.kafka.handlers.create_partitions import CreatePartitions
from rockgate.gateway.kafka.handlers.create_topics import CreateTopics
from rockgate.gateway.kafka.handlers.delete_groups import DeleteGroups
from rockgate.gateway.kafka.handlers.delete_records import DeleteRecords
from rockgate.gateway.kafka.handlers.delete_topics import DeleteTopics
from rockgate.gateway.kafka.handlers.describe_client_quotas import DescribeClientQuotas
from rockgate.gateway.kafka.handlers.describe_cluster import DescribeCluster
from rockgate.gateway.kafka.handlers.describe_configs import DescribeConfigs
from rockgate.gateway.kafka.handlers.describe_groups import DescribeGroups
from rockgate.gateway.kafka.handlers.describe_producers import DescribeProducers
from rockgate.gateway.kafka.handlers.describe_quorum import DescribeQuorum
from rockgate.gateway.kafka.handlers.describe_topic_partitions import DescribeTopicPartitions
from rockgate.gateway.kafka.handlers.describe_transactions import DescribeTransactions
from rockgate.gateway.kafka.handlers.elect_leaders import ElectLeaders
from rockgate.gateway.kafka.handlers.end_txn import EndTxn
from rockgate.gateway.kafka.handlers.find_coordinator import FindCoordinator
from rockgate.gateway.kafka.handlers.heartbeat import Heartbeat
from rockgate.gateway.kafka.handlers.incremental_alter_configs import IncrementalAlterConfigs
from rockgate.gateway.kafka.handlers.init_producer_id import InitProducerId
from rockgate.gateway.kafka.handlers.join_group import JoinGroup
from rockgate.gateway.kafka.handlers.leave_group import LeaveGroup
from rockgate.gateway.kafka.handlers.list_config_resources import ListConfigResources
from rockgate.gateway.kafka.handlers.list_groups import ListGroups
from rockgate.gateway.kafka.handlers.list_partition_reassignments import ListPartitionReassignments
from rockgate.gateway.kafka.handlers.list_transactions import ListTransactions
from rockgate.gateway.kafka.handlers.metadata import Metadata
from rockgate.gateway.kafka.handlers.offset_commit import OffsetCommit
from rockgate.gateway.kafka.handlers.offset_delete import OffsetDelete
from rockgate.gateway.kafka.handlers.offset_fetch import OffsetFetch
from rockgate.gateway.kafka.handlers.sync_group import SyncGroup
from rockgate.gateway.kafka.handlers.txn_offset_commit import TxnOffsetCommit
from rockgate.gateway.kafka.handlers.update_features import UpdateFeatures
from rockgate.gateway.kafka.request.handler import Row, row
from rockgate.gateway.kafka.transactions.produce_check import TransactionalWrites
from rockgate.protocol.kafka import api

HANDLERS: tuple[Row[Services], ...] = (
    row(
        api.PRODUCE,
        lambda s: produce.Produce(
            threads=s.threads,
            topics=s.store.topics,
            queues=s.store.queues,
            appender=s.store.appender,
            log=s.store.log,
            clock=s.store.clock,
            epochs=s.store.epochs,
            durability=s.durability,
            producers=s.producers,
            settings=s.settings,
            writes=TransactionalWrites(
                coordinator=s.coordinator, stable_offsets=s.stable_offsets, producers=s.producers
            ),
            delays=s.delays,
        ),
        decode=produce.decode,
        encode=produce.encode,
        decode_large=produce.decode_large,
        shortcut=lambda handler: handler.shortcut,
        is_bulk=False,
    ),
    row(api.FETCH, kafka_services.fetch, decode=fetch.decode, encode=fetch.encode),
    row(api.LIST_OFFSETS, kafka_services.list_offsets),
    row(
        api.METADATA,
        lambda s: Metadata(
            catalog=s.catalog,
            placement=s.placement,
            metadata_cache=s.metadata_cache,
            cluster_id=s.identity.cluster_id,
            config=s.topics_config,
            durability=s.durability,
        ),
    ),
    row(
        api.OFFSET_COMMIT,
        lambda s: OffsetCommit(
            catalog=s.catalog,
            progress=s.progress,
            groups=s.groups,
            durability=s.durability,
            now_ms=s.store.clock.now_ms,
            metadata_bytes_max=s.groups_config.metadata_bytes_max,
        ),
    ),
    row(
        api.OFFSET_FETCH,
        lambda s: OffsetFetch(
            catalog=s.catalog, progress=s.progress, pending=s.transactions.pending
        ),
    ),
    row(
        api.FIND_COORDINATOR,
        lambda s: FindCoordinator(s.placement),
    ),
    row(
        api.JOIN_GROUP,
        lambda s: JoinGroup(s.groups),
        size_max=join_group.REQUEST_BYTES_MAX,
    ),
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
        lambda _: ApiVersions({each.key: each.advertised for each in HANDLERS}),
        answer_unknown_version=unsupported,
    ),
    row(
        api.CREATE_TOPICS,
        lambda s: CreateTopics(
            catalog=s.catalog,
            replicas=kafka_services.replicas(s),
            defaults=s.defaults,
            config=s.topics_config,
            durability=s.durability,
            throttling=s.throttling,
        ),
    ),
    row(
        api.DELETE_TOPICS,
        lambda s: DeleteTopics(
            catalog=s.catalog,
            durability=s.durability,
            throttling=s.throttling,
        ),
    ),
    row(
        api.DELETE_RECORDS,
        lambda s: DeleteRecords(
            topics=s.store.topics,
            queues=s.store.queues,
            reader=s.store.reader,
            durability=s.durability,
        ),
    ),
    row(
        api.INIT_PRODUCER_ID,
        lambda s: InitProducerId(
            producers=s.producers, coordinator=s.coordinator, durability=s.durability
        ),
    ),
    row(api.OFFSET_FOR_LEADER_EPOCH, kafka_services.offset_for_leader_epoch),
    row(
        api.ADD_PARTITIONS_TO_TXN,
        lambda s: AddPartitionsToTxn(
            topics=s.store.topics, coordinator=s.coordinator, durability=s.durability
        ),
    ),
    row(
        api.ADD_OFFSETS_TO_TXN,
        lambda s: AddOffsetsToTxn(coordinator=s.coordinator, durability=s.durability),
    ),
    row(
        api.END_TXN,
        lambda s: EndTxn(coordinator=s.coordinator, durability=s.durability),
    ),
    row(api.WRITE_TXN_MARKERS, kafka_services.write_txn_markers),
    row(
        api.TXN_OFFSET_COMMIT,
        lambda s: TxnOffsetCommit(
            topics=s.store.topics,
            groups=s.groups,
            coordinator=s.coordinator,
            durability=s.durability,
            metadata_bytes_max=s.groups_config.metadata_bytes_max,
        ),
    ),
    row(
        api.DESCRIBE_CONFIGS,
        lambda s: DescribeConfigs(
            catalog=s.catalog,
            defaults=s.defaults,
            node_id=s.identity.node_id,
            broker_configs=s.broker_configs,
            configs=s.configs,
        ),
    ),
    row(
        api.ALTER_CONFIGS,
        lambda s: AlterConfigs(alterable=kafka_services.alterable(s), durability=s.durability),
    ),
    row(
        api.ALTER_REPLICA_LOG_DIRS,
        lambda s: AlterReplicaLogDirs(catalog=s.catalog, path=s.data_dir),
    ),
    row(api.DESCRIBE_LOG_DIRS, kafka_services.describe_log_dirs),
    row(
        api.CREATE_PARTITIONS,
        lambda s: CreatePartitions(
            catalog=s.catalog,
            replicas=kafka_services.replicas(s),
            durability=s.durability,
            throttling=s.throttling,
        ),
    ),
    row(
        api.DELETE_GROUPS,
        lambda s: DeleteGroups(groups=s.groups, durability=s.durability),
    ),
    row(api.ELECT_LEADERS, lambda s: ElectLeaders(s.catalog)),
    row(
        api.INCREMENTAL_ALTER_CONFIGS,
        lambda s: IncrementalAlterConfigs(
            alterable=kafka_services.alterable(s, BROKER_LOGGER=LoggerLevels()),
            durability=s.durability,
        ),
    ),
    row(
        api.ALTER_PARTITION_REASSIGNMENTS,
        lambda s: AlterPartitionReassignments(catalog=s.catalog, node_id=s.identity.node_id),
    ),
    row(api.LIST_PARTITION_REASSIGNMENTS, lambda _: ListPartitionReassignments()),
    row(
        api.OFFSET_DELETE,
        lambda s: OffsetDelete(
            catalog=s.catalog,
            progress=s.progress,
            groups=s.groups,
            durability=s.durability,
        ),
    ),
    row(
        api.DESCRIBE_CLIENT_QUOTAS,
        lambda s: DescribeClientQuotas(s.quotas),
    ),
    row(
        api.ALTER_CLIENT_QUOTAS,
        lambda s: AlterClientQuotas(quotas=s.quotas, durability=s.durability),
    ),
    row(
        api.DESCRIBE_QUORUM,
        lambda s: DescribeQuorum(
            node_id=s.identity.node_id,
            advertised=s.advertised,
            log=s.store.log,
            epochs=s.store.epochs,
            clock=s.store.clock,
        ),
    ),
    row(api.UPDATE_FEATURES, lambda _: UpdateFeatures(FEATURES)),
    row(
        api.DESCRIBE_CLUSTER,
        lambda s: DescribeCluster(placement=s.placement, cluster_id=s.identity.cluster_id),
    ),
    row(
        api.DESCRIBE_PRODUCERS,
        lambda s: DescribeProducers(
            catalog=s.catalog, producers=s.producers, stable_offsets=s.stable_offsets
        ),
    ),
    row(
        api.DESCRIBE_TRANSACTIONS,
        lambda s: DescribeTransactions(transactions=s.transactions, topics=s.store.topics),
    ),
    row(
        api.LIST_TRANSACTIONS,
        lambda s: ListTransactions(transactions=s.transactions, clock=s.store.clock),
    ),
    row(
        api.LIST_CONFIG_RESOURCES,
        lambda s: ListConfigResources(
            catalog=s.catalog, node_id=s.identity.node_id, configs=s.configs
        ),
    ),
    row(
        api.DESCRIBE_TOPIC_PARTITIONS,
        lambda s: DescribeTopicPartitions(catalog=s.catalog, placement=s.placement),
    ),
)
