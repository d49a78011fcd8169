"""Cells about share groups and streams groups, which an administrator has filled before."""

from __future__ import annotations

from typing import Any

from tests.differential.access.cells import (
    OP,
    TYPE,
    Case,
    Cell,
    case,
    on_cluster,
    on_group,
    on_topics,
)

from rockgate.protocol.kafka.messages import (
    alter_share_group_offsets,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    delete_share_group_offsets,
    describe_share_group_offsets,
    incremental_alter_configs,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    streams_group_describe,
    streams_group_heartbeat,
)

_MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"
_GROUP_RESOURCE = 32


def _consume(cell: Cell) -> Any:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=cell.group,
        member_id=_MEMBER,
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[cell.topic],
        topic_partitions=[],
    )


def sharing(cell: Cell, *topics: str) -> Any:
    """A member of a share group begins; with epoch 0 again it gets the whole assignment."""
    return share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=cell.group,
        member_id=_MEMBER,
        member_epoch=0,
        subscribed_topic_names=list(topics or (cell.topic,)),
    )


def _leave(cell: Cell) -> Any:
    return share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=cell.group, member_id=_MEMBER, member_epoch=-1
    )


def _acquire(cell: Cell) -> Any:
    return share_fetch.ShareFetchRequest(
        group_id=cell.group,
        member_id=_MEMBER,
        share_session_epoch=0,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        max_records=10,
        batch_size=10,
        topics=[
            share_fetch.FetchTopic(
                topic_id=cell.topic_id, partitions=[share_fetch.FetchPartition(partition_index=0)]
            )
        ],
    )


def _acknowledge(cell: Cell) -> Any:
    batch = share_acknowledge.AcknowledgementBatch(
        first_offset=0, last_offset=0, acknowledge_types=[1]
    )
    return share_acknowledge.ShareAcknowledgeRequest(
        group_id=cell.group,
        member_id=_MEMBER,
        share_session_epoch=1,
        topics=[
            share_acknowledge.AcknowledgeTopic(
                topic_id=cell.topic_id,
                partitions=[
                    share_acknowledge.AcknowledgePartition(
                        partition_index=0, acknowledgement_batches=[batch]
                    )
                ],
            )
        ],
    )


def _offsets(cell: Cell, *topics: str) -> Any:
    return describe_share_group_offsets.DescribeShareGroupOffsetsRequest(
        groups=[
            describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
                group_id=cell.group,
                topics=[
                    describe_share_group_offsets.DescribeShareGroupOffsetsRequestTopic(
                        topic_name=each, partitions=[0]
                    )
                    for each in topics
                ]
                or None,
            )
        ]
    )


def _move(cell: Cell) -> Any:
    return alter_share_group_offsets.AlterShareGroupOffsetsRequest(
        group_id=cell.group,
        topics=[
            alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(
                topic_name=each,
                partitions=[
                    alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(
                        partition_index=0, start_offset=0
                    )
                ],
            )
            for each in (cell.topic, cell.absent)
        ],
    )


def _forget(cell: Cell) -> Any:
    return delete_share_group_offsets.DeleteShareGroupOffsetsRequest(
        group_id=cell.group,
        topics=[
            delete_share_group_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name=each)
            for each in (cell.topic, cell.absent)
        ],
    )


def _stream(cell: Cell, *, sources: tuple[str, ...] = (), changelog: str = "") -> Any:
    return streams_group_heartbeat.StreamsGroupHeartbeatRequest(
        group_id=cell.group,
        member_id=_MEMBER,
        member_epoch=0,
        process_id=_MEMBER,
        rebalance_timeout_ms=60_000,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        topology=streams_group_heartbeat.Topology(
            epoch=0,
            subtopologies=[
                streams_group_heartbeat.Subtopology(
                    subtopology_id="0",
                    source_topics=[*(sources or (cell.topic,))],
                    state_changelog_topics=[
                        streams_group_heartbeat.TopicInfo(name=each)
                        for each in (changelog,)
                        if each
                    ],
                )
            ],
        ),
    )


def _alter_group(cell: Cell) -> Any:
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=_GROUP_RESOURCE,
                resource_name=cell.group,
                configs=[
                    incremental_alter_configs.AlterableConfig(
                        name="share.record.lock.duration.ms", config_operation=0, value="20000"
                    )
                ],
            )
        ]
    )


