"""The table of APIs: what exists, in which versions, under which header.

Adding an API is a module in `messages` and a line here; everything that must hold for every API
(headers, oracle tests, hostile input, documentation) is computed from this table.
"""

from dataclasses import dataclass
from typing import Any

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
    sasl_authenticate,
    sasl_handshake,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    sync_group,
    txn_offset_commit,
    update_features,
    write_txn_markers,
)
from rockgate.protocol.kafka.schema import declaration_of
from rockgate.protocol.kafka.versions import Versions

__all__ = [
    "APIS",
    "Api",
    "ApiKey",
    "request_header_version",
    "response_header_version",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One API: its two messages, and the versions that exist of them."""

    key: ApiKey
    name: str
    request: type[Any]
    response: type[Any]
    versions: Versions
    """The versions that are declared and can be decoded."""
    advertised: Versions
    """What a broker that serves all of `versions` says it serves; wider for Produce alone."""
    flexible: Versions


def _api(request: type[Any], response: type[Any], advertised: str | None = None) -> Api:
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


APIS: dict[ApiKey, Api] = {
    api.key: api
    for api in (
        # Versions 0-2 are advertised and refused, as Kafka does: librdkafka before 2.11.1 takes
        # their absence for a broker that cannot read compressed batches (KAFKA-18659).
        _api(produce.ProduceRequest, produce.ProduceResponse, advertised="0-13"),
        _api(fetch.FetchRequest, fetch.FetchResponse),
        _api(list_offsets.ListOffsetsRequest, list_offsets.ListOffsetsResponse),
        _api(metadata.MetadataRequest, metadata.MetadataResponse),
        _api(offset_commit.OffsetCommitRequest, offset_commit.OffsetCommitResponse),
        _api(offset_fetch.OffsetFetchRequest, offset_fetch.OffsetFetchResponse),
        _api(find_coordinator.FindCoordinatorRequest, find_coordinator.FindCoordinatorResponse),
        _api(join_group.JoinGroupRequest, join_group.JoinGroupResponse),
        _api(heartbeat.HeartbeatRequest, heartbeat.HeartbeatResponse),
        _api(leave_group.LeaveGroupRequest, leave_group.LeaveGroupResponse),
        _api(sync_group.SyncGroupRequest, sync_group.SyncGroupResponse),
        _api(describe_groups.DescribeGroupsRequest, describe_groups.DescribeGroupsResponse),
        _api(list_groups.ListGroupsRequest, list_groups.ListGroupsResponse),
        _api(sasl_handshake.SaslHandshakeRequest, sasl_handshake.SaslHandshakeResponse),
        _api(api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse),
        _api(create_topics.CreateTopicsRequest, create_topics.CreateTopicsResponse),
        _api(delete_topics.DeleteTopicsRequest, delete_topics.DeleteTopicsResponse),
        _api(delete_records.DeleteRecordsRequest, delete_records.DeleteRecordsResponse),
        _api(init_producer_id.InitProducerIdRequest, init_producer_id.InitProducerIdResponse),
        _api(
            offset_for_leader_epoch.OffsetForLeaderEpochRequest,
            offset_for_leader_epoch.OffsetForLeaderEpochResponse,
        ),
        _api(
            add_partitions_to_txn.AddPartitionsToTxnRequest,
            add_partitions_to_txn.AddPartitionsToTxnResponse,
        ),
        _api(add_offsets_to_txn.AddOffsetsToTxnRequest, add_offsets_to_txn.AddOffsetsToTxnResponse),
        _api(end_txn.EndTxnRequest, end_txn.EndTxnResponse),
        _api(write_txn_markers.WriteTxnMarkersRequest, write_txn_markers.WriteTxnMarkersResponse),
        _api(txn_offset_commit.TxnOffsetCommitRequest, txn_offset_commit.TxnOffsetCommitResponse),
        _api(describe_acls.DescribeAclsRequest, describe_acls.DescribeAclsResponse),
        _api(create_acls.CreateAclsRequest, create_acls.CreateAclsResponse),
        _api(delete_acls.DeleteAclsRequest, delete_acls.DeleteAclsResponse),
        _api(describe_configs.DescribeConfigsRequest, describe_configs.DescribeConfigsResponse),
        _api(alter_configs.AlterConfigsRequest, alter_configs.AlterConfigsResponse),
        _api(
            alter_replica_log_dirs.AlterReplicaLogDirsRequest,
            alter_replica_log_dirs.AlterReplicaLogDirsResponse,
        ),
        _api(describe_log_dirs.DescribeLogDirsRequest, describe_log_dirs.DescribeLogDirsResponse),
        _api(sasl_authenticate.SaslAuthenticateRequest, sasl_authenticate.SaslAuthenticateResponse),
        _api(create_partitions.CreatePartitionsRequest, create_partitions.CreatePartitionsResponse),
        _api(delete_groups.DeleteGroupsRequest, delete_groups.DeleteGroupsResponse),
        _api(elect_leaders.ElectLeadersRequest, elect_leaders.ElectLeadersResponse),
        _api(
            incremental_alter_configs.IncrementalAlterConfigsRequest,
            incremental_alter_configs.IncrementalAlterConfigsResponse,
        ),
        _api(
            alter_partition_reassignments.AlterPartitionReassignmentsRequest,
            alter_partition_reassignments.AlterPartitionReassignmentsResponse,
        ),
        _api(
            list_partition_reassignments.ListPartitionReassignmentsRequest,
            list_partition_reassignments.ListPartitionReassignmentsResponse,
        ),
        _api(offset_delete.OffsetDeleteRequest, offset_delete.OffsetDeleteResponse),
        _api(
            describe_client_quotas.DescribeClientQuotasRequest,
            describe_client_quotas.DescribeClientQuotasResponse,
        ),
        _api(
            alter_client_quotas.AlterClientQuotasRequest,
            alter_client_quotas.AlterClientQuotasResponse,
        ),
        _api(
            describe_user_scram_credentials.DescribeUserScramCredentialsRequest,
            describe_user_scram_credentials.DescribeUserScramCredentialsResponse,
        ),
        _api(
            alter_user_scram_credentials.AlterUserScramCredentialsRequest,
            alter_user_scram_credentials.AlterUserScramCredentialsResponse,
        ),
        _api(describe_quorum.DescribeQuorumRequest, describe_quorum.DescribeQuorumResponse),
        _api(update_features.UpdateFeaturesRequest, update_features.UpdateFeaturesResponse),
        _api(describe_cluster.DescribeClusterRequest, describe_cluster.DescribeClusterResponse),
        _api(
            describe_producers.DescribeProducersRequest,
            describe_producers.DescribeProducersResponse,
        ),
        _api(
            describe_transactions.DescribeTransactionsRequest,
            describe_transactions.DescribeTransactionsResponse,
        ),
        _api(list_transactions.ListTransactionsRequest, list_transactions.ListTransactionsResponse),
        _api(
            consumer_group_heartbeat.ConsumerGroupHeartbeatRequest,
            consumer_group_heartbeat.ConsumerGroupHeartbeatResponse,
        ),
        _api(
            consumer_group_describe.ConsumerGroupDescribeRequest,
            consumer_group_describe.ConsumerGroupDescribeResponse,
        ),
        _api(
            get_telemetry_subscriptions.GetTelemetrySubscriptionsRequest,
            get_telemetry_subscriptions.GetTelemetrySubscriptionsResponse,
        ),
        _api(push_telemetry.PushTelemetryRequest, push_telemetry.PushTelemetryResponse),
        _api(
            list_config_resources.ListConfigResourcesRequest,
            list_config_resources.ListConfigResourcesResponse,
        ),
        _api(
            describe_topic_partitions.DescribeTopicPartitionsRequest,
            describe_topic_partitions.DescribeTopicPartitionsResponse,
        ),
        _api(
            share_group_heartbeat.ShareGroupHeartbeatRequest,
            share_group_heartbeat.ShareGroupHeartbeatResponse,
        ),
        _api(
            share_group_describe.ShareGroupDescribeRequest,
            share_group_describe.ShareGroupDescribeResponse,
        ),
        _api(share_fetch.ShareFetchRequest, share_fetch.ShareFetchResponse),
        _api(share_acknowledge.ShareAcknowledgeRequest, share_acknowledge.ShareAcknowledgeResponse),
        _api(
            describe_share_group_offsets.DescribeShareGroupOffsetsRequest,
            describe_share_group_offsets.DescribeShareGroupOffsetsResponse,
        ),
        _api(
            alter_share_group_offsets.AlterShareGroupOffsetsRequest,
            alter_share_group_offsets.AlterShareGroupOffsetsResponse,
        ),
        _api(
            delete_share_group_offsets.DeleteShareGroupOffsetsRequest,
            delete_share_group_offsets.DeleteShareGroupOffsetsResponse,
        ),
    )
}


def request_header_version(key: ApiKey, version: int) -> int:
    """2 for flexible versions, which end their header with tagged fields; 1 for the others."""
    return 2 if version in APIS[key].flexible else 1


def response_header_version(key: ApiKey, version: int) -> int:
    """1 for flexible versions, 0 for the others and always for ApiVersions.

    A client reads the response to its first ApiVersions before it knows what the server speaks, so
    that one header never changes (KIP-511).
    """
    return 1 if version in APIS[key].flexible and key is not ApiKey.API_VERSIONS else 0
