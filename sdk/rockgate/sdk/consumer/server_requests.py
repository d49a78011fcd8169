"""Requests of brokers to a member of a group, and its responses.

    40     members have changed          a round, at once
    220    offsets were set              queues dropped, acquired again at their new offsets
    221    status                        this member's progress in each queue of a topic
    307    running info                  settings, subscriptions, queues, statistics; tasks if asked
    309    consume this one              what the listener made of it, and how long that took

Bodies are those of Apache's client, whose admin tools print them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.clients import ConsumerData
from rockgate.protocol.remoting.bodies.queues import ConsumerStatus, MessageQueue, OffsetTable
from rockgate.protocol.remoting.bodies.running import DirectConsumption, RunningInfoBody
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.errors import MalformedContent, MalformedRequest
from rockgate.protocol.remoting.headers.clients import ConsumeDirectlyHeader, RunningInfoHeader
from rockgate.protocol.remoting.headers.offsets import ResetOffsetHeader
from rockgate.protocol.remoting.javajson import Keyed
from rockgate.sdk.client.connection import Link
from rockgate.sdk.consumer.delivery.redelivery import Retry
from rockgate.sdk.consumer.offsets.table import OffsetTable as Offsets
from rockgate.sdk.consumer.queues.assignment import Assignment
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.consumer.settings import ConsumerSettings
from rockgate.sdk.errors import SdkError
from rockgate.sdk.namespaces import unwrap
from rockgate.sdk.observe.statistics import TopicStatistics
from rockgate.sdk.received import Received, split
from rockgate.sdk.results import Queue

AT_ONCE_MAX: Final = 8
"""Requests that may be answered at once; further ones are answered with SYSTEM_BUSY."""
BODY_SIZE_MAX: Final = 1 << 20
TASKS_MAX: Final = 100
FRAMES_MAX: Final = 4

Direct = Callable[[Sequence[Received]], Awaitable[int | None]]
"""Consumes messages directly; returns how many are done, if not all."""

_log: Final = logging.getLogger(__name__)


class AskedQueues(Protocol):
    """The queues of a member, and its progress in them."""

    @property
    def assignment(self) -> Assignment[Received]:
        """The cache of each queue."""

    @property
    def offsets(self) -> Offsets:
        """How far the group is."""

    async def reset(self, queue: Queue, offset: int) -> None:
        """Restart at another offset: what is cached here is no longer consumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedMember:
    """The consumer that requests are about."""

    settings: ConsumerSettings
    queues: AskedQueues
    data: Callable[[], ConsumerData]
    wake: Callable[[], None]
    statistics: Callable[[float], dict[str, TopicStatistics]]
    started_ms: int
    now_ms: Callable[[], int]
    namespace: str = ""
    name_servers: Sequence[str] = ()
    direct: Direct | None = None
    """None where there are no listeners."""