OF_GROUPS: tuple[Case, ...] = (
    case(
        "ConsumerGroupDescribe of members",
        1,
        lambda c: consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[c.group]),
        on_group(OP.DESCRIBE),
        on_topics(OP.DESCRIBE),
        first=[(1, _consume)],
    ),
    case(
        "ConsumerGroupDescribe of members, for a group only",
        1,
        lambda c: consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[c.group]),
        on_group(OP.DESCRIBE),
        first=[(1, _consume)],
    ),
    case(
        "ShareGroupHeartbeat",
        1,
        lambda c: sharing(c, c.topic),
        on_group(OP.READ),
        on_topics(OP.DESCRIBE),
    ),
    case(
        "ShareGroupHeartbeat for a group only",
        1,
        lambda c: sharing(c, c.topic, c.absent),
        on_group(OP.READ),
    ),
    case(
        "ShareGroupDescribe",
        1,
        lambda c: share_group_describe.ShareGroupDescribeRequest(
            group_ids=[c.group], include_authorized_operations=True
        ),
        on_group(OP.DESCRIBE),
        on_topics(OP.DESCRIBE),
        first=[(1, sharing)],
    ),
    case(
        "ShareGroupDescribe for a group only",
        1,
        lambda c: share_group_describe.ShareGroupDescribeRequest(group_ids=[c.group]),
        on_group(OP.DESCRIBE),
        first=[(1, sharing)],
    ),
    case("ShareFetch", 2, _acquire, on_group(OP.READ), on_topics(OP.READ), first=[(1, sharing)]),
    case("ShareFetch for a group only", 2, _acquire, on_group(OP.READ), first=[(1, sharing)]),
    case(
        "ShareAcknowledge",
        2,
        _acknowledge,
        on_group(OP.READ),
        on_topics(OP.READ),
        first=[(1, sharing), (2, _acquire)],
    ),
    case(
        "ShareAcknowledge for a group only",
        2,
        _acknowledge,
        on_group(OP.READ),
        first=[(1, sharing), (2, _acquire)],
    ),
    case(
        "DescribeShareGroupOffsets",
        1,
        lambda c: _offsets(c, c.topic, c.absent),
        on_group(OP.DESCRIBE),
        on_topics(OP.DESCRIBE),
        first=[(1, sharing), (1, _leave)],
    ),
    case(
        "DescribeShareGroupOffsets for a group only",
        1,
        lambda c: _offsets(c, c.topic, c.absent),
        on_group(OP.DESCRIBE),
        first=[(1, sharing), (1, _leave)],
    ),
    case(
        "DescribeShareGroupOffsets of all",
        1,
        _offsets,
        on_group(OP.DESCRIBE),
        on_topics(OP.DESCRIBE),
        first=[(1, sharing), (1, _leave), (0, _move)],
    ),
    case(
        "DescribeShareGroupOffsets of all, for a group only",
        1,
        _offsets,
        on_group(OP.DESCRIBE),
        first=[(1, sharing), (1, _leave), (0, _move)],
    ),
    case(
        "AlterShareGroupOffsets",
        0,
        _move,
        on_group(OP.READ),
        on_topics(OP.READ),
        first=[(1, sharing), (1, _leave)],
    ),
    case(
        "AlterShareGroupOffsets for a group only",
        0,
        _move,
        on_group(OP.READ),
        first=[(1, sharing), (1, _leave)],
    ),
    case(
        "DeleteShareGroupOffsets",
        0,
        _forget,
        on_group(OP.DELETE),
        on_topics(OP.READ),
        first=[(1, sharing), (1, _leave), (0, _move)],
    ),
    case(
        "DeleteShareGroupOffsets for a group only",
        0,
        _forget,
        on_group(OP.DELETE),
        first=[(1, sharing), (1, _leave), (0, _move)],
    ),
    case(
        "DeleteGroups of a share group",
        2,
        lambda c: delete_groups.DeleteGroupsRequest(groups_names=[c.group]),
        on_group(OP.DELETE),
        first=[(1, sharing), (1, _leave)],
    ),
    case("IncrementalAlterConfigs of a group", 1, _alter_group, on_group(OP.ALTER_CONFIGS)),
    case(
        "StreamsGroupHeartbeat",
        0,
        _stream,
        on_group(OP.READ),
        on_topics(OP.DESCRIBE),
    ),
    case(
        "StreamsGroupHeartbeat for a group only",
        0,
        lambda c: _stream(c, sources=(c.topic, c.absent)),
        on_group(OP.READ),
    ),
    case(
        "StreamsGroupHeartbeat that creates",
        0,
        lambda c: _stream(c, changelog=c.absent),
        on_group(OP.READ),
        on_topics(OP.DESCRIBE),
        (OP.CREATE, TYPE.TOPIC, "absent"),
    ),
    case(
        "StreamsGroupHeartbeat that creates, on the cluster",
        0,
        lambda c: _stream(c, changelog=c.absent),
        on_group(OP.READ),
        on_topics(OP.DESCRIBE),
        on_cluster(OP.CREATE),
    ),
    case(
        "StreamsGroupHeartbeat that may not create",
        0,
        lambda c: _stream(c, changelog=c.absent),
        on_group(OP.READ),
        on_topics(OP.DESCRIBE),
    ),
    case(
        "StreamsGroupDescribe",
        0,
        lambda c: streams_group_describe.StreamsGroupDescribeRequest(
            group_ids=[c.group], include_authorized_operations=True
        ),
        on_group(OP.DESCRIBE),
        on_topics(OP.DESCRIBE),
        first=[(0, _stream)],
    ),
    case(
        "StreamsGroupDescribe for a group only",
        0,
        lambda c: streams_group_describe.StreamsGroupDescribeRequest(group_ids=[c.group]),
        on_group(OP.DESCRIBE),
        first=[(0, _stream)],
    ),
)
