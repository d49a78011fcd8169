"""Churn: topics, producers, transactional ids and groups that are created and abandoned.

Every kind of churn is one coroutine on its own connection, at a steady pace, and checks each
response: bench/soak.py measures what a server leaves behind after each round. Names are never
reused.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Final

from bench.load.members import SUBSCRIPTION, Wire
from bench.load.rdkafka import LoadFailed
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from rockgate.protocol.kafka.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from rockgate.protocol.kafka.messages.end_txn import EndTxnRequest, EndTxnResponse
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from rockgate.protocol.kafka.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from rockgate.protocol.kafka.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from rockgate.protocol.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from rockgate.protocol.kafka.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from rockgate.protocol.kafka.records.record import Record, build_batch
from rockgate.protocol.kafka.schema import Encoded

STEADY: Final = "steady"
"""The permanent topic, for producers, transactions and groups."""
PARTITIONS: Final = 4
TRANSACTIONS_EACH: Final = 5
_TIMEOUT_MS: Final = 30_000
_NOTHING_YET: Final = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED}

Round = Callable[[Wire, str], Awaitable[None]]


async def make_steady(wire: Wire) -> None:
    """Create the permanent topic."""
    await _create(wire, STEADY)


async def topic(wire: Wire, name: str) -> None:
    """Create a topic, write once to each of its partitions, delete it."""
    await _create(wire, name)
    for partition in range(PARTITIONS):
        await _produce(wire, name, partition)
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=_TIMEOUT_MS)
    deleted = await wire.call(ApiKey.DELETE_TOPICS, 5, request, DeleteTopicsResponse)
    (result,) = deleted.responses
    assert not isinstance(result, Encoded)
    _check("delete a topic", result.error_code)


async def producer(wire: Wire, name: str) -> None:
    """Be a new idempotent producer that writes once to each partition and never returns."""
    id_, epoch = await _init(wire, None)
    for partition in range(PARTITIONS):
        await _produce(wire, STEADY, partition, producer=(id_, epoch, 0))


async def transactions(wire: Wire, name: str) -> None:
    """Be a new transactional id that completes some transactions with offsets, and leaves."""
    id_, epoch = await _init(wire, name)
    for number in range(TRANSACTIONS_EACH):
        await _transaction(wire, name, (id_, epoch), number)


async def group(wire: Wire, name: str) -> None:
    """Be a group of one member that joins, commits an offset and leaves for good."""
    member, code = "", ErrorCode.MEMBER_ID_REQUIRED
    while code in _NOTHING_YET:
        joined = await wire.call(
            ApiKey.JOIN_GROUP,
            7,
            JoinGroupRequest(
                group_id=name,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id=member,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
            ),
            JoinGroupResponse,
        )
        member, code = joined.member_id, ErrorCode(joined.error_code)
    _check("join a group", code)
    synced = await wire.call(
        ApiKey.SYNC_GROUP,
        5,
        SyncGroupRequest(
            group_id=name,
            generation_id=joined.generation_id,
            member_id=member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id=member, assignment=b"")],
        ),
        SyncGroupResponse,
    )
    _check("sync a group", synced.error_code)
    parts = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    committed = await wire.call(
        ApiKey.OFFSET_COMMIT,
        7,
        OffsetCommitRequest(
            group_id=name,
            generation_id_or_member_epoch=joined.generation_id,
            member_id=member,
            topics=[OffsetCommitRequestTopic(name=STEADY, partitions=parts)],
        ),
        OffsetCommitResponse,
    )
    _check("commit an offset", committed.topics[0].partitions[0].error_code)
    leave = LeaveGroupRequest(group_id=name, members=[MemberIdentity(member_id=member)])
    left = await wire.call(ApiKey.LEAVE_GROUP, 4, leave, LeaveGroupResponse)
    _check("leave a group", left.error_code)


KINDS: Final[dict[str, tuple[Round, float, int]]] = {
    "topics": (topic, 18.0, 1),
    "producers": (producer, 20.0, 1),
    "transactional ids": (transactions, 5.0, 1),
    "groups": (group, 5.0, 20),
}
"""What is done, its maximum rate per second, and the number of connections."""


class Churn:
    """Some kinds of churn against one server, until they are stopped."""

    def __init__(
        self, address: tuple[str, int], kinds: dict[str, tuple[Round, float, int]]
    ) -> None:
        self._address = address
        self._kinds = kinds
        self._names = count(1)
        self.counts = dict.fromkeys(kinds, 0)

    async def run(self, seconds: float) -> None:
        """Run for a time; the first error response ends it."""
        first = await Wire.dial(self._address, "soak")
        await make_steady(first)
        first.close()
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as tasks:
            for kind, (round_, pace, lines) in self._kinds.items():
                for _ in range(lines):
                    tasks.create_task(self._go(kind, round_, lines / pace, until))

    async def _go(self, kind: str, round_: Round, every: float, until: float) -> None:
        wire = await Wire.dial(self._address, f"soak-{kind}")
        due = time.monotonic()
        while due < until:
            await round_(wire, f"{kind.replace(' ', '-')}-{next(self._names)}")
            self.counts[kind] += 1
            due = max(due + every, time.monotonic() - 1)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        wire.close()


# Requests shared by several kinds


async def _create(wire: Wire, name: str) -> None:
    new = CreatableTopic(
        name=name, num_partitions=PARTITIONS, replication_factor=1, assignments=[], configs=[]
    )
    request = CreateTopicsRequest(topics=[new], timeout_ms=_TIMEOUT_MS, validate_only=False)
    made = await wire.call(ApiKey.CREATE_TOPICS, 5, request, CreateTopicsResponse)
    (result,) = made.topics
    assert not isinstance(result, Encoded)
    _check("create a topic", result.error_code)


async def _init(wire: Wire, transactional_id: str | None) -> tuple[int, int]:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=_TIMEOUT_MS
    )
    given = await wire.call(ApiKey.INIT_PRODUCER_ID, 4, request, InitProducerIdResponse)
    _check("take a producer id", given.error_code)
    return given.producer_id, given.producer_epoch


async def _transaction(wire: Wire, name: str, producer: tuple[int, int], number: int) -> None:
    identity: dict[str, Any] = {
        "transactional_id": name,
        "producer_id": producer[0],
        "producer_epoch": producer[1],
    }
    await _add(wire, name, producer)
    await _produce(wire, STEADY, 0, producer=(*producer, number), transactional_id=name)
    added = await wire.call(
        ApiKey.ADD_OFFSETS_TO_TXN,
        3,
        AddOffsetsToTxnRequest(**identity, group_id="soak"),
        AddOffsetsToTxnResponse,
    )
    _check("add offsets to a transaction", added.error_code)
    parts = [
        TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=number, committed_metadata=None
        )
    ]
    pending = await wire.call(
        ApiKey.TXN_OFFSET_COMMIT,
        3,
        TxnOffsetCommitRequest(
            **identity,
            group_id="soak",
            member_id="",
            topics=[TxnOffsetCommitRequestTopic(name=STEADY, partitions=parts)],
        ),
        TxnOffsetCommitResponse,
    )
    _check("commit offsets in a transaction", pending.topics[0].partitions[0].error_code)
    ended = await wire.call(
        ApiKey.END_TXN, 3, EndTxnRequest(**identity, committed=number % 2 == 0), EndTxnResponse
    )
    _check("end a transaction", ended.error_code)


async def _add(wire: Wire, name: str, producer: tuple[int, int]) -> None:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=STEADY, partitions=[0])],
    )
    added = await wire.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request, AddPartitionsToTxnResponse)
    results = added.results_by_topic_v3_and_below
    _check("add a partition", results[0].results_by_partition[0].partition_error_code)


async def _produce(
    wire: Wire,
    name: str,
    partition: int,
    *,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional_id: str | None = None,
) -> None:
    record = Record(offset=0, timestamp=int(time.time() * 1000), key=None, value=bytes(100))
    batch = build_batch(
        [record],
        base_offset=0,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=transactional_id is not None,
    )
    data = PartitionProduceData(index=partition, records=bytes(batch))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=_TIMEOUT_MS,
        topic_data=[TopicProduceData(name=name, partition_data=[data])],
    )
    written = await wire.call(ApiKey.PRODUCE, 9, request, ProduceResponse)
    _check("produce", written.responses[0].partition_responses[0].error_code)


def _check(what: str, code: int) -> None:
    if code:
        raise LoadFailed(f"cannot {what}: {ErrorCode(code).name}")
