"""The table of APIs: keys, versions and header versions.

Adding an API is a module in `messages` and a line here; everything that covers all APIs (headers,
oracle tests, hostile input, documentation) is derived from this table.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_share_group_offsets,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_share_group_offsets,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    expire_delegation_token,
    fetch,
    find_coordinator,
    get_telemetry_subscriptions,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    push_telemetry,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    streams_group_describe,
    streams_group_heartbeat,
    sync_group,
    txn_offset_commit,
    update_features,
    write_txn_markers,
)
from rockgate.protocol.kafka.schema import declaration_of
from rockgate.protocol.kafka.versions import Versions

Request = TypeVar("Request")
Response = TypeVar("Response")

__all__ = [
    "APIS",
    "Api",
    "ApiKey",
    "request_header_version",
    "response_header_version",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api(Generic[Request, Response]):
    """One API: its two messages, and the versions that exist of them."""

    key: ApiKey
    name: str
    request: type[Request]
    response: type[Response]
    versions: Versions
    """The versions that are declared and can be decoded."""
    advertised: Versions
    """The versions that a broker with all of `versions` advertises; wider for Produce alone."""
    flexible: Versions


def _api(
    request: type[Request], response: type[Response], advertised: str | None = None
) -> Api[Request, Response]:
    asked, answered = declaration_of(request), declaration_of(response)
    assert asked.key is not None and asked.key == answered.key, request
    assert asked.versions == answered.versions, request
    assert asked.flexible == answered.flexible, request
    return Api(
        key=asked.key,
        name=asked.name.removesuffix("Request"),
        request=request,
        response=response,
        versions=asked.versions,
        advertised=Versions.parse(advertised) if advertised else asked.versions,
        flexible=asked.flexible,
    )


# Versions 0-2 are advertised and refused, as Kafka does: librdkafka before 2.11.1 takes their
# absence for a broker that cannot read compressed batches (KAFKA-18659).
PRODUCE = _api(produce.ProduceRequest, produce.ProduceResponse, advertised="0-13")
FETCH = _api(fetch.FetchRequest, fetch.FetchResponse)
LIST_OFFSETS = _api(list_offsets.ListOffsetsRequest, list_offsets.ListOffsetsResponse)
METADATA = _api(metadata.MetadataRequest, metadata.MetadataResponse)
OFFSET_COMMIT = _api(offset_commit.OffsetCommitRequest, offset_commit.OffsetCommitResponse)
OFFSET_FETCH = _api(offset_fetch.OffsetFetchRequest, offset_fetch.OffsetFetchResponse)
FIND_COORDINATOR = _api(
    find_coordinator.FindCoordinatorRequest, find_coordinator.FindCoordinatorResponse
)
JOIN_GROUP = _api(join_group.JoinGroupRequest, join_group.JoinGroupResponse)
HEARTBEAT = _api(heartbeat.HeartbeatRequest, heartbeat.HeartbeatResponse)
LEAVE_GROUP = _api(leave_group.LeaveGroupRequest, leave_group.LeaveGroupResponse)
SYNC_GROUP = _api(sync_group.SyncGroupRequest, sync_group.SyncGroupResponse)
DESCRIBE_GROUPS = _api(
    describe_groups.DescribeGroupsRequest, describe_groups.DescribeGroupsResponse
)
LIST_GROUPS = _api(list_groups.ListGroupsRequest, list_groups.ListGroupsResponse)
SASL_HANDSHAKE = _api(sasl_handshake.SaslHandshakeRequest, sasl_handshake.SaslHandshakeResponse)
API_VERSIONS = _api(api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse)
CREATE_TOPICS = _api(create_topics.CreateTopicsRequest, create_topics.CreateTopicsResponse)
DELETE_TOPICS = _api(delete_topics.DeleteTopicsRequest, delete_topics.DeleteTopicsResponse)
DELETE_RECORDS = _api(delete_records.DeleteRecordsRequest, delete_records.DeleteRecordsResponse)
INIT_PRODUCER_ID = _api(
    init_producer_id.InitProducerIdRequest, init_producer_id.InitProducerIdResponse
)
OFFSET_FOR_LEADER_EPOCH = _api(
    offset_for_leader_epoch.OffsetForLeaderEpochRequest,
    offset_for_leader_epoch.OffsetForLeaderEpochResponse,
)
ADD_PARTITIONS_TO_TXN = _api(
    add_partitions_to_txn.AddPartitionsToTxnRequest,
    add_partitions_to_txn.AddPartitionsToTxnResponse,
)
ADD_OFFSETS_TO_TXN = _api(
    add_offsets_to_txn.AddOffsetsToTxnRequest, add_offsets_to_txn.AddOffsetsToTxnResponse
)
END_TXN = _api(end_txn.EndTxnRequest, end_txn.EndTxnResponse)
WRITE_TXN_MARKERS = _api(
    write_txn_markers.WriteTxnMarkersRequest, write_txn_markers.WriteTxnMarkersResponse
)
TXN_OFFSET_COMMIT = _api(
    txn_offset_commit.TxnOffsetCommitRequest, txn_offset_commit.TxnOffsetCommitResponse
)
DESCRIBE_ACLS = _api(describe_acls.DescribeAclsRequest, describe_acls.DescribeAclsResponse)
CREATE_ACLS = _api(create_acls.CreateAclsRequest, create_acls.CreateAclsResponse)
DELETE_ACLS = _api(delete_acls.DeleteAclsRequest, delete_acls.DeleteAclsResponse)
DESCRIBE_CONFIGS = _api(
    describe_configs.DescribeConfigsRequest, describe_configs.DescribeConfigsResponse
)
ALTER_CONFIGS = _api(alter_configs.AlterConfigsRequest, alter_configs.AlterConfigsResponse)
ALTER_REPLICA_LOG_DIRS = _api(
    alter_replica_log_dirs.AlterReplicaLogDirsRequest,
    alter_replica_log_dirs.AlterReplicaLogDirsResponse,
)
DESCRIBE_LOG_DIRS = _api(
    describe_log_dirs.DescribeLogDirsRequest, describe_log_dirs.DescribeLogDirsResponse
)
SASL_AUTHENTICATE = _api(
    sasl_authenticate.SaslAuthenticateRequest, sasl_authenticate.SaslAuthenticateResponse
)
CREATE_PARTITIONS = _api(
    create_partitions.CreatePartitionsRequest, create_partitions.CreatePartitionsResponse
)
CREATE_DELEGATION_TOKEN = _api(
    create_delegation_token.CreateDelegationTokenRequest,
    create_delegation_token.CreateDelegationTokenResponse,
)
RENEW_DELEGATION_TOKEN = _api(
    renew_delegation_token.RenewDelegationTokenRequest,
    renew_delegation_token.RenewDelegationTokenResponse,
)
EXPIRE_DELEGATION_TOKEN = _api(
    expire_delegation_token.ExpireDelegationTokenRequest,
    expire_delegation_token.ExpireDelegationTokenResponse,
)
DESCRIBE_DELEGATION_TOKEN = _api(
    describe_delegation_token.DescribeDelegationTokenRequest,
    describe_delegation_token.DescribeDelegationTokenResponse,
)
DELETE_GROUPS = _api(delete_groups.DeleteGroupsRequest, delete_groups.DeleteGroupsResponse)
ELECT_LEADERS = _api(elect_leaders.ElectLeadersRequest, elect_leaders.ElectLeadersResponse)
INCREMENTAL_ALTER_CONFIGS = _api(
    incremental_alter_configs.IncrementalAlterConfigsRequest,
    incremental_alter_configs.IncrementalAlterConfigsResponse,
)
ALTER_PARTITION_REASSIGNMENTS = _api(
    alter_partition_reassignments.AlterPartitionReassignmentsRequest,
    alter_partition_reassignments.AlterPartitionReassignmentsResponse,
)
LIST_PARTITION_REASSIGNMENTS = _api(
    list_partition_reassignments.ListPartitionReassignmentsRequest,
    list_partition_reassignments.ListPartitionReassignmentsResponse,
)
OFFSET_DELETE = _api(offset_delete.OffsetDeleteRequest, offset_delete.OffsetDeleteResponse)
DESCRIBE_CLIENT_QUOTAS = _api(
    describe_client_quotas.DescribeClientQuotasRequest,
    describe_client_quotas.DescribeClientQuotasResponse,
)
ALTER_CLIENT_QUOTAS = _api(
    alter_client_quotas.AlterClientQuotasRequest, alter_client_quotas.AlterClientQuotasResponse
)
DESCRIBE_USER_SCRAM_CREDENTIALS = _api(
    describe_user_scram_credentials.DescribeUserScramCredentialsRequest,
    describe_user_scram_credentials.DescribeUserScramCredentialsResponse,
)
ALTER_USER_SCRAM_CREDENTIALS = _api(
    alter_user_scram_credentials.AlterUserScramCredentialsRequest,
    alter_user_scram_credentials.AlterUserScramCredentialsResponse,
)
DESCRIBE_QUORUM = _api(
    describe_quorum.DescribeQuorumRequest, describe_quorum.DescribeQuorumResponse
)
UPDATE_FEATURES = _api(
    update_features.UpdateFeaturesRequest, update_features.UpdateFeaturesResponse
)
DESCRIBE_CLUSTER = _api(
    describe_cluster.DescribeClusterRequest, describe_cluster.DescribeClusterResponse
)
DESCRIBE_PRODUCERS = _api(
    describe_producers.DescribeProducersRequest, describe_producers.DescribeProducersResponse
)
DESCRIBE_TRANSACTIONS = _api(
    describe_transactions.DescribeTransactionsRequest,
    describe_transactions.DescribeTransactionsResponse,
)
LIST_TRANSACTIONS = _api(
    list_transactions.ListTransactionsRequest, list_transactions.ListTransactionsResponse
)
CONSUMER_GROUP_HEARTBEAT = _api(
    consumer_group_heartbeat.ConsumerGroupHeartbeatRequest,
    consumer_group_heartbeat.ConsumerGroupHeartbeatResponse,
)
CONSUMER_GROUP_DESCRIBE = _api(
    consumer_group_describe.ConsumerGroupDescribeRequest,
    consumer_group_describe.ConsumerGroupDescribeResponse,
)
GET_TELEMETRY_SUBSCRIPTIONS = _api(
    get_telemetry_subscriptions.GetTelemetrySubscriptionsRequest,
    get_telemetry_subscriptions.GetTelemetrySubscriptionsResponse,
)
PUSH_TELEMETRY = _api(push_telemetry.PushTelemetryRequest, push_telemetry.PushTelemetryResponse)
LIST_CONFIG_RESOURCES = _api(
    list_config_resources.ListConfigResourcesRequest,
    list_config_resources.ListConfigResourcesResponse,
)
DESCRIBE_TOPIC_PARTITIONS = _api(
    describe_topic_partitions.DescribeTopicPartitionsRequest,
    describe_topic_partitions.DescribeTopicPartitionsResponse,
)
SHARE_GROUP_HEARTBEAT = _api(
    share_group_heartbeat.ShareGroupHeartbeatRequest,
    share_group_heartbeat.ShareGroupHeartbeatResponse,
)
SHARE_GROUP_DESCRIBE = _api(
    share_group_describe.ShareGroupDescribeRequest, share_group_describe.ShareGroupDescribeResponse
)
SHARE_FETCH = _api(share_fetch.ShareFetchRequest, share_fetch.ShareFetchResponse)
SHARE_ACKNOWLEDGE = _api(
    share_acknowledge.ShareAcknowledgeRequest, share_acknowledge.ShareAcknowledgeResponse
)
STREAMS_GROUP_HEARTBEAT = _api(
    streams_group_heartbeat.StreamsGroupHeartbeatRequest,
    streams_group_heartbeat.StreamsGroupHeartbeatResponse,
)
STREAMS_GROUP_DESCRIBE = _api(
    streams_group_describe.StreamsGroupDescribeRequest,
    streams_group_describe.StreamsGroupDescribeResponse,
)
DESCRIBE_SHARE_GROUP_OFFSETS = _api(
    describe_share_group_offsets.DescribeShareGroupOffsetsRequest,
    describe_share_group_offsets.DescribeShareGroupOffsetsResponse,
)
ALTER_SHARE_GROUP_OFFSETS = _api(
    alter_share_group_offsets.AlterShareGroupOffsetsRequest,
    alter_share_group_offsets.AlterShareGroupOffsetsResponse,
)
DELETE_SHARE_GROUP_OFFSETS = _api(
    delete_share_group_offsets.DeleteShareGroupOffsetsRequest,
    delete_share_group_offsets.DeleteShareGroupOffsetsResponse,
)

APIS: dict[ApiKey, Api[Any, Any]] = {
    api.key: api
    for api in (
        PRODUCE,
        FETCH,
        LIST_OFFSETS,
        METADATA,
        OFFSET_COMMIT,
        OFFSET_FETCH,
        FIND_COORDINATOR,
        JOIN_GROUP,
        HEARTBEAT,
        LEAVE_GROUP,
        SYNC_GROUP,
        DESCRIBE_GROUPS,
        LIST_GROUPS,
        SASL_HANDSHAKE,
        API_VERSIONS,
        CREATE_TOPICS,
        DELETE_TOPICS,
        DELETE_RECORDS,
        INIT_PRODUCER_ID,
        OFFSET_FOR_LEADER_EPOCH,
        ADD_PARTITIONS_TO_TXN,
        ADD_OFFSETS_TO_TXN,
        END_TXN,
        WRITE_TXN_MARKERS,
        TXN_OFFSET_COMMIT,
        DESCRIBE_ACLS,
        CREATE_ACLS,
        DELETE_ACLS,
        DESCRIBE_CONFIGS,
        ALTER_CONFIGS,
        ALTER_REPLICA_LOG_DIRS,
        DESCRIBE_LOG_DIRS,
        SASL_AUTHENTICATE,
        CREATE_PARTITIONS,
        CREATE_DELEGATION_TOKEN,
        RENEW_DELEGATION_TOKEN,
        EXPIRE_DELEGATION_TOKEN,
        DESCRIBE_DELEGATION_TOKEN,
        DELETE_GROUPS,
        ELECT_LEADERS,
        INCREMENTAL_ALTER_CONFIGS,
        ALTER_PARTITION_REASSIGNMENTS,
        LIST_PARTITION_REASSIGNMENTS,
        OFFSET_DELETE,
        DESCRIBE_CLIENT_QUOTAS,
        ALTER_CLIENT_QUOTAS,
        DESCRIBE_USER_SCRAM_CREDENTIALS,
        ALTER_USER_SCRAM_CREDENTIALS,
        DESCRIBE_QUORUM,
        UPDATE_FEATURES,
        DESCRIBE_CLUSTER,
        DESCRIBE_PRODUCERS,
        DESCRIBE_TRANSACTIONS,
        LIST_TRANSACTIONS,
        CONSUMER_GROUP_HEARTBEAT,
        CONSUMER_GROUP_DESCRIBE,
        GET_TELEMETRY_SUBSCRIPTIONS,
        PUSH_TELEMETRY,
        LIST_CONFIG_RESOURCES,
        DESCRIBE_TOPIC_PARTITIONS,
        SHARE_GROUP_HEARTBEAT,
        SHARE_GROUP_DESCRIBE,
        SHARE_FETCH,
        SHARE_ACKNOWLEDGE,
        STREAMS_GROUP_HEARTBEAT,
        STREAMS_GROUP_DESCRIBE,
        DESCRIBE_SHARE_GROUP_OFFSETS,
        ALTER_SHARE_GROUP_OFFSETS,
        DELETE_SHARE_GROUP_OFFSETS,
    )
}


def request_header_version(key: ApiKey, version: int) -> int:
    """2 for flexible versions, whose header ends with tagged fields; 1 for the others."""
    return 2 if version in APIS[key].flexible else 1


def response_header_version(key: ApiKey, version: int) -> int:
    """1 for flexible versions, 0 for the others and always for ApiVersions.

    A client reads the response to its first ApiVersions before it knows what the server speaks, so
    that one header never changes (KIP-511).
    """
    return 1 if version in APIS[key].flexible and key is not ApiKey.API_VERSIONS else 0
