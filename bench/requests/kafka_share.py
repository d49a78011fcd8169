"""The largest requests of the Kafka protocol about share groups, for `bench.requests`."""

from collections.abc import Iterator

from bench.requests.kafka import all_indexes, all_topics, changing, row
from bench.requests.world import Request
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import alter_share_group_offsets as altering
from rockgate.protocol.kafka.messages import delete_share_group_offsets as deleting
from rockgate.protocol.kafka.messages import describe_share_group_offsets as offsets
from rockgate.protocol.kafka.messages import share_acknowledge as acknowledging
from rockgate.protocol.kafka.messages import share_fetch as acquiring
from rockgate.protocol.kafka.messages import share_group_describe as describing
from rockgate.protocol.kafka.messages import share_group_heartbeat as shares

GROUP = "shared"
BATCHES = 10_000


def _members() -> Iterator[Request]:
    """A large group, and as much as a member may ask for."""
    yield changing(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        "10,000 topics by name",
        lambda w: shares.ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="member",
            member_epoch=0,
            subscribed_topic_names=all_topics(w)[:10_000],
        ),
    )
    yield changing(
        ApiKey.SHARE_FETCH,
        "5,000 partitions",
        lambda w: acquiring.ShareFetchRequest(
            group_id=GROUP,
            member_id="member",
            max_records=500,
            topics=[
                acquiring.FetchTopic(
                    topic_id=w.topic_ids[-1],
                    partitions=[
                        acquiring.FetchPartition(partition_index=index)
                        for index in all_indexes(w)[:5_000]
                    ],
                )
            ],
        ),
        version=2,
    )
    batches = [
        acknowledging.AcknowledgementBatch(
            first_offset=2 * number, last_offset=2 * number, acknowledge_types=[1]
        )
        for number in range(BATCHES)
    ]
    yield changing(
        ApiKey.SHARE_ACKNOWLEDGE,
        "10,000 batches",
        lambda w: acknowledging.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id="member",
            share_session_epoch=1,
            topics=[
                acknowledging.AcknowledgeTopic(
                    topic_id=w.topic_ids[-1],
                    partitions=[
                        acknowledging.AcknowledgePartition(
                            partition_index=0, acknowledgement_batches=batches
                        )
                    ],
                )
            ],
        ),
    )


def _operators() -> Iterator[Request]:
    """What tools ask for."""
    yield row(
        ApiKey.SHARE_GROUP_DESCRIBE,
        "50,000 groups",
        lambda w: describing.ShareGroupDescribeRequest(
            group_ids=[GROUP, *w.groups], include_authorized_operations=True
        ),
    )
    yield row(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        "all topics",
        lambda w: offsets.DescribeShareGroupOffsetsRequest(
            groups=[
                offsets.DescribeShareGroupOffsetsRequestGroup(
                    group_id=GROUP,
                    topics=[
                        offsets.DescribeShareGroupOffsetsRequestTopic(
                            topic_name=name, partitions=[0]
                        )
                        for name in all_topics(w)
                    ],
                )
            ]
        ),
    )
    yield changing(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        "all partitions",
        lambda w: altering.AlterShareGroupOffsetsRequest(
            group_id=GROUP,
            topics=[
                altering.AlterShareGroupOffsetsRequestTopic(
                    topic_name=w.topics[-1],
                    partitions=[
                        altering.AlterShareGroupOffsetsRequestPartition(
                            partition_index=index, start_offset=0
                        )
                        for index in all_indexes(w)
                    ],
                )
            ],
        ),
    )
    yield changing(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        "all topics",
        lambda w: deleting.DeleteShareGroupOffsetsRequest(
            group_id=GROUP,
            topics=[
                deleting.DeleteShareGroupOffsetsRequestTopic(topic_name=name)
                for name in all_topics(w)
            ],
        ),
    )


REQUESTS: tuple[Request, ...] = (*_members(), *_operators())
