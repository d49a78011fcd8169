"""Items of the requests of share groups: what each is decided by, and how a refusal looks."""

from __future__ import annotations

from rockgate.gateway.kafka.authorization.asking import Asking
from rockgate.gateway.kafka.authorization.guards import Decide, Items, Partitions
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
    share_group_describe,
)
from rockgate.protocol.kafka.schema import ZERO_UUID


def share_group_describe_items() -> Items:
    """ShareGroupDescribe: DESCRIBE on each group; the handler asks for its topics."""

    def decide(asking: Asking, group: str) -> ErrorCode | None:
        return asking.refusal(AclOperation.DESCRIBE, AclResourceType.GROUP, group)

    return Items(
        field="group_ids",
        decide=decide,
        refused=lambda name, code: share_group_describe.DescribedGroup(
            group_id=name, error_code=code
        ),
        results="groups",
    )


def describe_share_offsets_items() -> Items:
    """DescribeShareGroupOffsets: DESCRIBE on each group; the handler asks for its topics."""

    def decide(
        asking: Asking, group: describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup
    ) -> ErrorCode | None:
        return asking.refusal(AclOperation.DESCRIBE, AclResourceType.GROUP, group.group_id)

    return Items(
        field="groups",
        decide=decide,
        refused=lambda group, code: (
            describe_share_group_offsets.DescribeShareGroupOffsetsResponseGroup(
                group_id=group.group_id, error_code=code, error_message=code.meaning
            )
        ),
        results="groups",
    )


def _read_topic() -> Decide:
    return lambda asking, item: asking.refusal(
        AclOperation.READ, AclResourceType.TOPIC, str(item.topic_name)
    )


def alter_share_offsets_items() -> Items:
    """AlterShareGroupOffsets: READ on each topic."""
    return Items(
        field="topics",
        decide=_read_topic(),
        refused=lambda topic, code: alter_share_group_offsets.AlterShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name, topic_id=ZERO_UUID, partitions=[]
        ),
        results="responses",
        partitions=Partitions(
            field="partitions",
            refused=lambda each, code: (
                alter_share_group_offsets.AlterShareGroupOffsetsResponsePartition(
                    partition_index=each.partition_index,
                    error_code=code,
                    error_message=code.meaning,
                )
            ),
        ),
    )


def delete_share_offsets_items() -> Items:
    """DeleteShareGroupOffsets: READ on each topic."""
    return Items(
        field="topics",
        decide=_read_topic(),
        refused=lambda topic, code: delete_share_group_offsets.DeleteShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name,
            topic_id=ZERO_UUID,
            error_code=code,
            error_message=code.meaning,
        ),
        results="responses",
    )
