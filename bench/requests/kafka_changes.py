"""The largest requests of the Kafka protocol that change something, for `bench.requests`.

They follow those of `bench.requests.kafka`, in an order in which each finds what it needs: topics
are deleted last.
"""

from collections.abc import Iterator
from typing import Any

from bench.requests import kafka_single
from bench.requests.kafka import TOPIC_RESOURCE, all_indexes, all_topics, changing, row
from bench.requests.world import GROUP_OF_ALL, WIDE, Loaded, Request
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import add_partitions_to_txn as adding
from rockgate.protocol.kafka.messages import alter_client_quotas as quotas
from rockgate.protocol.kafka.messages import alter_configs as altering
from rockgate.protocol.kafka.messages import alter_partition_reassignments as reassigning
from rockgate.protocol.kafka.messages import alter_replica_log_dirs as moving
from rockgate.protocol.kafka.messages import consumer_group_heartbeat as beating
from rockgate.protocol.kafka.messages import create_partitions as growing
from rockgate.protocol.kafka.messages import create_topics as creating
from rockgate.protocol.kafka.messages import delete_groups as dissolving
from rockgate.protocol.kafka.messages import delete_records as cutting
from rockgate.protocol.kafka.messages import delete_topics as deleting
from rockgate.protocol.kafka.messages import describe_client_quotas as limits
from rockgate.protocol.kafka.messages import incremental_alter_configs as incremental
from rockgate.protocol.kafka.messages import join_group as joining
from rockgate.protocol.kafka.messages import leave_group as leaving
from rockgate.protocol.kafka.messages import offset_commit as committing
from rockgate.protocol.kafka.messages import offset_delete as forgetting
from rockgate.protocol.kafka.messages import produce as writing
from rockgate.protocol.kafka.messages import sync_group as syncing
from rockgate.protocol.kafka.messages import txn_offset_commit as pending
from rockgate.protocol.kafka.messages import write_txn_markers as markers
from rockgate.protocol.kafka.records.record import Record, build_batch


def _joining() -> Iterator[Request]:
    """Changes of groups and transactions."""
    yield changing(
        ApiKey.JOIN_GROUP,
        "90 MB of metadata",
        lambda _: joining.JoinGroupRequest(
            group_id="heavy",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[joining.JoinGroupRequestProtocol(name="range", metadata=bytes(90 << 20))],
        ),
    )
    yield changing(
        ApiKey.JOIN_GROUP,
        "100,000 protocols",
        lambda w: joining.JoinGroupRequest(
            group_id="manifold",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[
                joining.JoinGroupRequestProtocol(name=name, metadata=b"") for name in all_topics(w)
            ],
        ),
    )
    yield changing(
        ApiKey.SYNC_GROUP,
        "100,000 assignments",
        lambda w: syncing.SyncGroupRequest(
            group_id="heavy",
            generation_id=1,
            member_id="nobody",
            assignments=[
                syncing.SyncGroupRequestAssignment(member_id=name, assignment=b"")
                for name in all_topics(w)
            ],
        ),
    )


def _beating() -> Iterator[Request]:
    """Heartbeats of the consumer protocol: one that makes a large group, and one that says much."""
    yield changing(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        "a pattern for 10,000 topics",
        lambda _: _joining_modern("modern-all", subscribed_topic_regex=".*"),
    )
    yield changing(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        "10,000 topics by name",
        lambda w: _joining_modern("modern-named", subscribed_topic_names=all_topics(w)[:10_000]),
    )
    yield changing(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        "100,000 partitions owned",
        lambda w: beating.ConsumerGroupHeartbeatRequest(
            group_id="modern-all",
            member_id="member",
            member_epoch=2,
            topic_partitions=[
                beating.TopicPartitions(topic_id=w.topic_ids[-1], partitions=all_indexes(w))
            ],
        ),
    )


def _joining_modern(group: str, **said: Any) -> beating.ConsumerGroupHeartbeatRequest:
    return beating.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="member",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        topic_partitions=[],
        **said,
    )


