"""The rows of the table of handlers that administer: topics, configs, quotas, users, grants; and
those of client metrics."""

from rockgate.gateway.compose.kafka import services as kafka_services
from rockgate.gateway.compose.kafka.services import Services
from rockgate.gateway.kafka.configs.loggers import LoggerLevels
from rockgate.gateway.kafka.handlers import push_telemetry
from rockgate.gateway.kafka.handlers.alter_client_quotas import AlterClientQuotas
from rockgate.gateway.kafka.handlers.alter_configs import AlterConfigs
from rockgate.gateway.kafka.handlers.alter_partition_reassignments import (
    AlterPartitionReassignments,
)
from rockgate.gateway.kafka.handlers.alter_replica_log_dirs import AlterReplicaLogDirs
from rockgate.gateway.kafka.handlers.alter_user_scram_credentials import AlterUserScramCredentials
from rockgate.gateway.kafka.handlers.create_acls import CreateAcls
from rockgate.gateway.kafka.handlers.create_delegation_token import CreateDelegationToken
from rockgate.gateway.kafka.handlers.create_partitions import CreatePartitions
from rockgate.gateway.kafka.handlers.delete_acls import DeleteAcls
from rockgate.gateway.kafka.handlers.delete_records import DeleteRecords
from rockgate.gateway.kafka.handlers.delete_topics import DeleteTopics
from rockgate.gateway.kafka.handlers.describe_acls import DescribeAcls
from rockgate.gateway.kafka.handlers.describe_client_quotas import DescribeClientQuotas
from rockgate.gateway.kafka.handlers.describe_cluster import DescribeCluster
from rockgate.gateway.kafka.handlers.describe_configs import DescribeConfigs
from rockgate.gateway.kafka.handlers.describe_delegation_token import DescribeDelegationToken
from rockgate.gateway.kafka.handlers.describe_producers import DescribeProducers
from rockgate.gateway.kafka.handlers.describe_quorum import DescribeQuorum
from rockgate.gateway.kafka.handlers.describe_topic_partitions import DescribeTopicPartitions
from rockgate.gateway.kafka.handlers.describe_user_scram_credentials import (
    DescribeUserScramCredentials,
)
from rockgate.gateway.kafka.handlers.elect_leaders import ElectLeaders
from rockgate.gateway.kafka.handlers.expire_delegation_token import ExpireDelegationToken
from rockgate.gateway.kafka.handlers.get_telemetry_subscriptions import GetTelemetrySubscriptions
from rockgate.gateway.kafka.handlers.incremental_alter_configs import IncrementalAlterConfigs
from rockgate.gateway.kafka.handlers.list_config_resources import ListConfigResources
from rockgate.gateway.kafka.handlers.list_partition_reassignments import ListPartitionReassignments
from rockgate.gateway.kafka.handlers.push_telemetry import PushTelemetry
from rockgate.gateway.kafka.handlers.renew_delegation_token import RenewDelegationToken
from rockgate.gateway.kafka.request.handler import Row, row
from rockgate.protocol.kafka import api

ADMIN_HANDLERS: tuple[Row[Services], ...] = (
    row(
        api.CREATE_TOPICS,
        kafka_services.create_topics,
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
    row(api.DESCRIBE_ACLS, lambda s: DescribeAcls(s.security.deciding_grants)),
    row(
        api.CREATE_ACLS,
        lambda s: CreateAcls(
            grants=s.security.deciding_grants, durability=s.durability, audit=s.security.audit
        ),
    ),
    row(
        api.DELETE_ACLS,
        lambda s: DeleteAcls(
            grants=s.security.deciding_grants, durability=s.durability, audit=s.security.audit
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
            changeable=s.changed,
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
        api.CREATE_DELEGATION_TOKEN,
        lambda s: CreateDelegationToken(
            tokens=s.security.tokens,
            permitted=s.permitted,
            durability=s.durability,
            audit=s.security.audit,
        ),
    ),
    row(
        api.RENEW_DELEGATION_TOKEN,
        lambda s: RenewDelegationToken(
            tokens=s.security.tokens, durability=s.durability, audit=s.security.audit
        ),
    ),
    row(
        api.EXPIRE_DELEGATION_TOKEN,
        lambda s: ExpireDelegationToken(
            tokens=s.security.tokens, durability=s.durability, audit=s.security.audit
        ),
    ),
    row(
        api.DESCRIBE_DELEGATION_TOKEN,
        lambda s: DescribeDelegationToken(tokens=s.security.tokens, permitted=s.permitted),
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
        api.DESCRIBE_CLIENT_QUOTAS,
        lambda s: DescribeClientQuotas(s.quotas),
    ),
    row(
        api.ALTER_CLIENT_QUOTAS,
        lambda s: AlterClientQuotas(quotas=s.quotas, durability=s.durability),
    ),
    row(
        api.DESCRIBE_USER_SCRAM_CREDENTIALS,
        lambda s: DescribeUserScramCredentials(s.security.users),
    ),
    row(
        api.ALTER_USER_SCRAM_CREDENTIALS,
        lambda s: AlterUserScramCredentials(
            users=s.security.users, durability=s.durability, audit=s.security.audit
        ),
    ),
    row(
        api.DESCRIBE_QUORUM,
        lambda s: DescribeQuorum(
            node_id=s.identity.node_id,
            log=s.store.log,
            epochs=s.store.epochs,
            clock=s.store.clock,
        ),
    ),
    row(
        api.DESCRIBE_CLUSTER,
        lambda s: DescribeCluster(
            placement=s.placement, cluster_id=s.identity.cluster_id, permitted=s.permitted
        ),
    ),
    row(
        api.DESCRIBE_PRODUCERS,
        lambda s: DescribeProducers(
            catalog=s.catalog, producers=s.producers, stable_offsets=s.stable_offsets
        ),
    ),
    row(
        api.LIST_CONFIG_RESOURCES,
        lambda s: ListConfigResources(
            catalog=s.catalog, node_id=s.identity.node_id, configs=s.configs
        ),
    ),
    row(
        api.DESCRIBE_TOPIC_PARTITIONS,
        lambda s: DescribeTopicPartitions(
            catalog=s.catalog, placement=s.placement, permitted=s.permitted
        ),
    ),
    row(
        api.GET_TELEMETRY_SUBSCRIPTIONS,
        lambda s: GetTelemetrySubscriptions(
            s.clients, push_bytes_max=s.client_metrics_config.push_bytes_max
        ),
    ),
    row(
        api.PUSH_TELEMETRY,
        lambda s: PushTelemetry(s.clients, s.threads, s.client_metrics_config),
        size_max=push_telemetry.REQUEST_BYTES_MAX,
        too_large=push_telemetry.TOO_LARGE,
    ),
)
