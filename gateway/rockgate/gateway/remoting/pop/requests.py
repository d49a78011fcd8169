"""Pop: 200050 pop, 200051 and 200151 acknowledge, 200053 extend, 200052, 200054, 200055 look.

Behaviour
- docs/internals/pop.md has the state table. A pop that finds nothing waits as long as it says, and
  at most `remoting.suspend_ms_max`; then it is POLLING_TIMEOUT. One beyond the limits of suspended
  pulls is POLLING_FULL.
- A filter that comes with a pop is applied here; without one the group gets everything.
- An acknowledgement is in the log before it is answered.

Departs from RocketMQ
- A group need not be created, so SUBSCRIPTION_GROUP_NOT_EXIST is never the answer.
- How long a pop may take is counted from its arrival, and not by the client's clock.
- 200056 moves what is in flight from one kind of store to another; here there is one, the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from rockgate.gateway.remoting.groups.settings import GroupSettings, disabled
from rockgate.gateway.remoting.messages.long_polls import LongPolls
from rockgate.gateway.remoting.messages.puller import Pulled, Puller, outside
from rockgate.gateway.remoting.messages.subscriptions import EVERYTHING, Filter, filter_of
from rockgate.gateway.remoting.pop.acquirer import INVISIBLE_MS_MAX, Acquirer, Popped
from rockgate.gateway.remoting.pop.receipts import Receipts
from rockgate.gateway.remoting.pop.starts import Pop
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Frame, Later, Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.names import check_group, group_of
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.transcode import names
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers import pop as fields
from rockgate.protocol.remoting.hot.answers import popped as popped_frame
from rockgate.protocol.remoting.hot.answers import succeeded
from rockgate.protocol.remoting.pop import (
    ORDER_REVIVE_QUEUE,
    message_offset_info,
    order_count_info,
    read_batch_ack,
    read_handle,
    retry_topic,
    start_offset_info,
    topic_of,
)
from rockgate.protocol.remoting.system_topics import RETRY_PREFIX
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import READ, Topic

COUNT_MAX: Final = 32
ATTEMPT_CHARS_MAX: Final = 255
QUEUE_BYTES: Final = 250
"""Memory of watching one queue."""
_NOTHING: Final = Popped(0, [], [], 0, 0)


class _WaitingPop:
    """A suspended pop or notification."""

    __slots__ = ("_requests", "asked", "caller", "command", "key", "size")

    def __init__(
        self, requests: PopRequests, command: Command, caller: Caller, asked: Pop, size: int
    ) -> None:
        self._requests = requests
        self.command = command
        self.caller = caller
        self.asked = asked
        self.size = size
        self.key = asked.group, asked.topic.id

    def look(self, is_last: bool) -> Frame | asyncio.Future[Reply] | None:
        """As `PollRegistry.poll` asks."""
        return self._requests.look(self, is_last=is_last)

    def end(self) -> None:
        """The poll has ended."""
        self._requests.ended(self)


class _WaitingNotification(_WaitingPop):
    """A suspended notification."""

    __slots__ = ()

    def look(self, is_last: bool) -> Frame | asyncio.Future[Reply] | None:
        """As `PollRegistry.poll` asks."""
        return self._requests.look_notified(self, is_last=is_last)


class PopRequests:
    """Processors of pops, acknowledgements and extensions."""

    def __init__(
        self,
        *,
        acquirer: Acquirer,
        receipts: Receipts,
        puller: Puller,
        topics: TopicRegistry,
        queues: Queues,
        settings: GroupSettings,
        poll_registry: PollRegistry,
        polls: LongPolls,
        durability: Durability,
        size_max: int,
        suspend_ms_max: int,
    ) -> None:
        self._acquirer = acquirer
        self._receipts = receipts
        self._puller = puller
        self._topics = topics
        self._queues = queues
        self._settings = settings
        self._poll_registry = poll_registry
        self._polls = polls
        self._durability = durability
        self._size_max = size_max
        self._suspend_ms_max = suspend_ms_max
        self._waiting: dict[tuple[str, bytes], int] = {}

    # Pop

    def pop(self, command: Command, caller: Caller) -> Reply | Later:
        """200050: acquire what is available, or wait."""
        header = headers.read(command, fields.PopHeader)
        if header.max_msg_nums > COUNT_MAX:
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"maxMsgNums is {header.max_msg_nums}; the maximum is {COUNT_MAX}.",
            )
        if header.attempt_id is not None and len(header.attempt_id) > ATTEMPT_CHARS_MAX:
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"attemptId is longer than {ATTEMPT_CHARS_MAX} characters.",
            )
        topic, group = self._readable(header.topic, header.queue_id, header.consumer_group)
        asked = Pop(
            group=group,
            topic=topic,
            queue_id=max(-1, header.queue_id),
            count_max=max(1, header.max_msg_nums),
            size_max=self._size_max,
            invisible_ms=max(1, min(header.invisible_time, INVISIBLE_MS_MAX)),
            wanted=_wanted(header.exp_type, header.exp),
            init_mode=header.init_mode,
            is_ordered=header.order,
            attempt=header.attempt_id,
        )
        found = self._acquirer.pop(asked)
        if not isinstance(found, Popped):
            return self._later(command, asked, found)
        if found.acquired or header.poll_time <= 0:
            return _answer(command, asked, found)
        wait_ms = min(header.poll_time, self._suspend_ms_max)
        waiting = self._begin(_WaitingPop, command, caller, asked)
        if waiting is None:
            return _answer(command, asked, found, ResponseCode.POLLING_FULL)
        return self._wait(waiting, wait_ms)

    def _begin(
        self, kind: type[_WaitingPop], command: Command, caller: Caller, asked: Pop
    ) -> _WaitingPop | None:
        """Suspend a request, if the limits allow it."""
        count = 1 if asked.queue_id >= 0 else asked.topic.read_queues
        size = command.size + QUEUE_BYTES * count
        if self._polls.begin(caller, size) is not None:
            return None
        command.release()
        waiting = kind(self, command, caller, asked, size)
        self._waiting[waiting.key] = self._waiting.get(waiting.key, 0) + 1
        return waiting

    def _wait(self, waiting: _WaitingPop, wait_ms: int) -> Later:
        asked = waiting.asked
        queues = self._queues.of(asked.topic.id)
        watched = [queues[asked.queue_id]] if asked.queue_id >= 0 else queues
        return self._poll_registry.poll(
            [*watched, *self._retried(asked)], wait_ms, waiting.look, waiting.end
        )

    def _retried(self, asked: Pop) -> list[Queue]:
        """Return the queue of the retry topic, if there is one."""
        name = retry_topic(names.to_rocketmq(asked.topic.name), names.to_rocketmq(asked.group))
        topic = None if asked.is_ordered else self._topics.find(name)
        return [] if topic is None else [self._queues.of(topic.id)[0]]

    def look(self, waiting: _WaitingPop, *, is_last: bool) -> Frame | asyncio.Future[Reply] | None:
        """The response to a suspended pop, if there is one now."""
        asked = waiting.asked
        if self._topics.find(names.to_rocketmq(asked.topic.name)) is not asked.topic:
            return _answer(waiting.command, asked, _NOTHING)
        found = self._acquirer.pop(asked)
        if not isinstance(found, Popped):
            return asyncio.ensure_future(self._later(waiting.command, asked, found))
        if not found.acquired and not is_last:
            return None
        return _answer(waiting.command, asked, found)

    def ended(self, waiting: _WaitingPop) -> None:
        """A poll has ended."""
        self._polls.end(waiting.caller, waiting.size)
        left = self._waiting[waiting.key] - 1
        if left:
            self._waiting[waiting.key] = left
        else:
            del self._waiting[waiting.key]

    async def _later(self, command: Command, asked: Pop, found: Awaitable[Popped]) -> Reply:
        return _answer(command, asked, await found)

    # Acknowledgements

    def ack(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """200051: acknowledge one message."""
        header = headers.read(command, fields.AckHeader)
        handle = read_handle(header.extra_info, "ACK_MESSAGE")
        queue = self._queue(header.topic, header.consumer_group, handle.kind, header.queue_id)
        group = group_of(header.consumer_group)
        self._receipts.acknowledge_one(group, queue, header.offset, handle.deadline_ms)
        done: Reply = [succeeded(command.encoding, command.opaque)]
        return self._durability.after_changes(done)

    def batch_ack(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """200151: acknowledge many messages."""
        acks = read_batch_ack(command.body)
        if not acks:
            return Command(ResponseCode.NO_MESSAGE)
        for each, offsets in acks:
            queue = self._queue(each.topic, each.consumer_group, each.retry, each.queue_id)
            deadline_ms = each.pop_time + each.invisible_time
            group = group_of(each.consumer_group)
            self._receipts.acknowledge(group, queue, offsets, deadline_ms)
        return self._durability.after_changes(Command(ResponseCode.SUCCESS))

    def change_invisible(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """200053: change the invisible time of one message."""
        header = headers.read(command, fields.ChangeInvisibleHeader)
        handle = read_handle(header.extra_info, "CHANGE_MESSAGE_INVISIBLETIME")
        queue = self._queue(header.topic, header.consumer_group, handle.kind, header.queue_id)
        if not queue.log_start <= header.offset < queue.next_offset:
            return Command(ResponseCode.NO_MESSAGE, remark=f"No message at offset {header.offset}.")
        group = group_of(header.consumer_group)
        pop_ms, invisible_ms = self._receipts.extend(
            group, queue, header.offset, handle, header.invisible_time
        )
        answer = fields.ChangedInvisibleHeader(
            pop_time=pop_ms, invisible_time=invisible_ms, revive_qid=handle.revive_queue
        )
        return self._durability.after_changes(Command(ResponseCode.SUCCESS, headers.write(answer)))

    # Looking

    def peek(self, command: Command, caller: Caller) -> Reply | Later:
        """200052: peek at what a pop would get."""
        header = headers.read(command, fields.PeekHeader)
        topic, group = self._readable(header.topic, header.queue_id, header.consumer_group)
        queues = self._queues.of(topic.id)
        chosen = queues if header.queue_id < 0 else [queues[header.queue_id]]
        count_max = max(1, min(header.max_msg_nums, COUNT_MAX))
        for queue in chosen:
            at = self._acquirer.next_offset(group, topic, queue)
            if at >= self._puller.end(queue):
                continue
            found = self._puller.pull(queue, at, EVERYTHING, count_max, self._size_max)
            if not isinstance(found, Pulled):
                return self._peek_later(command, found)
            if found.buffers:
                return _peeked(command, found)
        return _peeked(command, outside(0, 0, 0))

    async def _peek_later(self, command: Command, later: Awaitable[Pulled]) -> Reply:
        return _peeked(command, await later)

    def notification(self, command: Command, caller: Caller) -> Reply | Later:
        """200054: notify as soon as there is something to pop."""
        header = headers.read(command, fields.NotificationHeader)
        topic, group = self._readable(header.topic, header.queue_id, header.consumer_group)
        asked = Pop(
            *(group, topic, max(-1, header.queue_id), 1, 1, 1),
            *(_wanted(header.exp_type, header.exp), 0, header.order, header.attempt_id),
        )
        has_any = self._acquirer.has_any(asked)
        if has_any or header.poll_time <= 0:
            return _notified(has_any=has_any)
        waiting = self._begin(_WaitingNotification, command, caller, asked)
        if waiting is None:
            return _notified(has_any=False, is_full=True)
        return self._wait(waiting, min(header.poll_time, self._suspend_ms_max))

    def look_notified(
        self, waiting: _WaitingPop, *, is_last: bool
    ) -> Frame | asyncio.Future[Reply] | None:
        """The response to a suspended notification, if there is one now."""
        asked = waiting.asked
        is_there = self._topics.find(names.to_rocketmq(asked.topic.name)) is asked.topic
        has_any = is_there and self._acquirer.has_any(asked)
        if is_there and not has_any and not is_last:
            return None
        flag = b"true" if has_any else b"false"
        command = waiting.command
        pairs = ((b"hasMsg", flag), (b"pollingFull", b"false"))
        return popped_frame(command.encoding, command.opaque, 0, b"", pairs, [], 0)

    def polling_info(self, command: Command, caller: Caller) -> Reply:
        """200055: the number of suspended pops of a topic and group."""
        header = headers.read(command, fields.PollingInfoHeader)
        topic, group = self._readable(header.topic, header.queue_id, header.consumer_group)
        count = self._waiting.get((group, topic.id), 0)
        return Command(
            ResponseCode.SUCCESS, headers.write(fields.PollingInfoAnswer(polling_num=count))
        )

    def rollback(self, command: Command, caller: Caller) -> Reply:
        """200056: there is nothing to move."""
        return Command(ResponseCode.SUCCESS)

    # Topics and queues

    def _readable(self, name: str, queue_id: int, group: str) -> tuple[Topic, str]:
        """Return topic and group of a request that reads, if it may."""
        check_group(group)
        topic = self._topics.get(name)
        if not topic.permission & READ:
            raise Refused(
                ResponseCode.NO_PERMISSION, f"the topic[{name}] pulling message is forbidden"
            )
        if queue_id >= topic.read_queues:
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"Queue {queue_id} of topic '{name}' does not exist; "
                f"it has {topic.read_queues} queues.",
            )
        stored = group_of(group)
        if self._settings.is_set(stored) and not self._settings.of(stored).consume_enable:
            raise disabled(group)
        return topic, stored

    def _queue(self, name: str, group: str, kind: str, queue_id: int) -> Queue:
        """Return the queue that a handle is about; clients name the topic with or without retry."""
        topic = self._topics.get(name if RETRY_PREFIX in name else topic_of(name, group, kind))
        if not 0 <= queue_id < topic.queue_count:
            raise Refused(
                ResponseCode.MESSAGE_ILLEGAL,
                f"Queue {queue_id} of topic '{name}' does not exist.",
            )
        return self._queues.of(topic.id)[queue_id]


def _wanted(kind: str | None, expression: str | None) -> Filter:
    return filter_of(kind or "TAG", expression) if expression else EVERYTHING


def _answer(command: Command, asked: Pop, found: Popped, code: int | None = None) -> Frame:
    if code is None:
        code = ResponseCode.SUCCESS if found.acquired else ResponseCode.POLLING_TIMEOUT
    pairs = [
        (b"popTime", b"%d" % found.pop_ms),
        (b"invisibleTime", b"%d" % asked.invisible_ms),
        (b"reviveQid", b"%d" % (ORDER_REVIVE_QUEUE if asked.is_ordered else 0)),
        (b"restNum", b"%d" % found.rest),
    ]
    if found.acquired:
        pairs += [
            (b"startOffsetInfo", start_offset_info(found.acquired).encode()),
            (b"msgOffsetInfo", message_offset_info(found.acquired).encode()),
        ]
        if asked.is_ordered:
            pairs.append((b"orderCountInfo", order_count_info(found.acquired).encode()))
    remark = b"FOUND" if found.acquired else b"NO_MESSAGE_IN_QUEUE"
    return popped_frame(
        command.encoding, command.opaque, code, remark, pairs, found.buffers, found.size
    )


def _peeked(command: Command, found: Pulled) -> Frame:
    rest = max(0, found.max_offset - found.next_offset)
    pairs = [
        *((name, b"0") for name in (b"popTime", b"invisibleTime", b"reviveQid")),
        (b"restNum", b"%d" % rest),
    ]
    sent = pairs, found.buffers, found.size
    return popped_frame(command.encoding, command.opaque, found.code, found.remark, *sent)


def _notified(*, has_any: bool, is_full: bool = False) -> Command:
    answer = fields.NotifiedHeader(has_msg=has_any, polling_full=is_full)
    return Command(ResponseCode.SUCCESS, headers.write(answer))