def _committing() -> Iterator[Request]:
    """Changes of groups and transactions, continued."""
    yield changing(
        ApiKey.LEAVE_GROUP,
        "100,000 members",
        lambda w: leaving.LeaveGroupRequest(
            group_id=GROUP_OF_ALL,
            members=[leaving.MemberIdentity(member_id=name) for name in all_topics(w)],
        ),
    )
    yield changing(
        ApiKey.OFFSET_COMMIT,
        "100,000 partitions",
        lambda w: _commit_wide(w),
        version=9,
    )
    yield changing(
        ApiKey.OFFSET_DELETE,
        "100,000 partitions",
        lambda w: forgetting.OffsetDeleteRequest(
            group_id=GROUP_OF_ALL,
            topics=[
                forgetting.OffsetDeleteRequestTopic(
                    name=WIDE,
                    partitions=[
                        forgetting.OffsetDeleteRequestPartition(partition_index=index)
                        for index in all_indexes(w)
                    ],
                )
            ],
        ),
    )
    yield changing(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        "100,000 partitions, most unknown",
        lambda w: _add_partitions(w, 1, all_indexes(w)),
        version=3,
    )


def _transacting() -> Iterator[Request]:
    """Changes of groups and transactions, continued."""
    yield changing(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        "10,000 partitions",
        lambda w: _add_partitions(w, 1, list(range(w.size.partitions))),
        version=3,
    )
    yield row(ApiKey.TXN_OFFSET_COMMIT, "100,000 partitions", _txn_commit, is_changing=True)
    yield changing(
        ApiKey.WRITE_TXN_MARKERS,
        "100,000 partitions",
        lambda w: markers.WriteTxnMarkersRequest(
            markers=[
                markers.WritableTxnMarker(
                    producer_id=w.producers[2][0],
                    producer_epoch=w.producers[2][1],
                    transaction_result=True,
                    topics=[
                        markers.WritableTxnMarkerTopic(name=WIDE, partition_indexes=all_indexes(w))
                    ],
                )
            ]
        ),
    )
    yield changing(
        ApiKey.DELETE_GROUPS,
        "50,000 groups",
        lambda w: dissolving.DeleteGroupsRequest(groups_names=w.groups),
    )


def _commit_wide(world: Loaded) -> committing.OffsetCommitRequest:
    return committing.OffsetCommitRequest(
        group_id="committer",
        topics=[
            committing.OffsetCommitRequestTopic(
                name=WIDE,
                partitions=[
                    committing.OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=1, committed_metadata="x" * 100
                    )
                    for index in all_indexes(world)
                ],
            )
        ],
    )


def _add_partitions(
    world: Loaded, number: int, indexes: list[int]
) -> adding.AddPartitionsToTxnRequest:
    producer_id, producer_epoch = world.producers[number]
    return adding.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=world.transactions[number],
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=producer_epoch,
        v3_and_below_topics=[adding.AddPartitionsToTxnTopic(name=WIDE, partitions=indexes)],
    )


def _txn_commit(world: Loaded) -> pending.TxnOffsetCommitRequest:
    producer_id, producer_epoch = world.producers[3]
    return pending.TxnOffsetCommitRequest(
        transactional_id=world.transactions[3],
        group_id="transactional",
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        topics=[
            pending.TxnOffsetCommitRequestTopic(
                name=WIDE,
                partitions=[
                    pending.TxnOffsetCommitRequestPartition(
                        partition_index=index, committed_offset=1, committed_metadata=""
                    )
                    for index in all_indexes(world)
                ],
            )
        ],
    )


def _produce(world: Loaded, indexes: list[int], records: bytes) -> writing.ProduceRequest:
    return writing.ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            writing.TopicProduceData(
                topic_id=world.topic_ids[-1],
                partition_data=[
                    writing.PartitionProduceData(index=index, records=records) for index in indexes
                ],
            )
        ],
    )


def _writing() -> Iterator[Request]:
    """Produce."""
    batch = bytes(build_batch([Record(0, 0, None, b"x")], base_offset=0))
    yield changing(
        ApiKey.PRODUCE,
        "10,000 batches",
        lambda w: _produce(w, list(range(w.size.partitions)), batch),
    )
    yield changing(
        ApiKey.PRODUCE,
        "100,000 empty batches, refused",
        lambda w: _produce(w, all_indexes(w), b""),
    )
    yield changing(
        ApiKey.PRODUCE,
        "one batch of 95 MB, refused",
        lambda w: _produce(w, [0], bytes(95 << 20)),
    )


