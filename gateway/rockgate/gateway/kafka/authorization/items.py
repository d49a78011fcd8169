"""Items of requests: what each is decided by, and the result of one that is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rockgate.gateway.kafka.authorization.asking import Asking
from rockgate.gateway.kafka.authorization.checks import KEY_TYPES, KEYS_SINCE
from rockgate.gateway.kafka.authorization.guards import Decide, Items, Partitions
from rockgate.gateway.kafka.configs.resources import ResourceType
from rockgate.gateway.kafka.request import names
from rockgate.gateway.security.grants import CLUSTER_NAME, AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages import (
    consumer_group_describe,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_configs,
    describe_groups,
    describe_producers,
    describe_transactions,
    find_coordinator,
    list_offsets,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    streams_group_describe,
    txn_offset_commit,
)
from rockgate.protocol.kafka.schema import ZERO_UUID

_CLUSTER, _GROUP = AclResourceType.CLUSTER, AclResourceType.GROUP
_TOPIC, _TRANSACTION = AclResourceType.TOPIC, AclResourceType.TRANSACTIONAL_ID


def _decide(
    operation: AclOperation, resource_type: AclResourceType, name_of: Callable[[Any], str]
) -> Decide:
    """An operation on the resource that an item names."""

    return lambda asking, item: asking.refusal(operation, resource_type, name_of(item))


def _topic(operation: AclOperation) -> Decide:
    return _decide(operation, _TOPIC, lambda item: str(item.name))


def _itself(item: str) -> str:
    return item


def list_offsets_items() -> Items:
    """ListOffsets: DESCRIBE on each topic."""
    return Items(
        field="topics",
        decide=_topic(AclOperation.DESCRIBE),
        refused=lambda topic, code: list_offsets.ListOffsetsTopicResponse(name=topic.name),
        results="topics",
        partitions=Partitions(
            field="partitions",
            refused=lambda each, code: list_offsets.ListOffsetsPartitionResponse(
                partition_index=each.partition_index, error_code=code
            ),
        ),
    )


def offset_commit_items() -> Items:
    """OffsetCommit: READ on each topic, which from v10 is named by its id."""

    def decide(asking: Asking, item: Any) -> ErrorCode | None:
        if item.topic_id == ZERO_UUID:
            return asking.refusal(AclOperation.READ, _TOPIC, item.name)
        return asking.refusal_by_id(AclOperation.READ, asking.catalog.find_id(item.topic_id))

    return Items(
        field="topics",
        decide=decide,
        refused=lambda topic, code: offset_commit.OffsetCommitResponseTopic(
            name=topic.name, topic_id=topic.topic_id
        ),
        results="topics",
        partitions=Partitions(
            field="partitions",
            refused=lambda each, code: offset_commit.OffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=code
            ),
        ),
    )


def txn_offset_commit_items() -> Items:
    """TxnOffsetCommit: READ on each topic."""
    return Items(
        field="topics",
        decide=_topic(AclOperation.READ),
        refused=lambda topic, code: txn_offset_commit.TxnOffsetCommitResponseTopic(name=topic.name),
        results="topics",
        partitions=Partitions(
            field="partitions",
            refused=lambda each, code: txn_offset_commit.TxnOffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=code
            ),
        ),
    )


def offset_delete_items() -> Items:
    """OffsetDelete: READ on each topic."""
    return Items(
        field="topics",
        decide=_topic(AclOperation.READ),
        refused=lambda topic, code: offset_delete.OffsetDeleteResponseTopic(name=topic.name),
        results="topics",
        partitions=Partitions(
            field="partitions",
            refused=lambda each, code: offset_delete.OffsetDeleteResponsePartition(
                partition_index=each.partition_index, error_code=code
            ),
        ),
    )


def offset_fetch_items() -> Items:
    """OffsetFetch from v8: DESCRIBE on each group; topics are the handler's to ask for."""
    return Items(
        field="groups",
        decide=_decide(AclOperation.DESCRIBE, _GROUP, lambda group: str(group.group_id)),
        refused=lambda group, code: offset_fetch.OffsetFetchResponseGroup(
            group_id=group.group_id, error_code=code
        ),
        results="groups",
    )


