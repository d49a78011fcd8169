"""The largest requests of the Kafka protocol that name one thing, for `bench.requests`.

They are large because of what the name refers to: a transaction of every topic, or of every
partition of a wide one; or because of the name itself; or because many arrive at once. They follow
the transactions of `bench.requests.kafka_changes`, which add those partitions, and precede its
deletion of topics. Streams groups are here too.
"""

from collections.abc import Iterator
from typing import Any

from bench.requests.kafka import all_indexes, changing, row
from bench.requests.world import (
    COMMIT_VERSION,
    TRANSACTION_OF_ALL,
    Loaded,
    Request,
    commit,
    kafka_frame,
)
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages import add_offsets_to_txn as adding
from rockgate.protocol.kafka.messages import api_versions as versions
from rockgate.protocol.kafka.messages import describe_cluster as cluster
from rockgate.protocol.kafka.messages import end_txn as ending
from rockgate.protocol.kafka.messages import heartbeat as beating
from rockgate.protocol.kafka.messages import init_producer_id as beginning
from rockgate.protocol.kafka.messages import streams_group_describe as describing
from rockgate.protocol.kafka.messages import streams_group_heartbeat as streaming

LONG = "x" * 32_000
END_VERSION = 4
TOGETHER = 500


def _names() -> Iterator[Request]:
    """Long names."""
    yield row(
        ApiKey.API_VERSIONS,
        "names of 32 KB",
        lambda _: versions.ApiVersionsRequest(
            client_software_name=LONG, client_software_version=LONG
        ),
    )
    yield row(
        ApiKey.HEARTBEAT,
        "ids of 32 KB",
        lambda _: beating.HeartbeatRequest(
            group_id=LONG, generation_id=1, member_id=LONG, group_instance_id=LONG
        ),
    )
    yield row(
        ApiKey.DESCRIBE_CLUSTER,
        "all",
        lambda _: cluster.DescribeClusterRequest(include_cluster_authorized_operations=True),
    )


def _transactions() -> Iterator[Request]:
    """Transactions of many partitions."""
    yield changing(
        ApiKey.ADD_OFFSETS_TO_TXN,
        "ids of 32 KB",
        lambda w: adding.AddOffsetsToTxnRequest(
            transactional_id=LONG,
            producer_id=w.producers[4][0],
            producer_epoch=w.producers[4][1],
            group_id=LONG,
        ),
    )
    yield changing(
        ApiKey.END_TXN,
        "a transaction of all topics",
        lambda w: ending.EndTxnRequest(
            transactional_id=TRANSACTION_OF_ALL,
            producer_id=w.producers[0][0],
            producer_epoch=w.producers[0][1],
            committed=True,
        ),
        version=END_VERSION,
    )
    yield changing(
        ApiKey.INIT_PRODUCER_ID,
        "a transaction of 10,000 partitions",
        lambda w: beginning.InitProducerIdRequest(
            transactional_id=w.transactions[1], transaction_timeout_ms=600_000
        ),
    )


def _commits_together(world: Loaded) -> list[bytes]:
    asked = [commit(f"together-{number}", world.topics[:1]) for number in range(TOGETHER)]
    frames = [kafka_frame(ApiKey.OFFSET_COMMIT, each, COMMIT_VERSION) for each in asked]
    return [b"".join(frames)]


def _together() -> Iterator[Request]:
    """Many small ones that arrive in one read."""
    yield Request(
        name=f"OffsetCommit v{COMMIT_VERSION}, {TOGETHER} in one write",
        listener="kafka",
        make=_commits_together,
        count=TOGETHER,
    )


# Streams groups

STREAMS_GROUP = "streams"
SUBTOPOLOGIES = 500
TOPICS_EACH = 4
TASKS = 50_000


def _joining(
    world: Loaded, group: str, subtopologies: list[streaming.Subtopology], member: str = "member"
) -> streaming.StreamsGroupHeartbeatRequest:
    return streaming.StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        process_id=member,
        topology=streaming.Topology(subtopologies=subtopologies),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        user_endpoint=streaming.Endpoint(host="here", port=1),
    )


def _many_subtopologies(world: Loaded) -> list[streaming.Subtopology]:
    """As many as a topology may have; each writes what the next one reads."""
    return [
        streaming.Subtopology(
            subtopology_id=f"{at:05d}",
            source_topics=world.topics[:1],
            repartition_sink_topics=[f"r{at + 1}"],
            repartition_source_topics=[streaming.TopicInfo(name=f"r{at}")] if at else [],
            state_changelog_topics=[
                streaming.TopicInfo(name=f"c{at}-{each}") for each in range(TOPICS_EACH - 3)
            ],
        )
        for at in range(SUBTOPOLOGIES)
    ]


def _wide(world: Loaded) -> list[streaming.Subtopology]:
    """As many tasks as a group may have, by a repartition topic of its own."""
    count = min(TASKS, len(all_indexes(world)))
    return [
        streaming.Subtopology(
            subtopology_id="0", source_topics=world.topics[:1], repartition_sink_topics=["wide-r"]
        ),
        streaming.Subtopology(
            subtopology_id="1",
            repartition_source_topics=[streaming.TopicInfo(name="wide-r", partitions=count - 10)],
        ),
    ]


def _owning(world: Loaded, **said: Any) -> streaming.StreamsGroupHeartbeatRequest:
    tasks = [streaming.TaskIds(subtopology_id="1", partitions=all_indexes(world)[: TASKS - 10])]
    return streaming.StreamsGroupHeartbeatRequest(
        group_id=STREAMS_GROUP,
        member_id="member",
        member_epoch=2,
        active_tasks=tasks,
        standby_tasks=[],
        warmup_tasks=[],
        **said,
    )


def _streams() -> Iterator[Request]:
    heartbeat = ApiKey.STREAMS_GROUP_HEARTBEAT
    yield changing(
        heartbeat,
        "500 subtopologies with 2,000 topics",
        lambda w: _joining(w, "streams-deep", _many_subtopologies(w)),
    )
    yield changing(heartbeat, "50,000 tasks", lambda w: _joining(w, STREAMS_GROUP, _wide(w)))
    yield changing(
        heartbeat,
        "50,000 tasks, another member",
        lambda w: _joining(w, STREAMS_GROUP, _wide(w), "another"),
    )
    yield changing(heartbeat, "50,000 tasks owned", _owning)
    yield row(
        ApiKey.STREAMS_GROUP_DESCRIBE,
        "50,000 groups",
        lambda w: describing.StreamsGroupDescribeRequest(
            group_ids=[STREAMS_GROUP, "streams-deep", *w.groups], include_authorized_operations=True
        ),
    )


REQUESTS: tuple[Request, ...] = (
    *_names(),
    *_together(),
    *_transactions(),
    *_streams(),
)