class ServerRequests:
    """Answers for one member."""

    def __init__(self, member: AskedMember) -> None:
        self._member = member
        self._tasks: set[asyncio.Task[None]] = set()

    def asked(self, link: Link, command: Command) -> None:
        """Handle a broker's request; some are answered later."""
        match command.code:
            case RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
                self._member.wake()
            case RequestCode.RESET_CONSUMER_CLIENT_OFFSET:
                self._later(link, command, self._reset(command))
            case RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT:
                _respond(link, command, self._status(command))
            case RequestCode.GET_CONSUMER_RUNNING_INFO:
                self._later(link, command, self._running_info(command))
            case RequestCode.CONSUME_MESSAGE_DIRECTLY:
                self._later(link, command, self._consume(command))
            case code:
                unknown = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
                remark = f"request code {code} is not supported"
                _respond(link, command, Command(unknown, remark=remark))

    async def close(self) -> None:
        """Answer nothing more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # Answers

    async def _reset(self, command: Command) -> Command:
        asked = headers.read(command, ResetOffsetHeader)
        body = javajson.decode(command.body, OffsetTable, "reset", size_max=BODY_SIZE_MAX)
        queues = self._member.queues
        for each, offset in body.offset_table.items.items():
            queue = Queue(each.topic, each.broker_name, each.queue_id)
            if queue.topic == asked.topic and queue in queues.assignment and offset >= 0:
                _log.warning("%s/%s/%d is reset to %d", queue.topic, queue.broker, queue.id, offset)
                await queues.reset(queue, offset)
        return Command(ResponseCode.SUCCESS)

    def _status(self, command: Command) -> Command:
        topic = command.fields.get("topic", "")
        offsets = self._member.queues.offsets.of_topic(topic)
        table = {_named(queue): offset for queue, offset in offsets.items()}
        body = ConsumerStatus(message_queue_table=Keyed(table))
        return Command(ResponseCode.SUCCESS, body=javajson.encode(body))

    async def _running_info(self, command: Command) -> Command:
        asked = headers.read(command, RunningInfoHeader)
        member = self._member
        now_s = asyncio.get_running_loop().time()
        # Clocks of loops have arbitrary epochs: what is reported is the time of day.
        since_ms = member.now_ms() - round(now_s * 1000)
        queues = {}
        for queue, cached in sorted(member.queues.assignment.items()):
            offset = member.queues.offsets.get(queue)
            queues[_named(queue)] = queue_info(cached, offset, since_ms, now_s)
        data = member.data()
        known = member.statistics(now_s)
        topics = [each.topic for each in data.subscription_data_set]
        body = RunningInfoBody(
            properties=_properties(member, data),
            subscription_set=data.subscription_data_set,
            mq_table=Keyed(queues),
            status_table={
                topic: status(known.get(unwrap(member.namespace, topic))) for topic in topics
            },
            jstack=tasks_text() if asked.jstack_enable else None,
        )
        return Command(ResponseCode.SUCCESS, body=javajson.encode(body))

    async def _consume(self, command: Command) -> Command:
        asked = headers.read(command, ConsumeDirectlyHeader)
        direct = self._member.direct
        if direct is None:
            return _refusal("the consumer has no listener; its messages are asked for one by one")
        settlement = _Direct()
        source = Queue(asked.topic or "", asked.broker_name or "", 0)
        messages = split(command.body, source, settlement, self._member.namespace)
        if len(messages) != 1:
            return _refusal(f"{len(messages)} messages cannot be consumed directly")
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        remark = None
        try:
            done_count = await direct(messages)
            is_done = (done_count is None or done_count > 0) and not settlement.is_again
            result = "CR_SUCCESS" if is_done else "CR_LATER"
        except Retry:
            result = "CR_LATER"
        except Exception as raised:  # noqa: BLE001 # the application's own code: whatever it raises
            result, remark = "CR_THROW_EXCEPTION", repr(raised)
        body = DirectConsumption(
            order=self._member.settings.is_orderly,
            auto_commit=self._member.settings.auto_commit,
            consume_result=result,
            remark=remark,
            spent_time_mills=round((loop.time() - began_s) * 1000),
        )
        return Command(ResponseCode.SUCCESS, body=javajson.encode(body))

    # Private

    def _later(self, link: Link, command: Command, answer: Coroutine[Any, Any, Command]) -> None:
        if len(self._tasks) >= AT_ONCE_MAX:
            answer.close()
            busy = f"{AT_ONCE_MAX} requests are being answered"
            _respond(link, command, Command(ResponseCode.SYSTEM_BUSY, remark=busy))
            return
        task = asyncio.get_running_loop().create_task(_answered(link, command, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Direct:
    """Settles a message that was consumed directly: its outcome is only reported."""

    def __init__(self) -> None:
        self.is_again = False

    async def finish(self, message: Received) -> None:
        """It is consumed."""

    async def retry(self, message: Received, after: timedelta | None) -> None:
        """Respond that it would be redelivered."""
        self.is_again = True

    async def dead_letter(self, message: Received) -> None:
        """Respond that it is not consumed: the protocol has no code for a dead letter."""
        self.is_again = True


async def _answered(link: Link, command: Command, answer: Awaitable[Command]) -> None:
    try:
        found = await answer
    except (MalformedRequest, MalformedContent, SdkError) as wrong:
        found = _refusal(str(wrong))
    except Exception:  # noqa: BLE001 # one request may not end what answers the others
        _log.exception("request code %d from %s failed", command.code, link.address)
        found = _refusal("request handler failed")
    _respond(link, command, found)


def _respond(link: Link, command: Command, answer: Command) -> None:
    if not command.is_oneway:
        link.respond(command, answer)


def _refusal(remark: str) -> Command:
    return Command(ResponseCode.SYSTEM_ERROR, remark=remark)


def _named(queue: Queue) -> MessageQueue:
    return MessageQueue(broker_name=queue.broker, queue_id=queue.id, topic=queue.topic)


def queue_info(
    cached: ProcessQueue[Received], offset: int | None, since_ms: int, now_s: float
) -> dict[str, Any]:
    """What is cached of a queue, by Apache's names; `droped` is spelled so."""
    first, last = cached.bounds
    taken_first, taken_last = cached.taken_bounds

    def day_ms(at_s: float | None) -> int:
        return 0 if at_s is None else since_ms + round(at_s * 1000)

    return {
        "commitOffset": -1 if offset is None else offset,
        "cachedMsgMinOffset": first,
        "cachedMsgMaxOffset": last,
        "cachedMsgCount": cached.count,
        "cachedMsgSizeInMiB": cached.size >> 20,
        "transactionMsgMinOffset": taken_first,
        "transactionMsgMaxOffset": taken_last,
        "transactionMsgCount": cached.taken_count,
        "locked": cached.is_locked(now_s),
        "tryUnlockTimes": 0,
        "lastLockTimestamp": day_ms(cached.locked_at_s),
        "droped": cached.is_dropped,
        "lastPullTimestamp": day_ms(cached.pulled_at_s),
        "lastConsumeTimestamp": day_ms(cached.consumed_at_s),
    }


