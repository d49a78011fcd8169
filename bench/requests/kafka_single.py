"""The largest requests of the Kafka protocol that name one thing, for `bench.requests`.

They are large because of what the name refers to: a transaction of every topic, or of every
partition of a wide one; or because of the name itself; or because many arrive at once. They follow
the transactions of `bench.requests.kafka_changes`, which add those partitions, and precede its
deletion of topics.
"""

from collections.abc import Iterator

from bench.requests.kafka import changing, row
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


REQUESTS: tuple[Request, ...] = (*_names(), *_together(), *_transactions())
