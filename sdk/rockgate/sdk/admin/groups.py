"""Groups: create, change, delete; list them, their members and their progress."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.clients import (
    ConnectedClient,
    ConsumerConnections,
    ProducerConnections,
    SubscriptionGroupConfig,
    SubscriptionGroups,
)
from rockgate.protocol.remoting.bodies.queues import ConsumeStats
from rockgate.protocol.remoting.bodies.running import DirectConsumption, RunningInfoBody
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.errors import MalformedContent
from rockgate.protocol.remoting.headers.clients import (
    ConsumeDirectlyHeader,
    ConsumerGroupHeader,
    DeleteGroupHeader,
    ProducerGroupHeader,
    RunningInfoHeader,
)
from rockgate.protocol.remoting.headers.offsets import ConsumeStatsHeader
from rockgate.protocol.remoting.ids import parse_offset_message_id
from rockgate.sdk.admin.calls import AdminCalls
from rockgate.sdk.admin.values import (
    Connection,
    DirectResult,
    GroupConnections,
    GroupLag,
    GroupSettings,
    QueueLag,
    RunningInfo,
    queue_of,
    time_of,
)
from rockgate.sdk.errors import InvalidMessage, Refused
from rockgate.sdk.message import check_group

T = TypeVar("T")

NOT_CONNECTED = (
    ResponseCode.CONSUMER_NOT_ONLINE,
    ResponseCode.SYSTEM_ERROR,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
    ResponseCode.QUERY_NOT_FOUND,
)
"""Codes by which a broker says that it has no member of a group; other brokers may have some."""


class GroupAdmin:
    """Administers groups."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls

    async def create(
        self, group: str, settings: GroupSettings | None = None, *, cluster: str | None = None
    ) -> None:
        """Create a group at every master; an existing one gets these settings."""
        check_group(group)
        wanted = settings or GroupSettings()
        config = SubscriptionGroupConfig(
            group_name=group,
            consume_enable=wanted.is_enabled,
            consume_broadcast_enable=wanted.may_broadcast,
            consume_message_orderly=wanted.is_orderly,
            retry_max_times=wanted.retry_count_max,
            retry_queue_nums=wanted.retry_queues,
            notify_consumer_ids_changed_enable=wanted.notifies_members,
        )
        code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        for address in await self._calls.masters(cluster):
            await self._calls.ask(address, code, None, javajson.encode(config))

    async def delete(self, group: str, *, with_offsets: bool = False) -> None:
        """Delete a group's settings at every master, and its progress on request."""
        header = DeleteGroupHeader(group_name=group, clean_offset=with_offsets)
        for address in await self._calls.masters():
            await self._calls.ask(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, header)

    async def names(self) -> list[str]:
        """The groups that brokers know, RocketMQ's own included, sorted."""
        return sorted(await self._all())

    async def describe(self, group: str) -> GroupSettings | None:
        """How a group may consume; None if no broker knows it."""
        config = (await self._all()).get(group)
        if config is None:
            return None
        return GroupSettings(
            is_enabled=config.consume_enable,
            may_broadcast=config.consume_broadcast_enable,
            is_orderly=config.consume_message_orderly,
            retry_count_max=config.retry_max_times,
            retry_queues=config.retry_queue_nums,
            notifies_members=config.notify_consumer_ids_changed_enable,
        )

    # Who

    async def consumers(self, group: str) -> GroupConnections | None:
        """The members of a group and their subscriptions; None if it has no members."""
        code = RequestCode.GET_CONSUMER_CONNECTION_LIST
        header = ConsumerGroupHeader(consumer_group=group)
        answers: list[ConsumerConnections] = []
        for address in await self._calls.masters():
            try:
                answers.append(await self._calls.read(address, code, ConsumerConnections, header))
            except Refused as refused:
                if refused.code not in NOT_CONNECTED:
                    raise
        if not answers:
            return None
        first = answers[0]
        return GroupConnections(
            connections=_connections([each for one in answers for each in one.connection_set]),
            subscriptions={
                topic: each.sub_string
                for one in answers
                for topic, each in one.subscription_table.items()
            },
            model=first.message_model,
            consume_type=first.consume_type,
            start=first.consume_from_where,
        )

    async def producers(self, group: str) -> tuple[Connection, ...]:
        """The producers of a group."""
        code = RequestCode.GET_PRODUCER_CONNECTION_LIST
        header = ProducerGroupHeader(producer_group=group)
        answers: list[ConnectedClient] = []
        for address in await self._calls.masters():
            try:
                found = await self._calls.read(address, code, ProducerConnections, header)
            except Refused as refused:
                if refused.code not in NOT_CONNECTED:
                    raise
            else:
                answers += found.connection_set
        return _connections(answers)

    async def running_info(
        self, group: str, client_id: str, *, with_stack: bool = False
    ) -> RunningInfo:
        """What a consumer reports about itself; Refused if it is not connected."""
        header = RunningInfoHeader(
            consumer_group=group, client_id=client_id, jstack_enable=with_stack
        )
        code = RequestCode.GET_CONSUMER_RUNNING_INFO
        body = await self._first(code, RunningInfoBody, header)
        return RunningInfo(
            properties=body.properties,
            subscriptions={each.topic: each.sub_string for each in body.subscription_set},
            queues={queue_of(queue): info for queue, info in body.mq_table.items.items()},
            stats=body.status_table,
            stack=body.jstack,
        )

    async def consume_directly(
        self, group: str, client_id: str, offset_message_id: str
    ) -> DirectResult:
        """Have a consumer consume a message now, whatever else it does."""
        try:
            parse_offset_message_id(offset_message_id)
        except MalformedContent as wrong:
            raise InvalidMessage(f"Not an offset message id: {wrong}") from None
        header = ConsumeDirectlyHeader(
            consumer_group=group, client_id=client_id, msg_id=offset_message_id
        )
        code = RequestCode.CONSUME_MESSAGE_DIRECTLY
        body = await self._first(code, DirectConsumption, header)
        return DirectResult(
            result=body.consume_result or "",
            took=timedelta(milliseconds=body.spent_time_mills),
            is_orderly=body.order,
            remark=body.remark,
        )

    # How far

    async def lag(self, group: str, topic: str | None = None) -> GroupLag:
        """How far a group is, in one topic or in all that it reads."""
        code = RequestCode.GET_CONSUME_STATS
        header = ConsumeStatsHeader(consumer_group=group, topic=topic)
        masters = (
            await self._calls.masters()
            if topic is None
            else list((await self._calls.masters_of(topic)).values())
        )
        rate = 0.0
        queues: list[QueueLag] = []
        for address in masters:
            stats = await self._calls.read(address, code, ConsumeStats, header)
            rate += stats.consume_tps
            queues += [
                QueueLag(
                    queue=queue_of(queue),
                    end=each.broker_offset,
                    committed=each.consumer_offset,
                    consumed_at=time_of(each.last_timestamp),
                )
                for queue, each in stats.offset_table.items.items()
            ]
        ordered = tuple(sorted(queues, key=lambda each: each.queue))
        return GroupLag(group=group, rate=rate, queues=ordered)

    # Private

    async def _all(self) -> dict[str, SubscriptionGroupConfig]:
        found: dict[str, SubscriptionGroupConfig] = {}
        code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
        for address in await self._calls.masters():
            # Without fields, for with any of them a broker of 5.5 answers with a page.
            answers = await self._calls.read(address, code, SubscriptionGroups)
            found |= answers.subscription_group_table
        return found

    async def _first(
        self, code: RequestCode, kind: type[T], header: ConsumeDirectlyHeader | RunningInfoHeader
    ) -> T:
        """The answer of the first broker that the client is connected to."""
        failure: Refused | None = None
        for address in await self._calls.masters():
            try:
                return await self._calls.read(address, code, kind, header)
            except Refused as refused:
                failure = refused
        assert failure is not None
        raise failure


def _connections(answers: list[ConnectedClient]) -> tuple[Connection, ...]:
    """Every client once, whichever brokers it is connected to."""
    by_id = {
        each.client_id: Connection(
            client_id=each.client_id,
            address=each.client_addr,
            language=each.language,
            version=each.version,
        )
        for each in answers
    }
    return tuple(by_id[client_id] for client_id in sorted(by_id))
