"""The table of handlers: ApiVersions and docs/reference/protocol.md come from it.

One line per API, in key order; those of administration are in `admin_table`. A row's `make`
picks the services that its handler uses. No handler imports another.
"""

from rockgate.gateway.compose.kafka import services as kafka_services
from rockgate.gateway.compose.kafka.admin_table import ADMIN_HANDLERS
from rockgate.gateway.compose.kafka.services import Services
from rockgate.gateway.compose.kafka.share_table import SHARE_HANDLERS
from rockgate.gateway.kafka.client_metrics.config import ClientMetricsConfig
from rockgate.gateway.kafka.features.table import features_of
from rockgate.gateway.kafka.groups.consumer.assignment.topics import CatalogTopics
from rockgate.gateway.kafka.handlers import (
    consumer_group_heartbeat,
    fetch,
    join_group,
    produce,
    sasl_authenticate,
    streams_group_heartbeat,
    sync_group,
    update_features,
)
from rockgate.gateway.kafka.handlers.add_offsets_to_txn import AddOffsetsToTxn
from rockgate.gateway.kafka.handlers.add_partitions_to_txn import AddPartitionsToTxn
from rockgate.gateway.kafka.handlers.api_versions import ApiVersions, unsupported
from rockgate.gateway.kafka.handlers.consumer_group_describe import ConsumerGroupDescribe
from rockgate.gateway.kafka.handlers.delete_groups import DeleteGroups
from rockgate.gateway.kafka.handlers.describe_groups import DescribeGroups
from rockgate.gateway.kafka.handlers.describe_transactions import DescribeTransactions
from rockgate.gateway.kafka.handlers.end_txn import EndTxn
from rockgate.gateway.kafka.handlers.find_coordinator import FindCoordinator
from rockgate.gateway.kafka.handlers.heartbeat import Heartbeat
from rockgate.gateway.kafka.handlers.init_producer_id import InitProducerId
from rockgate.gateway.kafka.handlers.join_group import JoinGroup
from rockgate.gateway.kafka.handlers.leave_group import LeaveGroup
from rockgate.gateway.kafka.handlers.list_groups import ListGroups
from rockgate.gateway.kafka.handlers.list_transactions import ListTransactions
from rockgate.gateway.kafka.handlers.metadata import Metadata
from rockgate.gateway.kafka.handlers.offset_commit import OffsetCommit
from rockgate.gateway.kafka.handlers.offset_delete import OffsetDelete
from rockgate.gateway.kafka.handlers.offset_fetch import OffsetFetch
from rockgate.gateway.kafka.handlers.sasl_authenticate import SaslAuthenticate
from rockgate.gateway.kafka.handlers.sasl_handshake import SaslHandshake
from rockgate.gateway.kafka.handlers.streams_group_describe import StreamsGroupDescribe
from rockgate.gateway.kafka.handlers.sync_group import SyncGroup
from rockgate.gateway.kafka.handlers.txn_offset_commit import TxnOffsetCommit
from rockgate.gateway.kafka.request.handler import Row, row
from rockgate.gateway.kafka.transactions.produce_check import TransactionalWrites
from rockgate.protocol.kafka import api
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.versions import Versions

_HANDLERS: tuple[Row[Services], ...] = (
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
                coordinator=s.coordinator,
                stable_offsets=s.stable_offsets,
                producers=s.producers,
            ),
            delays=s.delays,
            permitted=s.permitted,
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
            permitted=s.permitted,
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
            catalog=s.catalog,
            progress=s.progress,
            pending=s.transactions.pending,
            permitted=s.permitted,
            check=s.groups.check_fetch,
        ),
    ),
    row(
        api.FIND_COORDINATOR,
        lambda s: FindCoordinator(s.placement, s.prepare_coordinator),
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
    row(api.DESCRIBE_GROUPS, lambda s: DescribeGroups(s.groups, s.permitted)),
    row(api.LIST_GROUPS, lambda s: ListGroups(s.groups, s.permitted)),
    row(api.SASL_HANDSHAKE, lambda _: SaslHandshake()),
    row(
        api.API_VERSIONS,
        lambda s: ApiVersions(_advertised(s), s.features),
        answer_unknown_version=unsupported,
    ),
    row(
        api.UPDATE_FEATURES,
        lambda s: update_features.UpdateFeatures(
            features=features_of(_advertised(s)),
            levels=s.features,
            node_id=s.identity.node_id,
            durability=s.durability,
        ),
        size_max=update_features.REQUEST_BYTES_MAX,
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
        api.SASL_AUTHENTICATE,
        lambda _: SaslAuthenticate(),
        # A step answers before the next request is dispatched, so none is decoded beside the loop.
        is_bulk=False,
        size_max=sasl_authenticate.REQUEST_BYTES_MAX,
    ),
    row(
        api.DELETE_GROUPS,
        lambda s: DeleteGroups(groups=s.groups, durability=s.durability),
    ),
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
        api.DESCRIBE_TRANSACTIONS,
        lambda s: DescribeTransactions(
            transactions=s.transactions, topics=s.store.topics, permitted=s.permitted
        ),
    ),
    row(
        api.LIST_TRANSACTIONS,
        lambda s: ListTransactions(
            transactions=s.transactions, clock=s.store.clock, permitted=s.permitted
        ),
    ),
    row(
        api.CONSUMER_GROUP_HEARTBEAT,
        kafka_services.consumer_group_heartbeat,
        size_max=consumer_group_heartbeat.REQUEST_BYTES_MAX,
    ),
    row(
        api.CONSUMER_GROUP_DESCRIBE,
        lambda s: ConsumerGroupDescribe(s.groups, CatalogTopics(s.catalog), s.permitted),
    ),
    row(
        api.STREAMS_GROUP_HEARTBEAT,
        kafka_services.streams_group_heartbeat,
        size_max=streams_group_heartbeat.REQUEST_BYTES_MAX,
    ),
    row(
        api.STREAMS_GROUP_DESCRIBE,
        lambda s: StreamsGroupDescribe(s.groups, s.streams, s.permitted),
    ),
)

HANDLERS: tuple[Row[Services], ...] = tuple(
    sorted((*_HANDLERS, *ADMIN_HANDLERS, *SHARE_HANDLERS), key=lambda each: each.key)
)
"""All rows, in key order."""
_CLIENT_METRICS = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})


def _advertised(services: Services) -> dict[ApiKey, Versions]:
    return {each.key: each.advertised for each in opened(services.client_metrics_config)}


def opened(client_metrics: ClientMetricsConfig) -> tuple[Row[Services], ...]:
    """The rows of a server with these settings: what is opt-in is there only if it is on."""
    if client_metrics.enabled:
        return HANDLERS
    return tuple(each for each in HANDLERS if each.key not in _CLIENT_METRICS)
