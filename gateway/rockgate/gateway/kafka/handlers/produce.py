"""Produce: v3-13 (advertised from v0: older librdkafka picks its record format by that).

Behaviour
- One batch per partition, appended as received: base offset and leader epoch are stamped in place.
- Each partition succeeds or fails independently. A topic is never created here.
- acks 1 and all are the same on one node: answered once the batch is in the log, and on disk where
  the flush setting says so. acks 0 is not answered; an error then closes the connection, as in
  Kafka, because the client cannot be informed otherwise.
- A batch of a transaction is taken if `produce_check` accepts it. One that is sent again is
  answered with its first offset and time, when that is as durable as was asked for. A first batch
  that is rejected temporarily delays the batches behind it: `first_batches`.
- A refusal of a sequence, an epoch, a time or a record says where the log begins, as Kafka's does.
- On topics of `message.type` DELAY and MIXED batches are opened, and records with a header that
  delays them wait (docs/internals/delay.md). Compacted topics, `validate.batches` and
  `compression.type` open them, too. A batch that takes long is opened by a thread; what follows it
  for the same partitions waits, so that order and sequences hold. One that would become more than
  the settings under `batches` allow is MESSAGE_TOO_LARGE; on other topics it is appended without
  decoding.

Versions
- v5: log start offset.  v7: zstd.  v8: record errors.  v9: flexible.  v10: current leader, which
  is never given.  v12: transactions open themselves.  v13: topics by id.

Departs from Kafka
- INVALID_RECORD lists at most 10,000 invalid records; Kafka lists all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rockgate.gateway.batches.threads import BatchThreads
from rockgate.gateway.kafka.embedded.resolve import find_queue, find_topic
from rockgate.gateway.kafka.produce.delay import RecordDelays
from rockgate.gateway.kafka.produce.first_batches import RETRIABLE, FirstBatches
from rockgate.gateway.kafka.produce.partition_order import Turns
from rockgate.gateway.kafka.produce.producers import Producers
from rockgate.gateway.kafka.produce.requests import (
    PIECE_COUNT,
    Outcomes,
    Produced,
    Rest,
    close_on_error,
    decode,
    decode_large,
    encode,
    is_large,
    partition_of,
    rest_of,
)
from rockgate.gateway.kafka.produce.topic_checks import Examining, Outcome
from rockgate.gateway.kafka.produce.validate import (
    Appending,
    Buffer,
    SettingsCache,
    append_ms_of,
    refused,
    take,
    with_log_start,
)
from rockgate.gateway.kafka.request import names
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.request.handler import Answer, Call, Peer
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.kafka.transactions.produce_check import TransactionalWrites
from rockgate.gateway.storage.durability import Durability
from rockgate.protocol.entry import INDEXED
from rockgate.protocol.kafka.errors import ErrorCode, MalformedBatch
from rockgate.protocol.kafka.hot import produce as hot
from rockgate.protocol.kafka.hot.produce import (
    ProducedPartition,
    ProducedTopic,
    decode_single,
    encode_single,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.batch import (
    BatchHeader,
    read_header,
    stamp,
    stamp_append_time,
)
from rockgate.store.api.append import Appender, Stamp
from rockgate.store.api.clock import Clock
from rockgate.store.api.log import Epochs, Log
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic, TopicLookup
from rockgate.store.errors import StoreError

__all__ = ["Produce", "Produced", "decode", "decode_large", "encode"]

_ACKS = (-1, 0, 1)


class Produce:
    """Appends batches."""

    def __init__(
        self,
        *,
        topics: TopicLookup,
        queues: Queues,
        appender: Appender,
        log: Log,
        clock: Clock,
        epochs: Epochs,
        durability: Durability,
        producers: Producers,
        settings: SettingsCache,
        writes: TransactionalWrites,
        delays: RecordDelays,
        threads: BatchThreads | None = None,
        permitted: Permitted = UNCHECKED,
    ) -> None:
        self._topics = topics
        self._queues = queues
        self._appender = appender
        self._durability = durability
        self._log = log
        self._clock = clock
        self._producers = producers
        self._settings = settings
        self._writes = writes
        self._delays = delays
        self._examining = Examining(threads or BatchThreads(), delays.wanted)
        self._may_write = None if permitted is UNCHECKED else permitted.may_write
        self._grants = permitted.grants
        self._turns = Turns()
        self._firsts = FirstBatches()
        epoch = epochs.current

        def stamp_offset(view: memoryview, offset: int) -> None:
            stamp(view, offset, epoch)

        self._stamp: Stamp = stamp_offset

    def handle(self, request: ProduceRequest, call: Call) -> Produced | asyncio.Future[Produced]:
        """Append every batch of the request, and wait for the disk where that was promised."""
        if request.acks not in _ACKS:
            return self.refuse(request, ErrorCode.INVALID_REQUIRED_ACKS)
        append = Appending(call.version, self._clock.now_ms(), request.transactional_id)
        outcomes: Outcomes = []
        if is_large(request):
            return self._later(request, append, outcomes)
        under_way = self._turns.last
        for data in request.topic_data:
            topic = self._find(data, call.version)
            partitions: list[ProducedPartition] = []
            outcomes.append(partitions)
            for each in data.partition_data:
                if under_way and partition_of(data, each, call.version) in under_way:
                    return self._later(request, append, outcomes)
                done = self._try(append, topic, each)
                if done is None:
                    return self._later(request, append, outcomes)
                partitions.append(done)
        return self._answer(request, append, outcomes)

    def _later(
        self, request: ProduceRequest, append: Appending, outcomes: Outcomes
    ) -> asyncio.Future[Produced]:
        """Append the rest in its turn: a thread must open a batch, or an earlier request has one.

        `outcomes` has the outcomes of the batches before it, topic by topic.
        """
        left = rest_of(request, outcomes)
        for _, each, _ in left:
            # The connection's own buffer may be used again before this is done.
            each.records = None if each.records is None else bytes(each.records)
        return self._turns.take(
            [partition_of(data, each, append.version) for data, each, _ in left],
            lambda: self._append_rest(request, append, outcomes, left),
        )

    async def _append_rest(
        self, request: ProduceRequest, append: Appending, outcomes: Outcomes, left: Sequence[Rest]
    ) -> Produced:
        """Append every batch as soon as a thread has opened it, if it takes long.

        One at a time: what a batch becomes is not held while others are opened.
        """
        for data, each, partitions in left:
            append.now_ms = self._clock.now_ms()
            topic = self._find(data, append.version)
            done = self._try(append, topic, each)
            if done is None:
                assert topic is not None, "a batch that is opened has a topic"
                examined = await self._examined(append, topic, each.records)
                # Meanwhile the topic may have been deleted, or altered.
                append.now_ms = self._clock.now_ms()
                done = self._try(append, self._find(data, append.version), each, examined)
            assert done is not None, "what a thread has opened needs none"
            partitions.append(done)
            if len(partitions) % PIECE_COUNT == 0:
                await asyncio.sleep(0)
        produced = self._answer(request, append, outcomes)
        return produced if isinstance(produced, Produced) else await produced

    async def _examined(self, append: Appending, topic: Topic, records: Buffer | None) -> Outcome:
        settings = self._settings.of(topic)
        header = take(append, records, settings)
        assert records is not None, "a batch that was checked is there"
        return await self._examining.in_thread(records, header, settings)

    def _answer(
        self, request: ProduceRequest, append: Appending, outcomes: Outcomes
    ) -> Produced | asyncio.Future[Produced]:
        topics = [
            ProducedTopic(data.name, data.topic_id, partitions)
            for data, partitions in zip(request.topic_data, outcomes, strict=True)
        ]
        produced = Produced(topics, request.acks == 0)
        if produced.is_silent:
            close_on_error(topics)
            return produced
        return self._durability.after(append.durable_at, produced)

    def shortcut(self, body: memoryview, version: int, peer: Peer) -> Answer | None:
        """Append the one batch of a usual request; None, and nothing done, for any other.

        A batch that waits for a thread or the disk, or that is refused, is not usual. The ordinary
        path has a guard; this one asks itself whether the client may write.
        """
        found = decode_single(version, body)
        if found is None:
            return None
        acks, named, name, index, records = found
        if isinstance(name, str):
            is_reserved = name.startswith(names.RESERVED)
            topic = self._topics.find(names.to_store(name) if is_reserved else name)
        else:
            topic = self._topics.find_id(name)
        if topic is None or acks == 0 or acks not in _ACKS:
            return None
        if (
            self._may_write is not None
            and peer.writable.get(name) != self._grants.generation
            and not self._may_write(peer, name, topic.name)
        ):
            return None
        queues = self._queues.of(topic.id)
        under_way = self._turns.last
        if not 0 <= index < len(queues) or (under_way and (name, index) in under_way):
            return None
        queue = queues[index]
        if queue.is_sync:
            return None
        append = Appending(version, self._clock.now_ms(), None)
        try:
            done = self._produce(append, topic, queue, records)
        except (MalformedBatch, RequestError, StoreError):
            return None
        # By index: base offset, append time and log start, for the request that comes most.
        return done and encode_single(named, index, done[2], done[3], done[4])

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

    def _find(self, data: TopicProduceData, version: int) -> Topic | None:
        if version >= hot.TOPIC_IDS:
            return self._topics.find_id(data.topic_id)
        return find_topic(self._topics, data.name)

    def _try(
        self,
        append: Appending,
        topic: Topic | None,
        each: PartitionProduceData,
        examined: Outcome | None = None,
    ) -> ProducedPartition | None:
        """Append a batch, or say why not; None, and nothing done, if it takes a thread first."""
        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if append.version >= hot.TOPIC_IDS:
                unknown = ErrorCode.UNKNOWN_TOPIC_ID
            return ProducedPartition(each.index, unknown)
        queue = find_queue(self._queues, topic, each.index)
        if queue is None:
            return ProducedPartition(each.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        try:
            return self._produce(append, topic, queue, each.records, examined)
        except (MalformedBatch, RequestError, StoreError) as error:
            rejected = refused(each.index, error)
            self._note_refused(queue, each.records, rejected.error_code)
            return with_log_start(append, queue, rejected)

    def _produce(
        self,
        append: Appending,
        topic: Topic,
        queue: Queue,
        records: Buffer | None,
        examined: Outcome | None = None,
    ) -> ProducedPartition | None:
        if topic.is_internal or not topic.is_writable:
            reason = f"Topic '{topic.name}' is an internal topic; clients cannot write to it."
            raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, reason)
        index, settings = queue.queue_id, self._settings.of(topic)
        header = take(append, records, settings)
        assert records is not None, "a batch that was checked is there"
        body, waits = records, None
        if settings.examines:
            if examined is None:
                examined = self._examining.on_loop(records, header, settings)
            if examined is None:
                return None
            if isinstance(examined, Exception):
                raise examined
            body, waits = examined
        producer = None
        if header.producer_id >= 0:
            self._check_transaction(append, (topic.id, index), header)
            producer = self._producers.find(topic.id, index, header.producer_id)
            if producer is not None:
                offset = producer.check(header)
                if offset is not None:
                    append_ms = append_ms_of(queue, offset, header, settings.is_append_time)
                    return self._repeated(append, queue, offset, append_ms)
            elif self._firsts:
                self._firsts.check((topic.id, index, header.producer_id), header)
        stamping, record_ms, append_ms = self._stamp, header.max_timestamp, -1
        if settings.is_append_time:
            record_ms = append_ms = append.now_ms
            stamping = self._append_time_stamp(append_ms)
        sys_flag = INDEXED if settings.is_indexed else 0
        if waits is not None:
            appended = self._delays.append(
                queue, body, header, waits, stamp=stamping, append_ms=append_ms, sys_flag=sys_flag
            )
        else:
            appended = self._appender.batch(
                queue,
                body,
                count=header.record_count,
                record_ms=record_ms,
                stamp=stamping,
                sys_flag=sys_flag,
            )
        if header.producer_id >= 0:
            offset, position, store_ms = appended.offset, appended.position, appended.store_ms
            if producer is not None:
                producer.record(header, offset, position, store_ms)
            else:
                self._producers.record(
                    topic.id, index, header, offset=offset, position=position, store_ms=store_ms
                )
                self._firsts.taken((topic.id, index, header.producer_id))
            if header.is_transactional:
                self._writes.wrote((topic.id, index), header, offset)
        if queue.is_sync:
            append.needs(appended.end)
        return ProducedPartition(index, 0, appended.offset, append_ms, queue.log_start)

    def _repeated(
        self, append: Appending, queue: Queue, offset: int, append_ms: int
    ) -> ProducedPartition:
        """Answer a batch that was sent again, once its first copy is as durable as was asked."""
        if queue.is_sync:
            append.needs(self._log.end)
        return ProducedPartition(queue.queue_id, 0, offset, append_ms, queue.log_start)

    def _note_refused(self, queue: Queue, records: Buffer | None, code: int) -> None:
        """Let nothing of the same producer overtake a first batch that will be sent again."""
        if code not in RETRIABLE or records is None:
            return
        header = read_header(records)
        key = queue.topic_id, queue.queue_id, header.producer_id
        if header.producer_id >= 0 and self._producers.find(*key) is None:
            self._firsts.refused(key, header)

    def _check_transaction(
        self, append: Appending, partition: tuple[bytes, int], header: BatchHeader
    ) -> None:
        if header.is_transactional:
            self._writes.check(append.transactional_id, partition, header, append.version)
        else:
            self._writes.check_plain(partition, header)

    def _append_time_stamp(self, now_ms: int) -> Stamp:
        def stamp_time(view: memoryview, offset: int) -> None:
            self._stamp(view, offset)
            stamp_append_time(view, now_ms)

        return stamp_time
