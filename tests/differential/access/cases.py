"""The cells of the matrix: every API, with grants that allow it, and requests that ask for it.

A cell has a user, a topic, a group and a transactional id of its own, so that all grants are made
before the first request, and no cell sees another's effects. Each request also names a topic that
does not exist: whether it does must not be revealed to those who may not describe it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.differential.access.cells import (
    OP,
    SCENARIOS,
    TYPE,
    Case,
    Cell,
    case,
    on_cluster,
    on_group,
    on_topics,
    on_transaction,
)
from tests.differential.access.group_cases import OF_GROUPS
from tests.differential.access.security_cases import OF_SECURITY

from rockgate.protocol.kafka.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
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
    sync_group,
    txn_offset_commit,
    update_features,
    write_txn_markers,
)
from rockgate.protocol.kafka.records.record import Record, build_batch


def _batch() -> bytes:
    return bytes(build_batch([Record(0, 1_700_000_000_000, b"k", b"v")], base_offset=0))


def _produce(cell: Cell, *, by_id: bool = False) -> Any:
    return produce.ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            produce.TopicProduceData(
                name="" if by_id else name,
                topic_id=cell.topic_id if by_id else bytes(16),
                partition_data=[produce.PartitionProduceData(index=0, records=_batch())],
            )
            for name in ([cell.topic] if by_id else [cell.topic, cell.absent])
        ],
    )


def _fetch(cell: Cell, *, by_id: bool = False) -> Any:
    return fetch.FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        session_id=0,
        session_epoch=-1,
        topics=[
            fetch.FetchTopic(
                topic="" if by_id else name,
                topic_id=cell.topic_id if by_id else bytes(16),
                partitions=[
                    fetch.FetchPartition(
                        partition=0,
                        current_leader_epoch=-1,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=1 << 20,
                    )
                ],
            )
            for name in ([cell.topic] if by_id else [cell.topic, cell.absent])
        ],
    )


def _commit(cell: Cell, *, by_id: bool = False) -> Any:
    return offset_commit.OffsetCommitRequest(
        group_id=cell.group,
        generation_id_or_member_epoch=-1,
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name="" if by_id else name,
                topic_id=cell.topic_id if by_id else bytes(16),
                partitions=[
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=0, committed_metadata=""
                    )
                ],
            )
            for name in ([cell.topic] if by_id else [cell.topic, cell.absent])
        ],
    )


def _metadata(cell: Cell, *, by_id: bool = False, creates: bool = False) -> Any:
    topics = [metadata.MetadataRequestTopic(name=name) for name in (cell.topic, cell.absent)]
    if by_id:
        topics = [metadata.MetadataRequestTopic(topic_id=cell.topic_id)]
    return metadata.MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=creates,
        include_topic_authorized_operations=not creates,
    )


def _configs(cell: Cell) -> Any:
    return describe_configs.DescribeConfigsRequest(
        resources=[
            describe_configs.DescribeConfigsResource(
                resource_type=type_, resource_name=name, configuration_keys=["retention.ms"]
            )
            for type_, name in ((2, cell.topic), (2, cell.absent), (4, "1"), (32, cell.group))
        ]
    )


def _alter(cell: Cell) -> Any:
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=2,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(
                        name="retention.ms", config_operation=0, value="1000000"
                    )
                ],
            )
            for name in (cell.topic, cell.absent)
        ]
    )


CASES: Sequence[Case] = (
    case("Produce", 12, _produce, on_topics(OP.WRITE)),
    case("Produce", 13, lambda c: _produce(c, by_id=True), on_topics(OP.WRITE)),
    case("Fetch", 12, _fetch, on_topics(OP.READ)),
    case("Fetch", 17, lambda c: _fetch(c, by_id=True), on_topics(OP.READ)),
    case(
        "ListOffsets",
        10,
        lambda c: list_offsets.ListOffsetsRequest(
            replica_id=-1,
            timeout_ms=1_000,
            topics=[
                list_offsets.ListOffsetsTopic(
                    name=name,
                    partitions=[
                        list_offsets.ListOffsetsPartition(
                            partition_index=0, current_leader_epoch=-1, timestamp=-1
                        )
                    ],
                )
                for name in (c.topic, c.absent)
            ],
        ),
        on_topics(OP.DESCRIBE),
    ),
    case("Metadata", 12, _metadata, on_topics(OP.DESCRIBE)),
    case("Metadata by id", 12, lambda c: _metadata(c, by_id=True), on_topics(OP.DESCRIBE)),
    case(
        "Metadata of all",
        9,
        lambda c: metadata.MetadataRequest(topics=None, include_cluster_authorized_operations=True),
        on_topics(OP.DESCRIBE),
        on_cluster(OP.DESCRIBE),
    ),
    case(
        "Metadata that creates",
        9,
        lambda c: _metadata(c, creates=True),
        on_topics(OP.DESCRIBE),
        (OP.CREATE, TYPE.TOPIC, "absent"),
    ),
    case("OffsetCommit", 9, _commit, on_group(OP.READ), on_topics(OP.READ)),
    case(
        "OffsetCommit", 10, lambda c: _commit(c, by_id=True), on_group(OP.READ), on_topics(OP.READ)
    ),
    case("OffsetCommit without topics", 9, _commit, on_group(OP.READ)),
    case(
        "OffsetFetch",
        9,
        lambda c: offset_fetch.OffsetFetchRequest(
            groups=[
                offset_fetch.OffsetFetchRequestGroup(
                    group_id=c.group,
                    topics=[
                        offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=[0])
                        for name in (c.topic, c.absent)
                    ],
                )
            ]
        ),
        on_group(OP.DESCRIBE),
        on_topics(OP.DESCRIBE),
    ),
    case(
        "OffsetFetch",
        7,
        lambda c: offset_fetch.OffsetFetchRequest(
            group_id=c.group,
            topics=[
                offset_fetch.OffsetFetchRequestTopic(name=name, partition_indexes=[0])
                for name in (c.topic, c.absent)
            ],
        ),
        on_group(OP.DESCRIBE),
        on_topics(OP.DESCRIBE),
    ),
    case(
        "FindCoordinator of a group",
        6,
        lambda c: find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=[c.group]),
        on_group(OP.DESCRIBE),
    ),
    case(
        "FindCoordinator of a transaction",
        3,
        lambda c: find_coordinator.FindCoordinatorRequest(key_type=1, key=c.transaction),
        on_transaction(OP.DESCRIBE),
    ),
    case(
        "JoinGroup",
        9,
        lambda c: join_group.JoinGroupRequest(
            group_id=c.group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
        on_group(OP.READ),
    ),
    case(
        "Heartbeat",
        4,
        lambda c: heartbeat.HeartbeatRequest(group_id=c.group, generation_id=1, member_id="m"),
        on_group(OP.READ),
    ),
    case(
        "LeaveGroup",
        5,
        lambda c: leave_group.LeaveGroupRequest(
            group_id=c.group, members=[leave_group.MemberIdentity(member_id="m")]
        ),
        on_group(OP.READ),
    ),
    case(
        "SyncGroup",
        5,
        lambda c: sync_group.SyncGroupRequest(
            group_id=c.group,
            generation_id=1,
            member_id="m",
            protocol_type="consumer",
            protocol_name="range",
        ),
        on_group(OP.READ),
    ),
    case(
        "DescribeGroups",
        5,
        lambda c: describe_groups.DescribeGroupsRequest(
            groups=[c.group], include_authorized_operations=True
        ),
        on_group(OP.DESCRIBE),
    ),
    case("ListGroups", 5, lambda c: list_groups.ListGroupsRequest(), on_group(OP.DESCRIBE)),
    case(
        "CreateTopics",
        7,
        lambda c: create_topics.CreateTopicsRequest(
            topics=[
                create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                for name in (c.topic, c.absent)
            ],
            timeout_ms=10_000,
        ),
        on_topics(OP.CREATE),
    ),
    case(
        "DeleteTopics",
        5,
        lambda c: delete_topics.DeleteTopicsRequest(
            topic_names=[c.topic, c.absent], timeout_ms=10_000
        ),
        on_topics(OP.DELETE),
    ),
    case(
        "DeleteTopics described only",
        5,
        lambda c: delete_topics.DeleteTopicsRequest(
            topic_names=[c.topic, c.absent], timeout_ms=10_000
        ),
        on_topics(OP.DESCRIBE),
    ),
    case(
        "DeleteTopics by id",
        6,
        lambda c: delete_topics.DeleteTopicsRequest(
            topics=[delete_topics.DeleteTopicState(name=None, topic_id=c.topic_id)],
            timeout_ms=10_000,
        ),
        on_topics(OP.DELETE),
    ),
    case(
        "DeleteRecords",
        2,
        lambda c: delete_records.DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name=name,
                    partitions=[delete_records.DeleteRecordsPartition(partition_index=0, offset=0)],
                )
                for name in (c.topic, c.absent)
            ],
            timeout_ms=10_000,
        ),
        on_topics(OP.DELETE),
    ),
    case(
        "InitProducerId",
        4,
        lambda c: init_producer_id.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        ),
        on_topics(OP.WRITE),
    ),
    case(
        "InitProducerId of a transaction",
        4,
        lambda c: init_producer_id.InitProducerIdRequest(
            transactional_id=c.transaction,
            transaction_timeout_ms=60_000,
            producer_id=-1,
            producer_epoch=-1,
        ),
        on_transaction(OP.WRITE),
    ),
    case(
        "OffsetForLeaderEpoch",
        4,
        lambda c: offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            replica_id=-2,
            topics=[
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=name,
                    partitions=[
                        offset_for_leader_epoch.OffsetForLeaderPartition(
                            partition=0, current_leader_epoch=-1, leader_epoch=0
                        )
                    ],
                )
                for name in (c.topic, c.absent)
            ],
        ),
        on_topics(OP.DESCRIBE),
    ),
    case(
        "AddPartitionsToTxn",
        3,
        lambda c: add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=c.transaction,
            v3_and_below_producer_id=999_999,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0])
                for name in (c.topic, c.absent)
            ],
        ),
        on_transaction(OP.WRITE),
        on_topics(OP.WRITE),
    ),
    case(
        "AddOffsetsToTxn",
        3,
        lambda c: add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=c.transaction,
            producer_id=999_999,
            producer_epoch=0,
            group_id=c.group,
        ),
        on_transaction(OP.WRITE),
        on_group(OP.READ),
    ),
    case(
        "EndTxn",
        3,
        lambda c: end_txn.EndTxnRequest(
            transactional_id=c.transaction, producer_id=999_999, producer_epoch=0, committed=True
        ),
        on_transaction(OP.WRITE),
    ),
    case(
        "WriteTxnMarkers",
        1,
        lambda c: write_txn_markers.WriteTxnMarkersRequest(
            markers=[
                write_txn_markers.WritableTxnMarker(
                    producer_id=999_999,
                    producer_epoch=0,
                    transaction_result=True,
                    topics=[
                        write_txn_markers.WritableTxnMarkerTopic(
                            name=c.absent, partition_indexes=[0]
                        )
                    ],
                    coordinator_epoch=0,
                )
            ]
        ),
        on_cluster(OP.ALTER),
    ),
    case(
        "TxnOffsetCommit",
        3,
        lambda c: txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=c.transaction,
            group_id=c.group,
            producer_id=999_999,
            producer_epoch=0,
            generation_id=-1,
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name=c.absent,
                    partitions=[
                        txn_offset_commit.TxnOffsetCommitRequestPartition(
                            partition_index=0, committed_offset=0, committed_metadata=""
                        )
                    ],
                )
            ],
        ),
        on_transaction(OP.WRITE),
        on_group(OP.READ),
        on_topics(OP.READ),
    ),
    case("DescribeConfigs", 4, _configs, on_topics(OP.DESCRIBE_CONFIGS)),
    case(
        "AlterConfigs",
        2,
        lambda c: alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(resource_type=2, resource_name=name)
                for name in (c.topic, c.absent)
            ]
        ),
        on_topics(OP.ALTER_CONFIGS),
    ),
    case("IncrementalAlterConfigs", 1, _alter, on_topics(OP.ALTER_CONFIGS)),
    case(
        "AlterReplicaLogDirs",
        2,
        lambda c: alter_replica_log_dirs.AlterReplicaLogDirsRequest(
            dirs=[
                alter_replica_log_dirs.AlterReplicaLogDir(
                    path="/nowhere",
                    topics=[
                        alter_replica_log_dirs.AlterReplicaLogDirTopic(name=c.topic, partitions=[0])
                    ],
                )
            ]
        ),
        on_cluster(OP.ALTER),
    ),
    case(
        "DescribeLogDirs",
        4,
        lambda c: describe_log_dirs.DescribeLogDirsRequest(
            topics=[describe_log_dirs.DescribableLogDirTopic(topic=c.topic, partitions=[0])]
        ),
        on_cluster(OP.DESCRIBE),
    ),
    case(
        "CreatePartitions",
        3,
        lambda c: create_partitions.CreatePartitionsRequest(
            topics=[
                create_partitions.CreatePartitionsTopic(name=name, count=2)
                for name in (c.topic, c.absent)
            ],
            timeout_ms=10_000,
        ),
        on_topics(OP.ALTER),
    ),
    case(
        "DeleteGroups",
        2,
        lambda c: delete_groups.DeleteGroupsRequest(groups_names=[c.group]),
        on_group(OP.DELETE),
    ),
    case(
        "ElectLeaders",
        2,
        lambda c: elect_leaders.ElectLeadersRequest(
            election_type=0,
            topic_partitions=[elect_leaders.TopicPartitions(topic=c.topic, partitions=[0])],
            timeout_ms=10_000,
        ),
        on_cluster(OP.ALTER),
    ),
    case(
        "AlterPartitionReassignments",
        0,
        lambda c: alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            timeout_ms=10_000,
            topics=[
                alter_partition_reassignments.ReassignableTopic(
                    name=c.topic,
                    partitions=[
                        alter_partition_reassignments.ReassignablePartition(
                            partition_index=0, replicas=None
                        )
                    ],
                )
            ],
        ),
        on_cluster(OP.ALTER),
    ),
    case(
        "ListPartitionReassignments",
        0,
        lambda c: list_partition_reassignments.ListPartitionReassignmentsRequest(
            timeout_ms=10_000, topics=None
        ),
        on_cluster(OP.DESCRIBE),
    ),
    case(
        "OffsetDelete",
        0,
        lambda c: offset_delete.OffsetDeleteRequest(
            group_id=c.group,
            topics=[
                offset_delete.OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)],
                )
                for name in (c.topic, c.absent)
            ],
        ),
        on_group(OP.DELETE),
        on_topics(OP.READ),
    ),
    case(
        "DescribeClientQuotas",
        1,
        lambda c: describe_client_quotas.DescribeClientQuotasRequest(),
        on_cluster(OP.DESCRIBE_CONFIGS),
    ),
    case(
        "AlterClientQuotas",
        1,
        lambda c: alter_client_quotas.AlterClientQuotasRequest(
            entries=[
                alter_client_quotas.EntryData(
                    entity=[alter_client_quotas.EntityData(entity_type="user", entity_name="u")],
                    ops=[alter_client_quotas.OpData(key="producer_byte_rate", value=1e9)],
                )
            ],
            validate_only=True,
        ),
        on_cluster(OP.ALTER_CONFIGS),
    ),
    case(
        "DescribeQuorum",
        2,
        lambda c: describe_quorum.DescribeQuorumRequest(
            topics=[
                describe_quorum.TopicData(
                    topic_name="__cluster_metadata",
                    partitions=[describe_quorum.PartitionData(partition_index=0)],
                )
            ]
        ),
        on_cluster(OP.DESCRIBE),
    ),
    case(
        "UpdateFeatures",
        1,
        lambda c: update_features.UpdateFeaturesRequest(timeout_ms=10_000, validate_only=True),
        on_cluster(OP.ALTER),
    ),
    case(
        "DescribeCluster",
        1,
        lambda c: describe_cluster.DescribeClusterRequest(
            include_cluster_authorized_operations=True, endpoint_type=1
        ),
        on_cluster(OP.DESCRIBE),
    ),
    case(
        "DescribeProducers",
        0,
        lambda c: describe_producers.DescribeProducersRequest(
            topics=[
                describe_producers.TopicRequest(name=name, partition_indexes=[0])
                for name in (c.topic, c.absent)
            ]
        ),
        on_topics(OP.READ),
    ),
    case(
        "DescribeTransactions",
        0,
        lambda c: describe_transactions.DescribeTransactionsRequest(
            transactional_ids=[c.transaction]
        ),
        on_transaction(OP.DESCRIBE),
    ),
    case(
        "ListTransactions",
        1,
        lambda c: list_transactions.ListTransactionsRequest(duration_filter=-1),
        on_transaction(OP.DESCRIBE),
    ),
    case(
        "ListConfigResources",
        1,
        lambda c: list_config_resources.ListConfigResourcesRequest(resource_types=[16]),
        on_cluster(OP.DESCRIBE_CONFIGS),
    ),
    case(
        "DescribeTopicPartitions",
        0,
        lambda c: describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[
                describe_topic_partitions.TopicRequest(name=name) for name in (c.topic, c.absent)
            ],
            response_partition_limit=100,
        ),
        on_topics(OP.DESCRIBE),
    ),
)


def cells() -> list[Cell]:
    """All cells, in order."""
    every = (*CASES, *OF_SECURITY, *OF_GROUPS)
    pairs = [(each, scenario) for each in every for scenario in SCENARIOS]
    return [
        Cell(number=number, case=each, scenario=scenario)
        for number, (each, scenario) in enumerate(pairs)
    ]