def status(found: TopicStatistics | None) -> dict[str, float]:
    """Rates and times of a topic, by Apache's names; times in milliseconds."""
    return {
        "pullRT": found.pull_s * 1000 if found else 0.0,
        "pullTPS": found.pull_rate if found else 0.0,
        "consumeRT": found.consume_s * 1000 if found else 0.0,
        "consumeOKTPS": found.ok_rate if found else 0.0,
        "consumeFailedTPS": found.failed_rate if found else 0.0,
        "consumeFailedMsgs": found.failed_count if found else 0,
    }


def tasks_text() -> str:
    """Where the tasks of the loop are, as a Java client shows its threads."""
    lines: list[str] = []
    tasks = sorted(asyncio.all_tasks(), key=asyncio.Task.get_name)
    for task in tasks[:TASKS_MAX]:
        lines.append(f"TASK {task.get_name()} {getattr(task.get_coro(), '__qualname__', '')}")
        for frame in task.get_stack(limit=FRAMES_MAX):
            code = frame.f_code
            lines.append(f"    {code.co_qualname}({code.co_filename}:{frame.f_lineno})")
    if len(tasks) > TASKS_MAX:
        lines.append(f"and {len(tasks) - TASKS_MAX:,} more")
    return "\n".join(lines)


def _properties(member: AskedMember, data: ConsumerData) -> dict[str, str]:
    settings = member.settings
    flow = settings.flow
    return {
        "PROP_CLIENT_VERSION": "rockgate",
        "PROP_NAMESERVER_ADDR": "".join(f"{each};" for each in member.name_servers),
        "PROP_CONSUME_TYPE": data.consume_type,
        "PROP_CONSUMEORDERLY": str(settings.is_orderly).lower(),
        "PROP_CONSUMER_START_TIMESTAMP": str(member.started_ms),
        "PROP_THREADPOOL_CORE_SIZE": str(settings.workers),
        "consumerGroup": data.group_name,
        "messageModel": data.message_model,
        "consumeFromWhere": data.consume_from_where,
        "allocateMessageQueueStrategy": type(settings.allocation).__name__,
        "consumeThreadMin": str(settings.workers),
        "consumeThreadMax": str(settings.workers),
        "consumeMessageBatchMaxSize": str(settings.batch_max),
        "pullBatchSize": str(settings.pull_count_max),
        "pullThresholdForQueue": str(flow.count_max),
        "pullThresholdSizeForQueue": str(flow.size_max >> 20),
        "pullThresholdForTopic": str(flow.topic_count_max or -1),
        "pullThresholdSizeForTopic": str(
            -1 if flow.topic_size_max is None else flow.topic_size_max >> 20
        ),
        "consumeConcurrentlyMaxSpan": str(flow.span_max),
        "maxReconsumeTimes": str(settings.retry_count_max),
        "suspendCurrentQueueTimeMillis": str(round(settings.suspend_s * 1000)),
        "consumeTimeout": str(round(settings.consume_timeout_s / 60)),
        "persistConsumerOffsetInterval": str(round(settings.persist_s * 1000)),
        "pullTimeDelayMillsWhenException": str(round(settings.retry_s * 1000)),
        "namesrvAddr": ";".join(member.name_servers),
        "language": "PYTHON",
    }
