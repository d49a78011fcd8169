"""Offsets that a producer commits for a member of the consumer protocol, over the wire.

The errors are those of Apache Kafka 4.3.1: producers know ILLEGAL_GENERATION, and take any other
error than that and UNKNOWN_MEMBER_ID for one that they cannot recover from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.gateway.kafka.raw import RawClient
from tests.gateway.server import RunningServer

from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from rockgate.protocol.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rockgate.protocol.kafka.messages.init_producer_id import InitProducerIdRequest
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from rockgate.protocol.kafka.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

TOPIC, GROUP, MEMBER, ID = "orders", "readers", "member", "tx"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    with RunningServer(tmp_path_factory.mktemp("offsets")) as server:
        with RawClient(server) as raw:
            yield raw
        server.stop_cleanly()


def ask(client: RawClient, key: ApiKey, version: int, request: Any) -> Any:
    return client.call(key, version, request, APIS[key].response)


@pytest.mark.row("GRP-4")
def test_a_stale_epoch_is_an_illegal_generation_to_a_producer(client: RawClient) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    ask(client, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    joining = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=MEMBER,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    epoch = ask(client, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, joining).member_epoch
    beginning = InitProducerIdRequest(
        transactional_id=ID, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    )
    producer = ask(client, ApiKey.INIT_PRODUCER_ID, 5, beginning)

    def transactional(epoch: int, member: str) -> int:
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        request = TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id=GROUP,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            generation_id=epoch,
            member_id=member,
            topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[part])],
        )
        answer = ask(client, ApiKey.TXN_OFFSET_COMMIT, 5, request)
        return int(answer.topics[0].partitions[0].error_code)

    def plain(epoch: int, member: str) -> int:
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=epoch,
            member_id=member,
            topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[part])],
        )
        answer = ask(client, ApiKey.OFFSET_COMMIT, 9, request)
        return int(answer.topics[0].partitions[0].error_code)

    illegal, stale = ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    asked = [(epoch, MEMBER), (epoch - 1, MEMBER), (epoch + 1, MEMBER), (epoch, "other"), (-1, "")]
    assert [transactional(*each) for each in asked] == [0, illegal, illegal, unknown, 0]
    assert [plain(*each) for each in asked] == [0, stale, stale, unknown, unknown]
