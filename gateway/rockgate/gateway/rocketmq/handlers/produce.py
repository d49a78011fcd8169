"""Produce over a RocketMQ cluster: v3-13.

Behaviour
- Each batch goes to the writer of its queue, as messages, and has the offsets that the broker gave
  them. A batch is never split: over 32,767 records or 4 MiB it is MESSAGE_TOO_LARGE.
- acks 1 is answered when the master has stored it; acks all also says
  NOT_ENOUGH_REPLICAS_AFTER_APPEND if the broker was late to flush or replicate.
- NOT_LEADER_OR_FOLLOWER means that it is unknown whether it was stored: clients send it again. It
  is also the answer while a broker is silent; a repeat then has the outcome that still comes.
- A batch of a transaction is INVALID_TXN_STATE: there are none.

Versions
- v5: log start offset, -1.  v9: flexible.  v13: topics by id.

Departs from Kafka
- Compressed batches are opened and stored plain, but in topics with `queue.type=BatchCQ`, where a
  batch is one message, as it came. LogAppendTime is not supported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from rockgate.gateway.kafka.produce.requests import Produced, close_on_error
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.rocketmq.members.placement import NO_TRANSACTIONS
from rockgate.gateway.rocketmq.queues.delayed import DelayRule
from rockgate.gateway.rocketmq.queues.messages import BatchForm
from rockgate.gateway.rocketmq.queues.queues import ClusterQueues
from rockgate.gateway.rocketmq.topics.catalog import Cluster, ClusterCatalog
from rockgate.gateway.rocketmq.topics.topic import ClusterTopic
from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch
from rockgate.protocol.kafka.hot import produce as hot
from rockgate.protocol.kafka.hot.produce import ProducedPartition, ProducedTopic
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.batch import check_produced

TIMEOUT_MS_MAX = 120_000
SILENCE_S_MAX = 10.0
"""How long clients wait for a broker; then they have to send again."""
_ACKS = (-1, 0, 1)

_Outcomes: TypeAlias = list[list[ProducedPartition | tuple[int, asyncio.Future[int]]]]
"""Of each topic's partitions: what is refused at once, or the offset that will come."""