def _topic_changes() -> Iterator[Request]:
    """Changes of topics and configs."""
    yield changing(
        ApiKey.CREATE_TOPICS,
        "100,000 topics",
        lambda w: creating.CreateTopicsRequest(
            topics=[
                creating.CreatableTopic(
                    name=f"new-{number}", num_partitions=1, replication_factor=1
                )
                for number in range(w.size.items)
            ]
        ),
    )
    yield changing(
        ApiKey.CREATE_PARTITIONS,
        "100,000 topics",
        lambda w: growing.CreatePartitionsRequest(
            topics=[
                growing.CreatePartitionsTopic(name=name, count=2, assignments=None)
                for name in all_topics(w)
            ]
        ),
    )
    yield changing(
        ApiKey.ALTER_CONFIGS,
        "100,000 topics",
        lambda w: altering.AlterConfigsRequest(
            resources=[
                altering.AlterConfigsResource(
                    resource_type=TOPIC_RESOURCE,
                    resource_name=name,
                    configs=[altering.AlterableConfig(name="retention.ms", value="1000000")],
                )
                for name in all_topics(w)
            ]
        ),
    )
    yield changing(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "100,000 topics",
        lambda w: incremental.IncrementalAlterConfigsRequest(
            resources=[
                incremental.AlterConfigsResource(
                    resource_type=TOPIC_RESOURCE,
                    resource_name=name,
                    configs=[
                        incremental.AlterableConfig(
                            name="retention.ms", config_operation=0, value="2000000"
                        )
                    ],
                )
                for name in all_topics(w)
            ]
        ),
    )


def _config_changes() -> Iterator[Request]:
    """Changes of topics and configs, continued."""
    yield changing(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        "100,000 partitions",
        lambda w: reassigning.AlterPartitionReassignmentsRequest(
            topics=[
                reassigning.ReassignableTopic(
                    name=WIDE,
                    partitions=[
                        reassigning.ReassignablePartition(partition_index=index, replicas=None)
                        for index in all_indexes(w)
                    ],
                )
            ]
        ),
    )
    yield changing(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        "100,000 partitions",
        lambda w: moving.AlterReplicaLogDirsRequest(
            dirs=[
                moving.AlterReplicaLogDir(
                    path="/nowhere",
                    topics=[moving.AlterReplicaLogDirTopic(name=WIDE, partitions=all_indexes(w))],
                )
            ]
        ),
    )


def _deleting() -> Iterator[Request]:
    """Deletions of topics and configs."""
    yield changing(
        ApiKey.DELETE_RECORDS,
        "100,000 partitions",
        lambda w: cutting.DeleteRecordsRequest(
            topics=[
                cutting.DeleteRecordsTopic(
                    name=WIDE,
                    partitions=[
                        cutting.DeleteRecordsPartition(partition_index=index, offset=-1)
                        for index in all_indexes(w)
                    ],
                )
            ]
        ),
    )
    yield changing(
        ApiKey.ALTER_CLIENT_QUOTAS,
        "50,000 clients",
        lambda w: quotas.AlterClientQuotasRequest(
            entries=[
                quotas.EntryData(
                    entity=[quotas.EntityData(entity_type="client-id", entity_name=name)],
                    ops=[quotas.OpData(key="producer_byte_rate", value=1e6)],
                )
                for name in w.groups
            ]
        ),
    )
    yield row(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        "all of 50,000",
        lambda _: limits.DescribeClientQuotasRequest(),
    )
    yield changing(
        ApiKey.DELETE_TOPICS,
        "100,000 topics",
        lambda w: deleting.DeleteTopicsRequest(
            topics=[deleting.DeleteTopicState(name=name) for name in all_topics(w)]
        ),
    )


REQUESTS: tuple[Request, ...] = (
    *_writing(),
    *_joining(),
    *_beating(),
    *_committing(),
    *_transacting(),
    *kafka_single.REQUESTS,
    *_topic_changes(),
    *_config_changes(),
    *_deleting(),
)
