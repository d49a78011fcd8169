"""ConsumerOffsets: 14, 15 (progress), 29 to 32 (bounds), 208, 303, 317 (lag), 222, 314 (set).

Behaviour
- 14 answers 0 for a new group of a queue that begins at 0 and has messages, as RocketMQ does: a
  group that starts late must not miss the first of them. Otherwise it is QUERY_NOT_FOUND, and the
  client decides by itself where to begin.
- A one-way 15 is appended within a second; one that wants an answer is appended first.
- 29 finds the first message stored at a time or later; UPPER the last one stored at it or before.
- 30's end is what readers may see. 32 is when the first message was stored.
- 208 is about one group, in one topic or in all; 317 about every group in every topic that it
  reads, as far as ROWS_MAX queues. What goes over many queues lets others have their turn.
- 222 sets every queue of a topic to a time, or one to an offset. Without force a group is only set
  back. Members learn of it by their next pulls (`groups.offsets.Resets`); or by 220 when
  `useServerSideResetOffset` is off (`groups.reset_notices`).
- 314 sets a group to where another one is: in a topic, or in all that the other one reads. A queue
  of which the other's progress is not known stays as it is. Members hear of it as of a reset.

Departs from RocketMQ
- A queue that its topic does not have is SYSTEM_ERROR; RocketMQ tells 0 of it, and keeps progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from rockgate.gateway.remoting.groups.clients import Clients
from rockgate.gateway.remoting.groups.offsets import ConsumerOffsets
from rockgate.gateway.remoting.groups.reset_notices import ResetNotices
from rockgate.gateway.remoting.messages.puller import Puller
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.long_answers import TURN_SECONDS, joined, keyed
from rockgate.gateway.remoting.server.names import check_group, group_of
from rockgate.gateway.remoting.statistics.broker import BrokerStatistics
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry, describe
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.transcode import names
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.queues import (
    MessageQueue,
    QueueProgress,
    QueueTimeSpan,
)
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers import offsets as fields
from rockgate.store.api.clock import Clock
from rockgate.store.api.inflight import MessagesInFlight
from rockgate.store.api.progress import Commit, Progress
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic, TopicLookup

_NOT_FOUND = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
LATEST_MS = -1
ROWS_MAX = 50_000
"""Queues in one answer to 317: about 8 MB of text."""
COMMITS_AT_ONCE = 1_000
"""Offsets that one log entry sets: a larger reset is appended in parts."""


class OffsetRequests:
    """Processors of offset requests."""

    def __init__(
        self,
        *,
        lookup: TopicLookup,
        queues: Queues,
        progress: Progress,
        topics: TopicRegistry,
        puller: Puller,
        offsets: ConsumerOffsets,
        clients: Clients,
        durability: Durability,
        clock: Clock,
        broker_name: str,
        address: str,
        statistics: BrokerStatistics,
        in_flight: MessagesInFlight,
        notices: ResetNotices,
    ) -> None:
        self._notices = notices
        self._statistics = statistics
        self._in_flight = in_flight
        self._clock = clock
        self._address = address
        self._queues = queues
        self._by_id = lookup.find_id
        self._progress = progress
        self._topics = topics
        self._puller = puller
        self._offsets = offsets
        self._clients = clients
        self._durability = durability
        self._broker_name = broker_name

    def _queue(self, topic_name: str, queue_id: int) -> tuple[Topic, Queue]:
        topic = self._topics.get(topic_name)
        if not 0 <= queue_id < topic.queue_count:
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"queueId[{queue_id}] is illegal, topic:[{topic_name}]"
            )
        return topic, self._queues.of(topic.id)[queue_id]

    # Progress

    def query(self, command: Command, caller: Caller) -> Reply:
        """14: the committed offset of a group."""
        asked = headers.read(command, fields.QueryConsumerOffsetHeader)
        topic, queue = self._queue(asked.topic, asked.queue_id)
        group = group_of(asked.consumer_group)
        offset = self._offsets.committed(group, topic, asked.queue_id)
        if offset is None:
            may_be_zero = asked.set_zero_if_not_found is not False
            if not may_be_zero or queue.log_start > 0 or queue.next_offset == 0:
                return Command(ResponseCode.QUERY_NOT_FOUND, remark=_NOT_FOUND)
            offset = 0
        return Command(ResponseCode.SUCCESS, {"offset": str(offset)})

    def update(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """15: commit an offset of a group."""
        asked = headers.read(command, fields.UpdateConsumerOffsetHeader)
        _, queue = self._queue(asked.topic, asked.queue_id)
        is_acknowledged = not command.is_oneway
        check_group(asked.consumer_group)
        group = names.to_store(asked.consumer_group)
        self._offsets.commit(group, queue, asked.commit_offset, acknowledged=is_acknowledged)
        answer = Command(ResponseCode.SUCCESS)
        return self._durability.after_changes(answer) if is_acknowledged else answer

    # Bounds

    def max_offset(self, command: Command, caller: Caller) -> Reply:
        """30: the end of a queue."""
        asked = headers.read(command, fields.MaxOffsetHeader)
        _, queue = self._queue(asked.topic, asked.queue_id)
        return Command(ResponseCode.SUCCESS, {"offset": str(self._puller.end(queue))})

    def min_offset(self, command: Command, caller: Caller) -> Reply:
        """31: the start of a queue."""
        asked = headers.read(command, fields.QueueHeader)
        _, queue = self._queue(asked.topic, asked.queue_id)
        return Command(ResponseCode.SUCCESS, {"offset": str(queue.log_start)})

    def earliest(self, command: Command, caller: Caller) -> Reply:
        """32: when the first message of a queue was stored."""
        asked = headers.read(command, fields.QueueHeader)
        _, queue = self._queue(asked.topic, asked.queue_id)
        timestamp = _stored_ms(queue, queue.log_start)
        return Command(ResponseCode.SUCCESS, {"timestamp": str(timestamp)})

    def search(self, command: Command, caller: Caller) -> Reply:
        """29: the offset of a time."""
        asked = headers.read(command, fields.SearchOffsetHeader)
        _, queue = self._queue(asked.topic, asked.queue_id)
        is_upper = asked.boundary_type.upper() == "UPPER"
        offset = self._search(queue, asked.timestamp, is_upper=is_upper)
        return Command(ResponseCode.SUCCESS, {"offset": str(offset)})

    def _search(self, queue: Queue, time_ms: int, *, is_upper: bool = False) -> int:
        end = self._puller.end(queue)
        unit = queue.first_at_store_time(time_ms + 1 if is_upper else time_ms)
        offset = end if unit is None else min(max(unit.base, queue.log_start), end)
        # The last message of a time is the one before the first later message.
        return max(queue.log_start, offset - 1) if is_upper and end > queue.log_start else offset

    # Groups

    def consume_stats(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """208: the lag of a group."""
        asked = headers.read(command, fields.ConsumeStatsHeader)
        group = group_of(asked.consumer_group)
        chosen = [self._topics.get(asked.topic)] if asked.topic else self._read_by(group)
        return self._stats(group, chosen)

    async def _stats(self, group: str, chosen: list[Topic]) -> Reply:
        rows = (
            keyed(self._key(topic, queue.queue_id), self._behind(group, topic, queue))
            for topic in chosen
            if self._by_id(topic.id) is not None
            for queue in self._queues.of(topic.id)
        )
        body = await joined(
            self._stats_head(group, chosen), rows, b"}}", instead="request topic by topic"
        )
        return Command(ResponseCode.SUCCESS, body=body)

    def _stats_head(self, group: str, chosen: list[Topic]) -> bytes:
        """Return the start of the response about a group: how fast it consumes."""
        rate = sum(self._statistics.got_per_second(topic, group) for topic in chosen)
        return b'{"consumeTps":%b,"offsetTable":{' % javajson.encode(float(rate))

    def time_spans(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """303: between which times the messages of each queue were stored, and where a group is."""
        asked = headers.read(command, fields.ConsumeTimeSpanHeader)
        return self._time_spans(group_of(asked.group), self._topics.get(asked.topic))

    async def _time_spans(self, group: str, topic: Topic) -> Reply:
        rows = (
            javajson.encode(self._time_span(group, topic, queue))
            for queue in self._queues.of(topic.id)[: topic.write_queues]
            if self._by_id(topic.id) is not None
        )
        body = await joined(
            b'{"consumeTimeSpanSet":[', rows, b"]}", instead="read fewer queues with 208"
        )
        return Command(ResponseCode.SUCCESS, body=body)

    def _time_span(self, group: str, topic: Topic, queue: Queue) -> QueueTimeSpan:
        end, start = self._puller.end(queue), queue.log_start
        offset = self._offsets.committed(group, topic, queue.queue_id)
        earliest = _stored_ms(queue, start)
        consumed = earliest
        delay = 0
        if offset is not None and offset > 0:
            consumed = _stored_ms(queue, offset - 1)
        if (offset or 0) < end and (following := _stored_ms(queue, max(offset or 0, start))) >= 0:
            delay = max(0, self._clock.now_ms() - following)
        name = names.to_rocketmq(topic.name)
        return QueueTimeSpan(
            message_queue=MessageQueue(
                broker_name=self._broker_name, queue_id=queue.queue_id, topic=name
            ),
            min_time_stamp=earliest,
            max_time_stamp=_stored_ms(queue, end - 1),
            consume_time_stamp=consumed,
            delay_time=delay,
        )

    def all_consume_stats(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """317: the lag of every group in all its topics."""
        return self._all_stats(headers.read(command, fields.BrokerConsumeStatsHeader).is_order)

    async def _all_stats(self, is_order: bool) -> Reply:
        groups: list[bytes] = []
        row_count = total = pulled = 0
        share = TimeSlice(TURN_SECONDS)
        for group in list(self._progress.groups()):
            stats = []
            for topic in self._read_by(group):
                is_gone = self._by_id(topic.id) is None
                if is_gone or (is_order and not describe(topic).order):
                    continue
                row_count += topic.queue_count
                if row_count > ROWS_MAX:
                    raise Refused(
                        ResponseCode.SYSTEM_ERROR,
                        f"Groups have offsets in more than {ROWS_MAX:,} queues; query one group at "
                        "a time (mqadmin consumerProgress -g).",
                    )
                rows = []
                for queue in list(self._queues.of(topic.id)):
                    row = self._behind(group, topic, queue)
                    total += row.broker_offset - row.consumer_offset
                    pulled += row.pull_offset - row.consumer_offset
                    rows.append(keyed(self._key(topic, queue.queue_id), row))
                    if share.is_over():
                        await asyncio.sleep(0)
                        share = TimeSlice(TURN_SECONDS)
                stats.append(b"%b%b}}" % (self._stats_head(group, [topic]), b",".join(rows)))
            if stats:
                name = javajson.encode(names.to_rocketmq(group))
                groups.append(b"{%b:[%b]}" % (name, b",".join(stats)))
        body = (
            b'{"brokerAddr":%b,"consumeStatsList":[%b],"totalDiff":%d,"totalInflightDiff":%d}'
            % (
                javajson.encode(self._address),
                b",".join(groups),
                total,
                pulled,
            )
        )
        return Command(ResponseCode.SUCCESS, body=body)

    def _read_by(self, group: str) -> list[Topic]:
        """The topics that a group has committed in."""
        ids = self._progress.topics_of(group)
        return [topic for each in ids if (topic := self._by_id(each)) is not None]

    def _behind(self, group: str, topic: Topic, queue: Queue) -> QueueProgress:
        committed = self._progress.fetch(group, topic.id, queue.queue_id)
        offset = 0 if committed is None else committed.offset
        last = queue.find(offset - 1) if offset > queue.log_start else None
        return QueueProgress(
            broker_offset=self._puller.end(queue),
            consumer_offset=offset,
            last_timestamp=0 if last is None else last.store_ms,
            pull_offset=max(offset, self._pulled_to(group, queue)),
        )

    def _pulled_to(self, group: str, queue: Queue) -> int:
        """Return the offset after the last that a group was sent of a queue, if known."""
        window = self._in_flight.find(group, queue.topic_id, queue.queue_id)
        if window is not None:
            return window.end
        pulled = self._statistics.pulled_to(queue.topic_id, group, queue.queue_id)
        return min(pulled, self._puller.end(queue))

    def _key(self, topic: Topic, queue_id: int) -> MessageQueue:
        return MessageQueue(
            broker_name=self._broker_name, queue_id=queue_id, topic=names.to_rocketmq(topic.name)
        )

    def reset(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """222: reset a group to a time, or one queue to an offset."""
        asked = headers.read(command, fields.ResetOffsetHeader)
        check_group(asked.group)
        return self._reset(asked)

    async def _reset(self, asked: fields.ResetOffsetHeader) -> Reply:
        group = names.to_store(asked.group)
        self._offsets.check_owner(group)
        topic = self._topics.get(asked.topic)
        chosen = range(topic.queue_count) if asked.queue_id < 0 else [asked.queue_id]
        rows: list[bytes] = []
        commits = []
        share = TimeSlice(TURN_SECONDS)
        for queue_id in chosen:
            if share.is_over():
                await asyncio.sleep(0)
                share = TimeSlice(TURN_SECONDS)
            _, queue = self._queue(asked.topic, queue_id)
            if asked.offset is not None and asked.offset >= 0:
                offset = asked.offset
            elif asked.timestamp == LATEST_MS:
                offset = self._puller.end(queue)
            else:
                offset = self._search(queue, asked.timestamp)
            known = self._offsets.committed(group, topic, queue_id)
            if not asked.is_force and known is not None and known < offset:
                offset = known
            rows.append(keyed(self._key(topic, queue_id), offset))
            commits.append((queue, Commit(topic.id, queue_id, offset)))
        answer = Command(ResponseCode.SUCCESS, body=b'{"offsetTable":{%b}}' % b",".join(rows))
        if self._by_id(topic.id) is None:
            raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic '{asked.topic}' no longer exists.")
        named = {"topic": asked.topic, "group": asked.group, "timestamp": str(asked.timestamp)}
        notify = self._notices.prepare(group, named, rows)
        return await self._set(group, commits, answer, notify)

    def clone(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """314: copy the offsets of one group to another."""
        asked = headers.read(command, fields.CloneOffsetsHeader)
        check_group(asked.dest_group)
        return self._clone(asked)

    async def _clone(self, asked: fields.CloneOffsetsHeader) -> Reply:
        source, target = group_of(asked.src_group), names.to_store(asked.dest_group)
        chosen = [self._topics.get(asked.topic)] if asked.topic else self._read_by(source)
        commits = []
        share = TimeSlice(TURN_SECONDS)
        for topic in chosen:
            for queue in list(self._queues.of(topic.id)):
                offset = self._offsets.committed(source, topic, queue.queue_id)
                if offset is not None:
                    commits.append((queue, Commit(topic.id, queue.queue_id, offset)))
                if share.is_over():
                    await asyncio.sleep(0)
                    share = TimeSlice(TURN_SECONDS)
        return await self._set(target, commits, Command(ResponseCode.SUCCESS))

    async def _set(
        self,
        group: str,
        commits: list[tuple[Queue, Commit]],
        answer: Command,
        notify: Callable[[], None] | None = None,
    ) -> Command:
        """Set the offsets of a group; members learn of it by `notify` or by their next pulls."""
        for at in range(0, len(commits), COMMITS_AT_ONCE):
            if at:
                await asyncio.sleep(0)
            # Kafka members may have joined meanwhile, or a topic was deleted.
            self._offsets.check_owner(group)
            part = [
                each
                for each in commits[at : at + COMMITS_AT_ONCE]
                if self._by_id(each[1].topic_id) is not None
            ]
            self._progress.commit(group, [commit for _, commit in part])
            if notify is None and self._clients.consumer_group(group) is not None:
                for queue, commit in part:
                    self._offsets.resets.set(group, queue, commit.offset)
        if notify is not None:
            notify()
        safe = self._durability.after_changes(answer)
        return safe if isinstance(safe, Command) else await safe


def _stored_ms(queue: Queue, offset: int) -> int:
    """Return when the message at an offset was stored; -1 if there is none."""
    unit = queue.find(offset) if offset >= queue.log_start else None
    return -1 if unit is None else unit.store_ms