def find_coordinator_items() -> Items:
    """FindCoordinator from v4: DESCRIBE on each key, by the keys' type."""

    def decide(asking: Asking, item: str) -> ErrorCode | None:
        type_ = KEY_TYPES.get(asking.request.key_type)
        if type_ is None or asking.call.version < KEYS_SINCE:
            return None
        return asking.refusal(AclOperation.DESCRIBE, type_, item)

    return Items(
        field="coordinator_keys",
        decide=decide,
        refused=lambda key, code: find_coordinator.Coordinator(
            key=key, node_id=-1, port=-1, error_code=code, error_message=code.meaning
        ),
        results="coordinators",
    )


def describe_groups_items() -> Items:
    """DescribeGroups: DESCRIBE on each group."""
    return Items(
        field="groups",
        decide=_decide(AclOperation.DESCRIBE, _GROUP, _itself),
        refused=lambda name, code: describe_groups.DescribedGroup(group_id=name, error_code=code),
        results="groups",
    )


def consumer_group_describe_items() -> Items:
    """ConsumerGroupDescribe: DESCRIBE on each group; the handler asks for its topics."""
    return Items(
        field="group_ids",
        decide=_decide(AclOperation.DESCRIBE, _GROUP, _itself),
        refused=lambda name, code: consumer_group_describe.DescribedGroup(
            group_id=name, error_code=code
        ),
        results="groups",
    )


def streams_group_describe_items() -> Items:
    """StreamsGroupDescribe: DESCRIBE on each group; the handler asks for its topics."""
    return Items(
        field="group_ids",
        decide=_decide(AclOperation.DESCRIBE, _GROUP, _itself),
        refused=lambda name, code: streams_group_describe.DescribedGroup(
            group_id=name, error_code=code
        ),
        results="groups",
    )


def delete_groups_items() -> Items:
    """DeleteGroups: DELETE on each group."""
    return Items(
        field="groups_names",
        decide=_decide(AclOperation.DELETE, _GROUP, _itself),
        refused=lambda name, code: delete_groups.DeletableGroupResult(
            group_id=name, error_code=code
        ),
        results="results",
    )


def create_topics_items() -> Items:
    """CreateTopics: CREATE on the cluster, or on each topic."""

    def decide(asking: Asking, item: Any) -> ErrorCode | None:
        if asking.may_cluster(AclOperation.CREATE):
            return None
        return asking.refusal(AclOperation.CREATE, _TOPIC, item.name)

    return Items(
        field="topics",
        decide=decide,
        refused=lambda topic, code: create_topics.CreatableTopicResult(
            name=topic.name, error_code=code, error_message="Authorization failed.", configs=[]
        ),
        results="topics",
    )


def delete_topics_items() -> Items:
    """DeleteTopics: DELETE on the cluster, or on each topic; from v6 also by id.

    A topic given by id is named in the refusal only to a client that may describe it.
    """

    def decide(asking: Asking, item: Any) -> ErrorCode | None:
        if asking.may_cluster(AclOperation.DELETE):
            return None
        name = item if isinstance(item, str) else item.name
        if name is not None:
            topic = asking.catalog.find(name)
            if topic is None and asking.may(AclOperation.DESCRIBE, _TOPIC, name):
                return None
            return asking.refusal(AclOperation.DELETE, _TOPIC, name)
        topic = asking.catalog.find_id(item.topic_id)
        code = asking.refusal_by_id(AclOperation.DELETE, topic)
        if code is not None and topic is not None:
            name = names.to_kafka(topic.name)
            item.name = name if asking.may(AclOperation.DESCRIBE, _TOPIC, name) else None
        return code

    return Items(
        field="topics",
        decide=decide,
        refused=lambda topic, code: delete_topics.DeletableTopicResult(
            name=topic if isinstance(topic, str) else topic.name,
            topic_id=ZERO_UUID if isinstance(topic, str) else topic.topic_id,
            error_code=code,
            error_message=code.meaning,
        ),
        results="responses",
        before=(6, "topic_names"),
    )


