"""Kafka's transactions on the wire: lists open ones, finds hanging ones and aborts those.

A transaction hangs if a partition has it open and its coordinator does not: it knows no such
producer, or no longer counts the partition among those it will end. Readers of committed records
never get past it. The remedy is the one of Kafka's own tools: a marker, written to that partition
alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rockgate.cli.client.kafka.broker import Broker
from rockgate.cli.client.kafka.cluster import COORDINATOR_MOVED, Cluster, CoordinatorType
from rockgate.cli.client.kafka.errors import Refused
from rockgate.cli.client.kafka.view import Place, by_topic, decoded
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from rockgate.protocol.kafka.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from rockgate.protocol.kafka.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from rockgate.protocol.kafka.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

OPEN_STATES: Final = frozenset(("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"))
_AT_ONCE: Final = 16
"""How many transactional ids are described at the same time."""


class Transaction(NamedTuple):
    """One transactional id, as its coordinator knows it."""

    id: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    start_ms: int
    """-1 when nothing is open."""
    places: tuple[Place, ...]

    @property
    def is_open(self) -> bool:
        """Whether something is still to be decided or ended."""
        return self.state in OPEN_STATES


class Open(NamedTuple):
    """A transaction that a partition has open."""

    place: Place
    producer_id: int
    epoch: int
    coordinator_epoch: int
    start_offset: int
    last_ms: int
    """When its producer last wrote to the partition."""


class Hanging(NamedTuple):
    """A transaction that no coordinator will end."""

    open: Open
    transactional_id: str | None
    reason: str


async def list_ids(
    cluster: Cluster, *, states: Collection[str] = (), producer_ids: Collection[int] = ()
) -> dict[str, int]:
    """Transactional ids with their producers', of all coordinators."""
    await cluster.metadata(())
    request = ListTransactionsRequest(
        state_filters=sorted(states), producer_id_filters=sorted(producer_ids)
    )

    async def ask(node_id: int) -> ListTransactionsResponse:
        answer = await cluster.node(node_id).ask(request, ListTransactionsResponse)
        if answer.error_code:
            raise Refused(answer.error_code, what=f"listing transactions of broker {node_id}")
        return answer

    answers = await asyncio.gather(*(ask(node_id) for node_id in cluster.node_ids))
    return {
        each.transactional_id: each.producer_id
        for answer in answers
        for each in answer.transaction_states
        # A broker that does not know a state must not list everything for it.
        if not states or each.transaction_state in states
    }


async def describe(cluster: Cluster, ids: Iterable[str]) -> dict[str, Transaction | Refused]:
    """Each transactional id as its coordinator describes it."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(id_: str) -> Transaction | Refused:
        async with turns:
            try:
                return await cluster.ask_coordinator(
                    id_, lambda broker: _describe(broker, id_), CoordinatorType.TRANSACTION
                )
            except Refused as error:
                return error

    wanted = list(dict.fromkeys(ids))
    found = await asyncio.gather(*(one(id_) for id_ in wanted))
    return dict(zip(wanted, found, strict=True))


async def _describe(broker: Broker, id_: str) -> Transaction:
    request = DescribeTransactionsRequest(transactional_ids=[id_])
    answer = await broker.ask(request, DescribeTransactionsResponse)
    (state,) = answer.transaction_states
    if state.error_code:
        raise Refused(state.error_code, what=f"transactional id {id_}")
    # Brokers also report the start of a transaction that has ended.
    is_open = state.transaction_state in OPEN_STATES
    return Transaction(
        id_,
        state.transaction_state,
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms if is_open else -1,
        tuple((topic.topic, index) for topic in state.topics for index in topic.partitions),
    )


async def open_in(cluster: Cluster, places: Sequence[Place]) -> dict[Place, list[Open] | Refused]:
    """The transactions that are open in partitions, as their leaders report."""

    async def ask(broker: Broker, asked: list[Place]) -> dict[Place, list[Open] | Refused]:
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=name, partition_indexes=indexes)
                for name, indexes in by_topic(asked).items()
            ]
        )
        answer = await broker.ask(request, DescribeProducersResponse)
        found: dict[Place, list[Open] | Refused] = {}
        for topic in decoded(answer.topics):
            for part in topic.partitions:
                place = (topic.name, part.partition_index)
                if part.error_code:
                    found[place] = Refused(part.error_code, part.error_message)
                    continue
                found[place] = [
                    Open(
                        place,
                        each.producer_id,
                        each.producer_epoch,
                        each.coordinator_epoch,
                        each.current_txn_start_offset,
                        each.last_timestamp,
                    )
                    for each in part.active_producers
                    if each.current_txn_start_offset >= 0
                ]
        return found

    return await cluster.ask_leaders(places, ask)


async def find_hanging(cluster: Cluster, candidates: Sequence[Open]) -> list[Hanging]:
    """Those of the transactions that no coordinator will end."""
    if not candidates:
        return []
    ids = await list_ids(cluster, producer_ids={each.producer_id for each in candidates})
    id_of = {producer_id: id_ for id_, producer_id in ids.items()}
    known = await describe(cluster, ids)
    found: list[Hanging] = []
    for each in candidates:
        id_ = id_of.get(each.producer_id)
        if id_ is None:
            found.append(Hanging(each, None, "no coordinator knows its producer"))
            continue
        transaction = known[id_]
        if isinstance(transaction, Refused):
            found.append(Hanging(each, id_, "its coordinator no longer knows it"))
        elif not transaction.is_open:
            reason = f"its coordinator has completed it ({transaction.state})"
            found.append(Hanging(each, id_, reason))
        elif each.place not in transaction.places:
            found.append(Hanging(each, id_, "its coordinator does not include this partition"))
    return found


async def abort(cluster: Cluster, each: Open) -> Refused | None:
    """End a transaction in its partition by an abort marker, regardless of its coordinator."""
    name, index = each.place
    request = WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=each.producer_id,
                producer_epoch=each.epoch,
                transaction_result=False,
                topics=[WritableTxnMarkerTopic(name=name, partition_indexes=[index])],
                coordinator_epoch=max(0, each.coordinator_epoch),
            )
        ]
    )

    async def ask(broker: Broker, asked: list[Place]) -> Mapping[Place, Refused | None]:
        answer = await broker.ask(request, WriteTxnMarkersResponse)
        codes = {
            (topic.name, part.partition_index): part.error_code
            for marker in answer.markers
            for topic in marker.topics
            for part in topic.partitions
        }
        return {
            place: Refused(code)
            if (code := codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR))
            else None
            for place in asked
        }

    return (await cluster.ask_leaders([each.place], ask))[each.place]


async def terminate(cluster: Cluster, transaction: Transaction) -> None:
    """Abort a transaction through its coordinator, and fence its producer."""
    request = InitProducerIdRequest(
        transactional_id=transaction.id, transaction_timeout_ms=max(1, transaction.timeout_ms)
    )

    async def ask(broker: Broker) -> None:
        answer = await broker.ask(request, InitProducerIdResponse)
        if answer.error_code:
            raise Refused(answer.error_code)

    again = {*COORDINATOR_MOVED, ErrorCode.CONCURRENT_TRANSACTIONS}
    await cluster.ask_coordinator(transaction.id, ask, CoordinatorType.TRANSACTION, again=again)
