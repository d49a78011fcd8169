"""The largest requests of the Kafka protocol, for `bench.requests`: the legal worst of every API.

Three things make a request large: many different names, one name many times, and "all" where null
means that. Each one that an API supports has a row. Requests that change something are in
`bench.requests.kafka_changes`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.requests.world import (
    GROUP_OF_ALL,
    TRANSACTION_OF_ALL,
    WIDE,
    Loaded,
    Request,
    kafka_frame,
)
from rockgate.gateway.kafka.client_metrics.subscriptions import identify
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import consumer_group_describe as modern_describing
from rockgate.protocol.kafka.messages import describe_client_quotas as limits
from rockgate.protocol.kafka.messages import describe_configs as configs
from rockgate.protocol.kafka.messages import describe_groups as describing
from rockgate.protocol.kafka.messages import describe_log_dirs as dirs
from rockgate.protocol.kafka.messages import describe_producers as producing
from rockgate.protocol.kafka.messages import describe_quorum as quorum
from rockgate.protocol.kafka.messages import describe_topic_partitions as paging
from rockgate.protocol.kafka.messages import describe_transactions as transactions
from rockgate.protocol.kafka.messages import elect_leaders as electing
from rockgate.protocol.kafka.messages import fetch as fetching
from rockgate.protocol.kafka.messages import find_coordinator as finding
from rockgate.protocol.kafka.messages import get_telemetry_subscriptions as subscribing
from rockgate.protocol.kafka.messages import list_config_resources as resources
from rockgate.protocol.kafka.messages import list_groups as listing
from rockgate.protocol.kafka.messages import list_offsets as times
from rockgate.protocol.kafka.messages import list_partition_reassignments as reassigned
from rockgate.protocol.kafka.messages import list_transactions as listed
from rockgate.protocol.kafka.messages import metadata
from rockgate.protocol.kafka.messages import offset_fetch as offsets
from rockgate.protocol.kafka.messages import offset_for_leader_epoch as epochs
from rockgate.protocol.kafka.messages import push_telemetry as pushing
from rockgate.protocol.kafka.messages import update_features as features
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.compression import compress

TOPIC_RESOURCE = 2
REPEATS = 100
INSTANCE = b"i" * 16


def row(
    key: ApiKey,
    what: str,
    make: Callable[[Loaded], Any],
    *,
    version: int | None = None,
    is_changing: bool = False,
) -> Request:
    """A row whose request is one message."""
    served = APIS[key].versions.max if version is None else version
    return Request(
        name=f"{''.join(word.title() for word in key.name.split('_'))} v{served}, {what}",
        listener="kafka",
        make=lambda world: [kafka_frame(key, make(world), version)],
        is_changing=is_changing,
    )


changing = partial(row, is_changing=True)
"""A row whose request changes something."""


def _offset_fetch_all(world: Loaded, times: int) -> offsets.OffsetFetchRequest:
    group = offsets.OffsetFetchRequestGroup(group_id=GROUP_OF_ALL, topics=None)
    return offsets.OffsetFetchRequest(groups=[group] * times)


def all_topics(world: Loaded) -> list[str]:
    """All existing topics, and as many missing ones as a request may name."""
    return world.many(world.topics)


def all_indexes(world: Loaded) -> list[int]:
    """The partitions of the wide topic, and as many missing ones as a request may name."""
    return list(range(world.size.items))


def _topic_reads() -> Iterator[Request]:
    """Reads of topics and partitions."""
    yield row(ApiKey.METADATA, "all", lambda _: metadata.MetadataRequest(topics=None))
    yield row(
        ApiKey.METADATA,
        "100,000 topics",
        lambda w: metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name=name) for name in all_topics(w)],
            allow_auto_topic_creation=False,
        ),
    )
    yield row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        "100,000 topics",
        lambda w: paging.DescribeTopicPartitionsRequest(
            topics=[paging.TopicRequest(name=name) for name in all_topics(w)]
        ),
    )
    yield row(
        ApiKey.LIST_OFFSETS,
        "100,000 partitions",
        lambda w: times.ListOffsetsRequest(
            replica_id=-1,
            topics=[
                times.ListOffsetsTopic(
                    name=WIDE,
                    partitions=[
                        times.ListOffsetsPartition(partition_index=index, timestamp=0)
                        for index in all_indexes(w)
                    ],
                )
            ],
        ),
    )
    yield row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        "100,000 partitions",
        lambda w: epochs.OffsetForLeaderEpochRequest(
            topics=[
                epochs.OffsetForLeaderTopic(
                    topic=WIDE,
                    partitions=[
                        epochs.OffsetForLeaderPartition(partition=index, leader_epoch=0)
                        for index in all_indexes(w)
                    ],
                )
            ]
        ),
    )


def _partition_reads() -> Iterator[Request]:
    """Reads of topics and partitions, continued."""
    yield row(ApiKey.DESCRIBE_LOG_DIRS, "all", lambda _: dirs.DescribeLogDirsRequest(topics=None))
    yield row(
        ApiKey.DESCRIBE_PRODUCERS,
        "100,000 partitions",
        lambda w: producing.DescribeProducersRequest(
            topics=[producing.TopicRequest(name=WIDE, partition_indexes=all_indexes(w))]
        ),
    )
    yield row(
        ApiKey.FETCH,
        "a session of 100,000 partitions",
        lambda w: fetching.FetchRequest(
            max_wait_ms=0,
            session_epoch=0,
            topics=[
                fetching.FetchTopic(
                    topic_id=w.topic_ids[-1],
                    partitions=[
                        fetching.FetchPartition(
                            partition=index, fetch_offset=0, partition_max_bytes=1 << 20
                        )
                        for index in all_indexes(w)
                    ],
                )
            ],
        ),
    )


def _offset_reads() -> Iterator[Request]:
    """Reads of groups."""
    yield row(ApiKey.OFFSET_FETCH, "one group, all topics", lambda w: _offset_fetch_all(w, 1))
    yield row(
        ApiKey.OFFSET_FETCH,
        f"one group {REPEATS} times, all topics",
        lambda w: _offset_fetch_all(w, REPEATS),
    )
    yield row(
        ApiKey.OFFSET_FETCH,
        "50,000 groups, all topics",
        lambda w: offsets.OffsetFetchRequest(
            groups=[
                offsets.OffsetFetchRequestGroup(group_id=name, topics=None) for name in w.groups
            ]
        ),
    )
    yield row(
        ApiKey.OFFSET_FETCH,
        "100,000 partitions",
        lambda w: offsets.OffsetFetchRequest(
            groups=[
                offsets.OffsetFetchRequestGroup(
                    group_id=GROUP_OF_ALL,
                    topics=[
                        offsets.OffsetFetchRequestTopics(
                            topic_id=w.topic_ids[-1], partition_indexes=all_indexes(w)
                        )
                    ],
                )
            ]
        ),
    )


def _group_reads() -> Iterator[Request]:
    """Reads of groups, continued."""
    yield row(
        ApiKey.FIND_COORDINATOR,
        "100,000 groups",
        lambda w: finding.FindCoordinatorRequest(coordinator_keys=w.many(w.groups)),
    )
    yield row(
        ApiKey.FIND_COORDINATOR,
        "100,000 share groups, refused",
        lambda w: finding.FindCoordinatorRequest(key_type=2, coordinator_keys=w.many(w.groups)),
    )
    yield row(
        ApiKey.DESCRIBE_GROUPS,
        "50,000 groups",
        lambda w: describing.DescribeGroupsRequest(groups=w.groups),
    )
    yield row(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        "50,000 groups",
        lambda w: modern_describing.ConsumerGroupDescribeRequest(
            group_ids=w.groups, include_authorized_operations=True
        ),
    )
    yield row(ApiKey.LIST_GROUPS, "all", lambda _: listing.ListGroupsRequest())
    yield row(
        ApiKey.DESCRIBE_TRANSACTIONS,
        f"one id {REPEATS} times",
        lambda _: transactions.DescribeTransactionsRequest(
            transactional_ids=[TRANSACTION_OF_ALL] * REPEATS
        ),
    )
    yield row(
        ApiKey.DESCRIBE_TRANSACTIONS,
        "100,000 ids",
        lambda w: transactions.DescribeTransactionsRequest(
            transactional_ids=w.many(w.transactions)
        ),
    )
    yield row(ApiKey.LIST_TRANSACTIONS, "all", lambda _: listed.ListTransactionsRequest())


def _config_reads() -> Iterator[Request]:
    """Reads of configs and the cluster."""
    yield row(
        ApiKey.DESCRIBE_CONFIGS,
        "100,000 topics",
        lambda w: configs.DescribeConfigsRequest(
            resources=[
                configs.DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None
                )
                for name in all_topics(w)
            ]
        ),
    )
    yield row(ApiKey.LIST_CONFIG_RESOURCES, "all", lambda _: resources.ListConfigResourcesRequest())
    yield row(
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        "a new client",
        lambda _: subscribing.GetTelemetrySubscriptionsRequest(),
    )
    yield row(
        ApiKey.PUSH_TELEMETRY,
        "1 MiB of empty fields, compressed",
        lambda _: pushing.PushTelemetryRequest(
            client_instance_id=INSTANCE,
            subscription_id=identify((), 300_000, INSTANCE),
            compression_type=Compression.ZSTD,
            metrics=compress(b"\x12\x00" * (1 << 19), Compression.ZSTD),
        ),
    )
    yield row(ApiKey.DESCRIBE_CLIENT_QUOTAS, "all", lambda _: limits.DescribeClientQuotasRequest())
    yield row(
        ApiKey.ELECT_LEADERS, "all", lambda _: electing.ElectLeadersRequest(topic_partitions=None)
    )
    yield row(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        "100,000 topics",
        lambda w: reassigned.ListPartitionReassignmentsRequest(
            topics=[
                reassigned.ListPartitionReassignmentsTopics(name=name, partition_indexes=[0])
                for name in all_topics(w)
            ]
        ),
    )


def _cluster_reads() -> Iterator[Request]:
    """Reads of configs and the cluster, continued."""
    yield row(
        ApiKey.DESCRIBE_QUORUM,
        "100,000 topics",
        lambda w: quorum.DescribeQuorumRequest(
            topics=[
                quorum.TopicData(
                    topic_name=name, partitions=[quorum.PartitionData(partition_index=0)]
                )
                for name in all_topics(w)
            ]
        ),
    )
    yield row(
        ApiKey.UPDATE_FEATURES,
        "100,000 features",
        lambda w: features.UpdateFeaturesRequest(
            feature_updates=[
                features.FeatureUpdateKey(feature=name, max_version_level=1)
                for name in all_topics(w)
            ]
        ),
    )


REQUESTS: tuple[Request, ...] = (
    *_topic_reads(),
    *_partition_reads(),
    *_offset_reads(),
    *_group_reads(),
    *_config_reads(),
    *_cluster_reads(),
)