def delete_records_items() -> Items:
    """DeleteRecords: DELETE on each topic."""
    return Items(
        field="topics",
        decide=_topic(AclOperation.DELETE),
        refused=lambda topic, code: delete_records.DeleteRecordsTopicResult(name=topic.name),
        results="topics",
        partitions=Partitions(
            field="partitions",
            refused=lambda each, code: delete_records.DeleteRecordsPartitionResult(
                partition_index=each.partition_index, low_watermark=-1, error_code=code
            ),
        ),
    )


def leader_epoch_items() -> Items:
    """OffsetForLeaderEpoch: CLUSTER_ACTION, or DESCRIBE on each topic."""

    def decide(asking: Asking, item: Any) -> ErrorCode | None:
        if asking.may_cluster(AclOperation.CLUSTER_ACTION):
            return None
        return asking.refusal(AclOperation.DESCRIBE, _TOPIC, item.topic)

    return Items(
        field="topics",
        decide=decide,
        refused=lambda topic, code: offset_for_leader_epoch.OffsetForLeaderTopicResult(
            topic=topic.topic
        ),
        results="topics",
        partitions=Partitions(
            field="partitions",
            refused=lambda each, code: offset_for_leader_epoch.EpochEndOffset(
                partition=each.partition, error_code=code
            ),
        ),
    )


def create_partitions_items() -> Items:
    """CreatePartitions: ALTER on each topic."""
    return Items(
        field="topics",
        decide=_topic(AclOperation.ALTER),
        refused=lambda topic, code: create_partitions.CreatePartitionsTopicResult(
            name=topic.name, error_code=code, error_message=None
        ),
        results="results",
    )


def describe_producers_items() -> Items:
    """DescribeProducers: READ on each topic."""
    return Items(
        field="topics",
        decide=_topic(AclOperation.READ),
        refused=lambda topic, code: describe_producers.TopicResponse(name=topic.name),
        results="topics",
        partitions=Partitions(
            field="partition_indexes",
            refused=lambda index, code: describe_producers.PartitionResponse(
                partition_index=index, error_code=code, error_message=code.meaning
            ),
        ),
    )


def describe_transactions_items() -> Items:
    """DescribeTransactions: DESCRIBE on each id; the handler withholds topics."""
    return Items(
        field="transactional_ids",
        decide=_decide(AclOperation.DESCRIBE, _TRANSACTION, _itself),
        refused=lambda id_, code: describe_transactions.TransactionState(
            error_code=code, transactional_id=id_
        ),
        results="transaction_states",
    )


def _on_resource(operation: AclOperation) -> Decide:
    """An operation on the resource that configs belong to; an unknown type is the handler's."""

    def decide(asking: Asking, item: Any) -> ErrorCode | None:
        type_ = _CONFIGURED.get(item.resource_type)
        if type_ is None:
            return None
        name = CLUSTER_NAME if type_ is _CLUSTER else item.resource_name
        return asking.refusal(operation, type_, name)

    return decide


_CONFIGURED = {
    int(ResourceType.TOPIC): _TOPIC,
    int(ResourceType.BROKER): _CLUSTER,
    int(ResourceType.BROKER_LOGGER): _CLUSTER,
    int(ResourceType.CLIENT_METRICS): _CLUSTER,
    int(ResourceType.GROUP): _GROUP,
}


def describe_configs_items() -> Items:
    """DescribeConfigs: DESCRIBE_CONFIGS on topics, groups, or the cluster."""
    return Items(
        field="resources",
        decide=_on_resource(AclOperation.DESCRIBE_CONFIGS),
        refused=lambda asked, code: describe_configs.DescribeConfigsResult(
            error_code=code,
            error_message=code.meaning,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        ),
        results="results",
    )


def alter_configs_items(result: type[Any]) -> Items:
    """AlterConfigs and IncrementalAlterConfigs: ALTER_CONFIGS on topics, groups, or the cluster."""
    return Items(
        field="resources",
        decide=_on_resource(AclOperation.ALTER_CONFIGS),
        refused=lambda asked, code: result(
            error_code=code,
            error_message=code.meaning,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        ),
        results="responses",
    )
