"""A group member's typed broker calls: pulls, offsets, members, locks, send-backs.

Reads go to the broker that the last response suggested, everything else to the master. A broker
that is no longer in the route is looked up once more before a call fails.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

import msgspec

from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.clients import CheckClientBody, ConsumerIds
from rockgate.protocol.remoting.bodies.queues import LockBody, LockedBody, MessageQueue
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Buffer
from rockgate.protocol.remoting.headers.clients import ConsumerGroupHeader
from rockgate.protocol.remoting.headers.offsets import (
    MaxOffsetHeader,
    OffsetAnswer,
    QueryConsumerOffsetHeader,
    QueueHeader,
    SearchOffsetHeader,
    TimestampAnswer,
    UpdateConsumerOffsetHeader,
)
from rockgate.protocol.remoting.headers.pull import (
    COMMIT_OFFSET,
    LITE,
    SUBSCRIPTION,
    SUSPEND,
    PulledHeader,
    PullHeader,
)
from rockgate.protocol.remoting.headers.send import SendBackHeader
from rockgate.sdk.answers import checked, read_body, read_header, refused
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.cluster import MASTER
from rockgate.sdk.client.connection import Link
from rockgate.sdk.consumer.subscription import TAG, Subscription
from rockgate.sdk.errors import Closed, NoRoute, NotSupported, SdkError
from rockgate.sdk.received import Received
from rockgate.sdk.results import Queue

CALL_S: Final = 5.0
LIST_S: Final = 3.0
LISTS_S: Final = 6.0
"""After this time no other broker is asked for a list; the next round tries again."""
LOCK_S: Final = 1.0
SUSPEND_MS: Final = 15_000
PULL_S: Final = 30.0
"""Longer than a broker holds a pull back, which may be five seconds more than it is asked to."""

SQL_SINCE: Final = 232
"""RocketMQ 4.1.0's number (its snapshots' too) in the header of every command."""

_log: Final = logging.getLogger(__name__)

H = TypeVar("H", bound=msgspec.Struct)


class PullStatus(Enum):
    """What a pull has found."""

    FOUND = ResponseCode.SUCCESS
    NO_NEW_MESSAGE = ResponseCode.PULL_NOT_FOUND
    NO_MATCHED_MESSAGE = ResponseCode.PULL_RETRY_IMMEDIATELY
    OFFSET_ILLEGAL = ResponseCode.PULL_OFFSET_MOVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """The answer to a pull."""

    status: PullStatus
    next_offset: int
    """The offset to pull next."""
    min_offset: int
    max_offset: int
    body: Buffer = b""
    """Messages, one after the other."""


_STATUSES: Final[dict[int, PullStatus]] = {status.value: status for status in PullStatus}


class BrokerCalls:
    """The calls of one group over one client."""

    def __init__(self, client: Client, group: str, namespace: str = "") -> None:
        """`group` is its name on the wire; `namespace` the part that no application sees."""
        self._client = client
        self._group = self.group = group
        self.namespace = namespace
        self._suggested: dict[Queue, int] = {}

    # Reading

    async def pull(
        self,
        queue: Queue,
        offset: int,
        subscription: Subscription,
        *,
        count_max: int,
        sub_version: int = 0,
        commit_offset: int | None = None,
        suspend_ms: int = SUSPEND_MS,
        with_expression: bool = False,
        is_lite: bool = False,
        timeout_s: float = PULL_S,
    ) -> Pulled:
        """Messages of a queue from an offset on; the broker holds the pull for up to this long."""
        broker_id, link = await self._reader(queue)
        await self._check_version(link, queue.broker, subscription)
        flags = SUSPEND if suspend_ms else 0
        if broker_id != MASTER:
            # A slave takes no offsets.
            commit_offset = None
        if commit_offset is not None:
            flags |= COMMIT_OFFSET
        if with_expression:
            flags |= SUBSCRIPTION
        code = RequestCode.PULL_MESSAGE
        if is_lite:
            flags |= LITE
            code = RequestCode.LITE_PULL_MESSAGE
        header = PullHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.id,
            queue_offset=offset,
            max_msg_nums=count_max,
            sys_flag=flags,
            commit_offset=commit_offset or 0,
            suspend_timeout_millis=suspend_ms,
            subscription=subscription.expression if with_expression else None,
            sub_version=sub_version,
            expression_type=subscription.kind,
            bname=queue.broker,
        )
        answer = await link.request(code, headers.write(header), timeout_s=timeout_s)
        status = _STATUSES.get(answer.code)
        if status is None:
            raise refused(code, link.address, answer)
        found = read_header(code, link.address, answer, PulledHeader)
        self._suggested[queue] = found.suggest_which_broker_id
        return Pulled(
            status=status,
            next_offset=found.next_begin_offset,
            min_offset=found.min_offset,
            max_offset=found.max_offset,
            body=answer.body,
        )

    # Offsets

    async def committed(self, queue: Queue) -> int | None:
        """How far the group is; None if its broker does not know."""
        # Without the last field a broker returns 0 for a young queue, whatever initial offset the
        # group is configured with. Brokers before 5.0 do so even with it.
        header = QueryConsumerOffsetHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.id,
            set_zero_if_not_found=False,
        )
        code = RequestCode.QUERY_CONSUMER_OFFSET
        link = await self._master(queue)
        answer = await link.request(code, headers.write(header), timeout_s=CALL_S)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        checked(code, link.address, answer)
        return read_header(code, link.address, answer, OffsetAnswer).offset

    async def commit(self, queue: Queue, offset: int, *, is_awaited: bool = False) -> None:
        """Commit an offset. A commit that is not awaited may be lost with its connection."""
        header = UpdateConsumerOffsetHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.id,
            commit_offset=offset,
        )
        code = RequestCode.UPDATE_CONSUMER_OFFSET
        link = await self._master(queue)
        if is_awaited:
            answer = await link.request(code, headers.write(header), timeout_s=CALL_S)
            checked(code, link.address, answer)
        else:
            await link.oneway(code, headers.write(header), timeout_s=CALL_S)

    async def end(self, queue: Queue) -> int:
        """The offset that the next message of a queue gets."""
        header = MaxOffsetHeader(topic=queue.topic, queue_id=queue.id)
        return await self._offset(RequestCode.GET_MAX_OFFSET, queue, header)

    async def begin(self, queue: Queue) -> int:
        """The offset of the first message that a queue still has."""
        header = QueueHeader(topic=queue.topic, queue_id=queue.id)
        return await self._offset(RequestCode.GET_MIN_OFFSET, queue, header)

    async def search(self, queue: Queue, timestamp_ms: int) -> int:
        """The offset of the first message that was stored at this time or later."""
        header = SearchOffsetHeader(topic=queue.topic, queue_id=queue.id, timestamp=timestamp_ms)
        return await self._offset(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, queue, header)

    async def earliest_ms(self, queue: Queue) -> int:
        """When the first message of a queue was stored; -1 if it has none."""
        header = QueueHeader(topic=queue.topic, queue_id=queue.id)
        code = RequestCode.GET_EARLIEST_MSG_STORETIME
        link = await self._master(queue)
        answer = await link.request(code, headers.write(header), timeout_s=CALL_S)
        checked(code, link.address, answer)
        return read_header(code, link.address, answer, TimestampAnswer).timestamp

    # The group

    async def members(self, topic: str) -> list[str] | None:
        """The ids of the group's members, sorted; None if no broker of the topic could be asked."""
        route = await self._client.routes.readable(topic)
        code = RequestCode.GET_CONSUMER_LIST_BY_GROUP
        fields = headers.write(ConsumerGroupHeader(consumer_group=self._group))
        # Any will do: every member has announced itself to every broker of the topic.
        brokers = random.sample(sorted(route.brokers.items()), len(route.brokers))
        loop = asyncio.get_running_loop()
        until_s = loop.time() + LISTS_S
        for name, addresses in brokers:
            if loop.time() > until_s:
                break
            link = self._client.broker(addresses.get(MASTER) or min(addresses.values()))
            try:
                answer = await link.request(code, dict(fields), timeout_s=LIST_S)
                if answer.code == ResponseCode.SUCCESS:
                    ids = read_body(code, link.address, answer, ConsumerIds).consumer_id_list
                    # A member that reconnected may still be listed by its old connection as well.
                    return sorted(set(ids))
            except Closed:
                raise
            except SdkError as failed:
                _log.warning("members of group %s at %s: %s", self._group, name, failed)
        return None

    async def check(self, subscription: Subscription) -> None:
        """Have a broker check a filter; Refused if it cannot parse it."""
        route = await self._client.routes.readable(subscription.topic)
        code = RequestCode.CHECK_CLIENT_CONFIG
        body = CheckClientBody(
            client_id=self._client.id,
            group=self._group,
            subscription_data=subscription.data(0),
        )
        for name, addresses in sorted(route.brokers.items()):
            if MASTER in addresses:
                link = self._client.broker(addresses[MASTER])
                await self._check_version(link, name, subscription)
                encoded = javajson.encode(body)
                answer = await link.request(code, None, encoded, timeout_s=LIST_S)
                checked(code, link.address, answer)

    async def lock(self, queues: Iterable[Queue]) -> set[Queue]:
        """Lock queues for this client, for a minute; returns those that are locked."""
        found: set[Queue] = set()
        for broker, part in by_broker(queues).items():
            link = await self._master(part[0])
            code = RequestCode.LOCK_BATCH_MQ
            answer = await link.request(code, None, self._lock_body(part), timeout_s=LOCK_S)
            checked(code, link.address, answer)
            locked = read_body(code, link.address, answer, LockedBody)
            found |= {
                Queue(each.topic, broker, each.queue_id) for each in locked.lock_ok_mq_set
            } & set(part)
        return found

    async def unlock(self, queues: Iterable[Queue]) -> None:
        """Unlock queues, so that another member can lock them at once."""
        for part in by_broker(queues).values():
            link = await self._master(part[0])
            code = RequestCode.UNLOCK_BATCH_MQ
            await link.oneway(code, None, self._lock_body(part), timeout_s=LOCK_S)

    async def send_back(self, message: Received, level: int, tries_max: int) -> None:
        """Have a message delivered again after a delay level, or made a dead letter."""
        header = SendBackHeader(
            offset=message.position,
            group=self._group,
            delay_level=level,
            origin_msg_id=message.offset_message_id,
            origin_topic=message.wire_topic,
            max_reconsume_times=tries_max,
            bname=message.source.broker,
        )
        code = RequestCode.CONSUMER_SEND_MSG_BACK
        link = await self._master(message.source)
        answer = await link.request(code, headers.write(header), timeout_s=CALL_S)
        checked(code, link.address, answer)

    # Private

    async def _check_version(self, link: Link, broker: str, subscription: Subscription) -> None:
        """Refuse to ask a broker for a filter that it would not apply."""
        if subscription.kind == TAG:
            return
        if link.version is None:
            await self._client.learn(link, LIST_S)
        if (link.version or 0) < SQL_SINCE:
            raise NotSupported(
                f"Broker {broker} is older than 4.1 and does not support {subscription.kind} "
                "filters. Subscribe by tags."
            )

    def _lock_body(self, queues: list[Queue]) -> bytes:
        return javajson.encode(
            LockBody(
                client_id=self._client.id,
                consumer_group=self._group,
                mq_set=[
                    MessageQueue(broker_name=each.broker, queue_id=each.id, topic=each.topic)
                    for each in queues
                ],
            )
        )

    async def _offset(self, code: RequestCode, queue: Queue, header: msgspec.Struct) -> int:
        link = await self._master(queue)
        answer = await link.request(code, headers.write(header), timeout_s=CALL_S)
        checked(code, link.address, answer)
        return read_header(code, link.address, answer, OffsetAnswer).offset

    async def _master(self, queue: Queue) -> Link:
        addresses = await self._addresses(queue)
        if MASTER not in addresses:
            raise NoRoute(f"Broker {queue.broker} of topic {queue.topic} has no master.")
        return self._client.broker(addresses[MASTER])

    async def _reader(self, queue: Queue) -> tuple[int, Link]:
        addresses = await self._addresses(queue)
        wanted = self._suggested.get(queue, MASTER)
        found = wanted if wanted in addresses else min(addresses)
        return found, self._client.broker(addresses[found])

    async def _addresses(self, queue: Queue) -> dict[int, str]:
        routes = self._client.routes
        addresses = (await routes.readable(queue.topic)).brokers.get(queue.broker)
        if not addresses:
            addresses = (await routes.ask_again(queue.topic)).brokers.get(queue.broker)
        if not addresses:
            raise NoRoute(f"Topic {queue.topic} has left broker {queue.broker}.")
        return addresses


def by_broker(queues: Iterable[Queue]) -> dict[str, list[Queue]]:
    """Queues by the name of their broker, which one request can be about."""
    found: dict[str, list[Queue]] = {}
    for queue in sorted(queues):
        found.setdefault(queue.broker, []).append(queue)
    return found
