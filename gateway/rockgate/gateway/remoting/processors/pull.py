"""Pulls: 11 and 361.

Behaviour
- `remoting.pulling` has the table of offsets and answers. With SUSPEND a pull at the end waits for
  messages, as long as the client says and at most `remoting.suspend_ms_max`.
- With COMMIT_OFFSET the group's progress is committed along with it; a failure is not reported.
- Without SUBSCRIPTION the filter is the one of the group's heartbeats. subVersion is not compared:
  a client bumps it before its next heartbeat has it.
- A group that is set not to consume, or not by broadcast as it does, or that is forbidden to read
  the topic (353), gets NO_PERMISSION.
- The first pull after the group was set to another offset (222) is answered with that offset.

Departs from RocketMQ
- `suggestWhichBrokerId` is always 0: there are no slaves.
- Class filters are not there, and a pull that asks for one is SUBSCRIPTION_PARSE_FAILED. RocketMQ's
  broker gives such a pull everything.
- A group needs no making, so SUBSCRIPTION_GROUP_NOT_EXIST is never the answer.
- An expression is compiled from the subscription itself and evaluated on messages; queues have no
  filter bitmaps. So there is no filter data that could be missing or old, and neither
  FILTER_DATA_NOT_EXIST (27) nor FILTER_DATA_NOT_LATEST (28) is ever the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol, cast

from rockgate.gateway.remoting.groups.clients import BROADCASTING, Clients
from rockgate.gateway.remoting.groups.forbidden import ForbiddenReads
from rockgate.gateway.remoting.groups.offsets import ConsumerOffsets
from rockgate.gateway.remoting.groups.settings import GroupSettings, disabled
from rockgate.gateway.remoting.messages.long_polls import LongPolls
from rockgate.gateway.remoting.messages.puller import Pulled, Puller
from rockgate.gateway.remoting.messages.subscriptions import EVERYTHING, Filter, filter_of
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Frame, Later, Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.names import group_of
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry
from rockgate.gateway.storage.long_poll import PollRegistry
from rockgate.gateway.transcode import names
from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.pull import (
    CLASS_FILTER,
    COMMIT_OFFSET,
    SUBSCRIPTION,
    SUSPEND,
    PullHeader,
)
from rockgate.protocol.remoting.hot.answers import pulled
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import READ
from rockgate.store.errors import StoreError


class Got(Protocol):
    """Counts the messages that groups receive."""

    def __call__(self, queue: Queue, group: str, found: Pulled, seconds: float, /) -> None:
        """Count the messages of one response."""


def _uncounted(queue: Queue, group: str, found: Pulled, seconds: float) -> None:
    """Count nothing."""


class _WaitingPull:
    """A suspended pull: there may be a hundred thousand, so each holds only what it needs."""

    __slots__ = (
        *("_pulls", "caller", "command", "count_max", "group"),
        *("offset", "queue", "size_max", "wanted"),
    )

    offset: int
    count_max: int
    size_max: int

    def __init__(
        self,
        pulls: Pulls,
        command: Command,
        caller: Caller,
        queue: Queue,
        wanted: Filter,
        group: str,
    ) -> None:
        self._pulls = pulls
        self.command = command
        self.caller = caller
        self.queue = queue
        self.wanted = wanted
        self.group = group

    def look(self, is_last: bool) -> Frame | asyncio.Future[Reply] | None:
        """Called by `PollRegistry.poll`."""
        return self._pulls.look(self, is_last=is_last)

    def end(self) -> None:
        """The poll has ended."""
        self._pulls.ended(self)


class Pulls:
    """Processor of pulls."""

    def __init__(
        self,
        *,
        puller: Puller,
        topics: TopicRegistry,
        queues: Queues,
        clients: Clients,
        settings: GroupSettings,
        forbidden: ForbiddenReads,
        offsets: ConsumerOffsets,
        poll_registry: PollRegistry,
        count_max: int,
        size_max: int,
        suspend_ms_max: int,
        polls: LongPolls,
        got: Got = _uncounted,
    ) -> None:
        """`got` is called with every response that has messages."""
        self._got = got
        self._polls = polls
        self._puller = puller
        self._topics = topics
        self._queues = queues
        self._clients = clients
        self._settings = settings
        self._is_forbidden = forbidden.has
        self._offsets = offsets
        self._poll_registry = poll_registry
        self._count_max = count_max
        self._size_max = size_max
        self._suspend_ms_max = suspend_ms_max

    def limit(self, count_max: int, size_max: int) -> None:
        """Let answers be larger or smaller from now on."""
        self._count_max = count_max
        self._size_max = size_max

    def pull(self, command: Command, caller: Caller) -> Reply | Later:
        """Respond with what is available, or wait."""
        header = cast(PullHeader, command.header or headers.read(command, PullHeader))
        queue = self._queue(header)
        group = group_of(header.consumer_group)
        wanted = self._wanted(header, group)
        count_max = max(1, min(header.max_msg_nums, self._count_max))
        size_max = self._size_max
        if header.max_msg_bytes is not None and header.max_msg_bytes > 0:
            size_max = min(size_max, header.max_msg_bytes)
        if header.sys_flag & COMMIT_OFFSET and header.commit_offset >= 0:
            self._commit(header, group, queue)
        if self._offsets.resets.pending:
            moved = self._moved(group, queue)
            if moved is not None:
                return self._answer(command, moved, queue, group)
        found = self._puller.pull(queue, header.queue_offset, wanted, count_max, size_max)
        if not isinstance(found, Pulled):
            return self._later(command, found, queue, group)
        if found.is_waiting and header.sys_flag & SUSPEND:
            wait_ms = min(header.suspend_timeout_millis, self._suspend_ms_max)
            if wait_ms > 0:
                return self._wait(command, caller, queue, wanted, count_max, size_max, wait_ms)
        return self._answer(command, found, queue, group)

    def _wait(
        self,
        command: Command,
        caller: Caller,
        queue: Queue,
        wanted: Filter,
        count_max: int,
        size_max: int,
        wait_ms: int,
    ) -> Later:
        """Wait for a matching message; others are skipped meanwhile."""
        if (refusal := self._polls.begin(caller, command.size)) is not None:
            raise Refused(ResponseCode.SYSTEM_BUSY, refusal)
        header = headers.read(command, PullHeader)
        offset, group = header.queue_offset, names.to_store(header.consumer_group)
        command.release()
        pull = _WaitingPull(self, command, caller, queue, wanted, group)
        pull.offset, pull.count_max, pull.size_max = offset, count_max, size_max
        return self._poll_registry.poll((queue,), wait_ms, pull.look, pull.end)

    async def _later(
        self, command: Command, found: Awaitable[Pulled], queue: Queue, group: str
    ) -> Reply:
        return self._answer(command, await found, queue, group)

    def look(self, pull: _WaitingPull, *, is_last: bool) -> Frame | asyncio.Future[Reply] | None:
        """The response to a suspended pull, if there is one now."""
        command, queue, group = pull.command, pull.queue, pull.group
        if self._offsets.resets.pending and (moved := self._moved(group, queue)) is not None:
            return self._answer(command, moved, queue, group)
        found = self._puller.pull(queue, pull.offset, pull.wanted, pull.count_max, pull.size_max)
        if not isinstance(found, Pulled):
            return asyncio.ensure_future(self._later(command, found, queue, group))
        if found.code == ResponseCode.PULL_RETRY_IMMEDIATELY and not is_last:
            pull.offset = found.next_offset
            # If one turn could not read it all, the client pulls the rest.
            if pull.offset >= found.max_offset:
                return None
        elif found.is_waiting and not is_last:
            return None
        return self._answer(command, found, queue, group)

    def ended(self, pull: _WaitingPull) -> None:
        """A poll has ended."""
        self._polls.end(pull.caller, pull.command.size)

    def _moved(self, group: str, queue: Queue) -> Pulled | None:
        """The offset that a group was reset to meanwhile, for the first pull."""
        offset = self._offsets.resets.take(group, queue)
        if offset is None:
            return None
        code, remark = ResponseCode.PULL_OFFSET_MOVED, b"OFFSET_RESET"
        return Pulled(code, remark, offset, queue.log_start, self._puller.end(queue), [], 0)

    def _queue(self, header: PullHeader) -> Queue:
        topic = self._topics.get(header.topic)
        if not topic.permission & READ:
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"the topic[{header.topic}] pulling message is forbidden",
            )
        if not 0 <= header.queue_id < topic.queue_count:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
                f"topicConfig.readQueueNums:[{topic.read_queues}]",
            )
        return self._queues.of(topic.id)[header.queue_id]

    def _wanted(self, header: PullHeader, group: str) -> Filter:
        """The filter of the group's subscription to the topic."""
        if self._settings.is_set(group) and not self._settings.of(group).consume_enable:
            raise disabled(header.consumer_group)
        if self._is_forbidden((header.topic, header.consumer_group)):
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"the consumer group[{header.consumer_group}] is forbidden for "
                f"topic[{header.topic}]",
            )
        if header.sys_flag & CLASS_FILTER:
            raise _no_classes(header)
        if header.sys_flag & SUBSCRIPTION:
            if header.subscription is None or header.subscription == "*":
                return EVERYTHING
            return filter_of(header.expression_type or "TAG", header.subscription)
        members = self._clients.consumer_group(group)
        if members is None:
            raise Refused(
                ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist"
            )
        if (
            members.data.message_model == BROADCASTING
            and self._settings.is_set(group)
            and not self._settings.of(group).consume_broadcast_enable
        ):
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"the consumer group[{header.consumer_group}] can not consume by broadcast way",
            )
        subscription = members.subscriptions.get(header.topic)
        if subscription is None:
            raise Refused(
                ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist"
            )
        if subscription.class_filter_mode:
            raise _no_classes(header)
        return filter_of(subscription.expression_type or "TAG", subscription.sub_string)

    def _answer(self, command: Command, found: Pulled, queue: Queue, group: str) -> Frame:
        if found.message_count:
            self._got(queue, group, found, self._puller.last_seconds)
        return pulled(
            command.encoding,
            command.opaque,
            found.code,
            found.remark,
            found.next_offset,
            found.min_offset,
            found.max_offset,
            found.buffers,
            found.size,
        )

    def _commit(self, header: PullHeader, group: str, queue: Queue) -> None:
        try:
            self._offsets.commit(group, queue, header.commit_offset, acknowledged=False)
        except (Refused, StoreError):
            # The commit comes with a pull, which must not fail because of it.
            return


def _no_classes(header: PullHeader) -> Refused:
    return Refused(
        ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        f"Group '{header.consumer_group}' requests filter classes on topic "
        f"'{header.topic}'; only tag and SQL filters are supported.",
    )
