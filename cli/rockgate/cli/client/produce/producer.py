"""Sending records: batches for each partition, in order, and again when a leader moved.

One request is under way to each leader at a time; records gather meanwhile, so that batches grow
with the load. With idempotence a batch that is sent again keeps its sequence and is written once.
A batch that the server finds too large is cut in two.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rockgate.cli.client.kafka.broker import Broker
from rockgate.cli.client.kafka.cluster import LEADER_MOVED, Cluster, leader_of
from rockgate.cli.client.kafka.errors import ClientError, Refused, Unreachable
from rockgate.cli.client.kafka.view import View
from rockgate.cli.client.produce.partitioner import partition_of
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.batch import Compression
from rockgate.protocol.kafka.records.record import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Header,
    Record,
    build_batch,
)

BY_NAME: Final = 12
"""The last version of Produce in which a topic goes by its name."""
BATCH_BYTES: Final = 512 << 10
"""Half of what a topic takes by default: enough that a batch costs little, and never too much."""
_RECORD_OVERHEAD: Final = 32
ACKS_ALL: Final = -1
_AGAIN: Final = LEADER_MOVED | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}


class Outgoing(NamedTuple):
    """A record to send; the default partition is by its key, the default time is now."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(slots=True)
class Sent:
    """What was stored in one partition; offsets are -1 if no response was requested."""

    record_count: int = 0
    first_offset: int = -1
    last_offset: int = -1


@dataclass(slots=True)
class _Queue:
    """The records that wait for one partition, and the sequence of the first of them."""

    records: list[Outgoing] = field(default_factory=list)
    size: int = 0
    sequence: int = 0
    batch_bytes: int = BATCH_BYTES