class ClusterProduce:
    """Appends batches to queues of brokers."""

    def __init__(
        self,
        *,
        catalog: ClusterCatalog,
        cluster: Cluster,
        queues: ClusterQueues,
        message_bytes_max: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._catalog = catalog
        self._cluster = cluster
        self._queues = queues
        self._message_bytes_max = message_bytes_max
        self._now_ms = now_ms

    def handle(self, request: ProduceRequest, call: Call) -> Produced | Awaitable[Produced]:
        """Append every batch of the request, and promise the answers of their brokers."""
        if request.acks not in _ACKS:
            return self.refuse(request, ErrorCode.INVALID_REQUIRED_ACKS)
        for data in request.topic_data:
            for each in data.partition_data:
                # The connection's own buffer may be used again while this waits.
                each.records = None if each.records is None else bytes(each.records)
        if call.version < hot.TOPIC_IDS:
            learning = self._catalog.learn([data.name for data in request.topic_data])
            if learning is not None:
                # Until it has its places, nothing behind it on its connection is started: the topic
                # may be known before this request continues.
                call.peer.reading_count += 1
                return self._produce_after(learning, request, call)
        return self._produce(request, call)

    async def _produce_after(
        self, learning: Awaitable[None], request: ProduceRequest, call: Call
    ) -> Produced:
        try:
            await learning
            producing = self._produce(request, call)
        finally:
            call.peer.reading_count -= 1
            call.peer.resume()
        return await producing

    def _produce(self, request: ProduceRequest, call: Call) -> Awaitable[Produced]:
        # Every batch takes its place before the first is awaited.
        outcomes = [
            [self._append(request, call, data, each) for each in data.partition_data]
            for data in request.topic_data
        ]
        return self._answer(request, outcomes)

    async def _answer(self, request: ProduceRequest, outcomes: _Outcomes) -> Produced:
        now = asyncio.get_running_loop().time()
        deadline, until = now + _timeout_s(request), now + SILENCE_S_MAX
        topics = []
        for data, some in zip(request.topic_data, outcomes, strict=True):
            partitions = [
                each
                if isinstance(each, ProducedPartition)
                else await _outcome(*each, deadline=deadline, until=until)
                for each in some
            ]
            topics.append(ProducedTopic(data.name, data.topic_id, partitions))
        if request.acks == 0:
            close_on_error(topics)
        return Produced(topics, request.acks == 0)

    def refuse(self, request: ProduceRequest, code: ErrorCode) -> Produced:
        """Reject every partition with the same error."""
        topics = [
            ProducedTopic(
                data.name,
                data.topic_id,
                [ProducedPartition(each.index, code) for each in data.partition_data],
            )
            for data in request.topic_data
        ]
        if request.acks == 0:
            close_on_error(topics)
        return Produced(topics, request.acks == 0)

    def _append(
        self,
        request: ProduceRequest,
        call: Call,
        data: TopicProduceData,
        each: PartitionProduceData,
    ) -> ProducedPartition | tuple[int, asyncio.Future[int]]:
        is_by_id = call.version >= hot.TOPIC_IDS
        topic = self._catalog.find_id(data.topic_id) if is_by_id else self._catalog.find(data.name)
        if topic is None or not 0 <= each.index < topic.queue_count:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic is None and is_by_id:
                unknown = ErrorCode.UNKNOWN_TOPIC_ID
            return ProducedPartition(each.index, unknown)
        try:
            return each.index, self._begin(request, call, topic, each)
        except (MalformedBatch, RequestError) as error:
            reason = error.reason if isinstance(error, RequestError) else str(error)
            return ProducedPartition(each.index, error.code, error_message=reason)

    def _begin(
        self,
        request: ProduceRequest,
        call: Call,
        topic: ClusterTopic,
        each: PartitionProduceData,
    ) -> asyncio.Future[int]:
        header = check_produced(each.records, call.version)
        assert each.records is not None, "a batch that was checked is there"
        size = len(each.records)
        if size > self._message_bytes_max:
            raise RequestError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"Batch is {size:,} bytes; the maximum is {self._message_bytes_max:,}.",
            )
        if header.is_transactional or request.transactional_id is not None:
            raise RequestError(ErrorCode.INVALID_TXN_STATE, NO_TRANSACTIONS)
        queue = topic.queue(each.index)
        writer = self._queues.writer(queue)
        if queue.broker not in self._cluster.masters:
            reason = f"Broker {queue.broker} has no master now."
            raise writer.refuse(header, ErrorCode.LEADER_NOT_AVAILABLE, reason)
        if not topic.is_writable(queue):
            reason = f"Queue {queue.queue_id} of broker {queue.broker} is not writable."
            raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, reason)
        return writer.append(
            bytes(each.records),
            header,
            is_all=request.acks == -1,
            deadline=asyncio.get_running_loop().time() + _timeout_s(request),
            now_ms=self._now_ms(),
            form=BatchForm(_delay_rule(topic), topic.has_batch_queues),
        )


def _delay_rule(topic: ClusterTopic) -> DelayRule:
    if not topic.delays:
        return DelayRule.NONE
    return DelayRule.ALL if topic.is_typed else DelayRule.LEVELS


async def _outcome(
    index: int, outcome: asyncio.Future[int], *, deadline: float, until: float
) -> ProducedPartition:
    try:
        async with asyncio.timeout_at(min(deadline, until)):
            return ProducedPartition(index, 0, await asyncio.shield(outcome))
    except RequestError as error:
        return ProducedPartition(index, error.code, error_message=error.reason)
    except TimeoutError:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if deadline < until:
            code = ErrorCode.REQUEST_TIMED_OUT
        return ProducedPartition(index, code, error_message="The broker has not answered yet.")


def _timeout_s(request: ProduceRequest) -> float:
    return min(max(request.timeout_ms, 0), TIMEOUT_MS_MAX) / 1000