class Producer:
    """Sends records to one topic. `add` gathers, `flush` waits until all of it is acknowledged."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        acks: int = ACKS_ALL,
        compression: Compression = Compression.NONE,
        is_idempotent: bool = True,
        on_created: Callable[[int], None] = lambda count: None,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self.sent: dict[int, Sent] = {}
        self._cluster = cluster
        self._topic = topic
        self._acks = acks
        self._compression = compression
        self._is_idempotent = is_idempotent and acks == ACKS_ALL
        self._on_created = on_created
        self._now_ms = now_ms
        self._producer_id = NO_PRODUCER_ID
        self._epoch = NO_PRODUCER_EPOCH
        self._view: View | None = None
        self._count = 0
        self._queues: dict[int, _Queue] = {}
        self._turn = 0

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has, once open."""
        return self._count

    async def open(self) -> None:
        """Find the topic, which the server may create now, and get a producer id."""
        self._view = await self._find()
        self._count = len(self._view.topics[self._topic].partitions)
        if self._is_idempotent:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            async with self._cluster.deadline("a producer id") as pause:
                while True:
                    broker = await self._cluster.anyone()
                    answer = await broker.ask(request, InitProducerIdResponse)
                    if not answer.error_code:
                        break
                    error = Refused(answer.error_code, what="allocating a producer id")
                    if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                        raise error
                    await pause(error)
            self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

    def add(self, record: Outgoing) -> bool:
        """Add a record; returns whether a flush is due."""
        index = self._choose(record)
        queue = self._queues.setdefault(index, _Queue())
        queue.records.append(record)
        queue.size += _size([record])
        if queue.size < BATCH_BYTES:
            return False
        # Records without a key fill one partition's batch and then move to the next.
        if index == self._turn:
            self._turn = (self._turn + 1) % self._count
        return True

    async def flush(self) -> None:
        """Send everything pending; it is acknowledged, or an error is raised."""
        async with self._cluster.deadline(f"acknowledgements from {self._topic}") as pause:
            while waiting := [i for i, queue in self._queues.items() if queue.records]:
                error = await self._send_once(waiting)
                if error is not None:
                    await pause(error)
                    self._view = await self._cluster.found([self._topic])
                else:
                    self._turn = (self._turn + 1) % self._count

    # Private

    def _choose(self, record: Outgoing) -> int:
        if record.partition is not None:
            if not 0 <= record.partition < self._count:
                raise Refused(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"partition {record.partition} does not exist, only 0 to {self._count - 1}",
                    what=f"topic {self._topic}",
                )
            return record.partition
        if record.key is not None:
            return partition_of(record.key, self._count)
        return self._turn

    async def _find(self) -> View:
        """The topic's leaders; one that is missing is asked for until the server has made it."""
        view = await self._cluster.metadata([self._topic])
        code = view.topics[self._topic].error_code if self._topic in view.topics else 0
        is_new = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        async with self._cluster.deadline(f"topic {self._topic}") as pause:
            while code:
                error = Refused(code, what=f"topic {self._topic}")
                if code not in _AGAIN:
                    raise error
                view = await self._cluster.metadata([self._topic], creates=True)
                code = view.topics[self._topic].error_code
                if code:
                    await pause(error)
        if is_new:
            self._on_created(len(view.topics[self._topic].partitions))
        return view

    async def _send_once(self, waiting: list[int]) -> ClientError | None:
        """Send one request to each leader; return the error of what has to be resent, if any."""
        assert self._view is not None, "not open"
        by_leader: dict[int, list[int]] = {}
        failure: ClientError | None = None
        for index in waiting:
            leader = leader_of(self._view, (self._topic, index))
            if isinstance(leader, Refused):
                failure = leader.at((self._topic, index))
            else:
                by_leader.setdefault(leader, []).append(index)
        done = await asyncio.gather(
            *(
                self._send_to(self._cluster.node(leader), indexes)
                for leader, indexes in by_leader.items()
            )
        )
        return next((error for error in done if error is not None), failure)

    async def _send_to(self, broker: Broker, indexes: list[int]) -> ClientError | None:
        taken = {index: self._head(index) for index in indexes}
        request = ProduceRequest(
            acks=self._acks,
            timeout_ms=int(self._cluster.timeout_s * 1000),
            topic_data=[
                TopicProduceData(
                    name=self._topic,
                    partition_data=[
                        PartitionProduceData(index=index, records=self._batch(index, records))
                        for index, records in taken.items()
                    ],
                )
            ],
        )
        try:
            if self._acks == 0:
                await broker.send_oneway(request, version_max=BY_NAME)
                for index, records in taken.items():
                    self._done(index, len(records), -1)
                return None
            answer = await broker.ask(request, ProduceResponse, version_max=BY_NAME)
        except Unreachable as lost:
            return lost
        failure: ClientError | None = None
        for topic in answer.responses:
            for part in topic.partition_responses:
                code, count = part.error_code, len(taken[part.index])
                if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                    self._done(part.index, count, part.base_offset)
                    continue
                what = f"topic {self._topic} partition {part.index}"
                error = Refused(code, part.error_message, what=what)
                if code == ErrorCode.MESSAGE_TOO_LARGE and count > 1:
                    self._queues[part.index].batch_bytes = _size(taken[part.index]) // 2
                    continue
                if code not in _AGAIN:
                    raise error
                failure = error
        return failure

    def _head(self, index: int) -> list[Outgoing]:
        """The records of the next batch: as many as fit, one at least."""
        queue, size, count = self._queues[index], 0, 0
        for record in queue.records:
            size += _size([record])
            if count and size > queue.batch_bytes:
                break
            count += 1
        return queue.records[:count]

    def _batch(self, index: int, records: list[Outgoing]) -> memoryview:
        now = self._now_ms()
        has_id = self._producer_id != NO_PRODUCER_ID
        batch = build_batch(
            [
                Record(
                    offset=offset,
                    timestamp=now if each.timestamp_ms is None else each.timestamp_ms,
                    key=each.key,
                    value=each.value,
                    headers=each.headers,
                )
                for offset, each in enumerate(records)
            ],
            base_offset=0,
            compression=self._compression,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._queues[index].sequence if has_id else NO_SEQUENCE,
        )
        return memoryview(batch)

    def _done(self, index: int, count: int, base_offset: int) -> None:
        queue, sent = self._queues[index], self.sent.setdefault(index, Sent())
        del queue.records[:count]
        queue.size = _size(queue.records)
        queue.sequence = (queue.sequence + count) & 0x7FFFFFFF
        sent.record_count += count
        if base_offset >= 0:
            if sent.first_offset < 0:
                sent.first_offset = base_offset
            sent.last_offset = base_offset + count - 1


def _size(records: list[Outgoing]) -> int:
    """The approximate size of the records on the wire."""
    return sum(
        len(each.key or b"")
        + len(each.value or b"")
        + sum(len(name) + len(value or b"") for name, value in each.headers)
        + _RECORD_OVERHEAD
        for each in records
    )
