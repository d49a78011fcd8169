"""Clients: 34 heartbeat, 35 unregister, 38 members, 46 check, 203, 204, 328 who, 223, 307, 309.

Behaviour
- A heartbeat registers a client in all its groups. `%RETRY%group` exists from a consumer's first
  one. Members are notified (40) when their group changes, unless the group is set not to be
  notified or reads by broadcast.
- A heartbeat `withoutSub` (v2) only says that the client is alive; if it is not or no longer known,
  the answer asks for a full one.
- A group with Kafka members takes no RocketMQ members: the heartbeat is refused by name.
- 223 asks members of a group for their progress (221), some at a time; those that do not answer are
  left out.
- 307 and 309 are passed on to the client they are about, with its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import replace

import msgspec

from rockgate.gateway.remoting.groups.clients import Client, ClientGroup, Clients
from rockgate.gateway.remoting.groups.settings import GroupSettings
from rockgate.gateway.remoting.messages.subscriptions import filter_of
from rockgate.gateway.remoting.server import names as names_of
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.long_answers import TURN_SECONDS, joined, keyed
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.transcode import names
from rockgate.gateway.transcode.lookup import MessageLookup
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.clients import (
    CheckClientBody,
    ConnectedClient,
    ConsumerConnections,
    ConsumerData,
    ConsumerIds,
    HeartbeatBody,
    ProducerInfo,
)
from rockgate.protocol.remoting.bodies.queues import ConsumerStatus, MessageQueue
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers import clients as fields
from rockgate.protocol.remoting.headers.offsets import ConsumerStatusHeader
from rockgate.protocol.remoting.ids import parse_offset_message_id
from rockgate.protocol.remoting.javajson import Keyed
from rockgate.protocol.remoting.system_topics import RETRY_PREFIX
from rockgate.store.api.clock import Clock

GROUPS_MAX = 1_000
BEAT_BYTES_MAX = 256 << 10
"""Maximum size of a heartbeat: some eight hundred groups as Java's client describes them."""
CHECK_BYTES_MAX = 128 << 10
GROUPS_AT_ONCE = 4
PASS_ON_SECONDS_MAX = 10.0
ASKED_AT_ONCE = 16
STATUS_BYTES_MAX = 1 << 20


class ClientRequests:
    """Processors of client requests."""

    def __init__(
        self,
        *,
        clients: Clients,
        settings: GroupSettings,
        topics: TopicRegistry,
        lookup: MessageLookup,
        clock: Clock,
        broker_name: str,
    ) -> None:
        self._clients = clients
        self._settings = settings
        self._topics = topics
        self._lookup = lookup
        self._clock = clock
        self._broker_name = broker_name

    def heartbeat(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """34: a heartbeat with the groups of a client."""
        beat = javajson.decode(command.body, HeartbeatBody, "HEART_BEAT", size_max=BEAT_BYTES_MAX)
        now_ms = self._clock.monotonic_ms()
        if beat.without_sub and beat.heartbeat_fingerprint:
            return _heartbeat_answer(not self._clients.touch(caller, now_ms))
        count = len(beat.consumer_data_set) + len(beat.producer_data_set)
        if count > GROUPS_MAX:
            raise Refused(
                ResponseCode.INVALID_PARAMETER, f"Heartbeat names more than {GROUPS_MAX:,} groups."
            )
        _check_names(beat)
        self._clients.reserve(caller, len(command.body), count, GROUPS_MAX)
        client = Client(beat.client_id, caller, command.language, command.version, now_ms)
        beats = self._beats(beat, client)
        if count > GROUPS_AT_ONCE:
            return _heartbeat_answer_later(beats)
        return _answer_beat([name for name in beats if name])

    def _beats(self, beat: HeartbeatBody, client: Client) -> Iterator[str]:
        """Register a client in its groups, one at each step; returns those that it may not join."""
        for producer in beat.producer_data_set:
            if client.caller.is_open:
                self._clients.produce(producer.group_name, replace(client))
            yield ""
        for data in beat.consumer_data_set:
            # The connection may be lost meanwhile, and the client would then never be removed.
            is_taken = not client.caller.is_open or self._consume(data, replace(client))
            yield "" if is_taken else data.group_name

    def _consume(self, data: ConsumerData, client: Client) -> bool:
        group = names.to_store(data.group_name)
        settings = self._settings.of(group)
        outcome = self._clients.consume(
            msgspec.structs.replace(data, group_name=group),
            client,
            notifies=settings.notify_consumer_ids_changed_enable,
        )
        if outcome is None:
            return False
        self._topics.ensure_queues(RETRY_PREFIX + data.group_name, settings.retry_queue_nums)
        return True

    def unregister(self, command: Command, caller: Caller) -> Reply:
        """35: unregister a client."""
        asked = headers.read(command, fields.UnregisterClientHeader)
        group = asked.consumer_group
        self._clients.leave(
            caller,
            producer=asked.producer_group,
            consumer=None if group is None else names_of.group_of(group),
        )
        return Command(ResponseCode.SUCCESS)

    def members(self, command: Command, caller: Caller) -> Reply:
        """38: the ids of a group's members."""
        asked = headers.read(command, fields.ConsumerGroupHeader)
        group = self._clients.consumer_group(names_of.group_of(asked.consumer_group))
        if group is None or not group.client_ids:
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {asked.consumer_group}"
            )
        body = javajson.encode(ConsumerIds(consumer_id_list=group.client_ids))
        return Command(ResponseCode.SUCCESS, body=body)

    def check(self, command: Command, caller: Caller) -> Reply:
        """46: check a subscription."""
        what = "CHECK_CLIENT_CONFIG"
        asked = javajson.decode(command.body, CheckClientBody, what, size_max=CHECK_BYTES_MAX)
        subscription = asked.subscription_data
        filter_of(subscription.expression_type or "TAG", subscription.sub_string)
        return Command(ResponseCode.SUCCESS)

    # For administrators

    def consumer_connections(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """203: the consumers of a group and their subscriptions."""
        asked = headers.read(command, fields.ConsumerGroupHeader)
        group = self._clients.consumer_group(names_of.group_of(asked.consumer_group))
        if group is None:
            raise Refused(
                ResponseCode.CONSUMER_NOT_ONLINE,
                f"the consumer group[{asked.consumer_group}] not online",
            )
        return self._consumer_connections(group)

    async def _consumer_connections(self, group: ClientGroup) -> Reply:
        body = ConsumerConnections(
            consume_from_where=group.data.consume_from_where,
            consume_type=group.data.consume_type,
            message_model=group.data.message_model,
            subscription_table=dict(group.subscriptions),
        )
        none = b'"connectionSet":[]'
        before, _, behind = javajson.encode(body).partition(none)
        members = list(group.members.values())
        rows = (javajson.encode(_connected(client)) for client in members)
        encoded = await joined(
            before + none[:-1],
            rows,
            none[-1:] + behind,
            instead="request the client ids instead (GET_CONSUMER_LIST_BY_GROUP)",
        )
        return Command(ResponseCode.SUCCESS, body=encoded)

    def producer_connections(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """204: the producers of a group."""
        asked = headers.read(command, fields.ProducerGroupHeader)
        producers = self._clients.producers(asked.producer_group)
        if not producers:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"the producer group[{asked.producer_group}] not exist",
            )
        return self._producer_connections(list(producers))

    async def _producer_connections(self, producers: list[Client]) -> Reply:
        rows = (javajson.encode(_connected(each)) for each in producers)
        encoded = await joined(b'{"connectionSet":[', rows, b"]}", instead="it is too large")
        return Command(ResponseCode.SUCCESS, body=encoded)

    def all_producers(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """328: who produces, in all groups."""
        return self._all_producers()

    async def _all_producers(self) -> Reply:
        groups = self._clients.producer_groups()
        rows = (keyed(group, self._infos(group)) for group in groups)
        encoded = await joined(
            b'{"data":{',
            rows,
            b"}}",
            instead="request group by group instead (GET_PRODUCER_CONNECTION_LIST)",
        )
        return Command(ResponseCode.SUCCESS, body=encoded)

    def _infos(self, group: str) -> list[ProducerInfo]:
        silent_from_ms = self._clock.now_ms() - self._clock.monotonic_ms()
        return [
            ProducerInfo(
                client_id=each.client_id,
                remote_ip=str(each.caller.peer.remote),
                language=each.language,
                version=each.version,
                last_update_timestamp=silent_from_ms + each.seen_ms,
            )
            for each in self._clients.producers(group)
        ]

    def running_info(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """307: what a consumer is doing, by its own word."""
        asked = headers.read(command, fields.RunningInfoHeader)
        client = self._client(asked.consumer_group, asked.client_id)
        return self._pass_on(client, RequestCode.GET_CONSUMER_RUNNING_INFO, command.fields)

    def consume_directly(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """309: have a consumer consume one message directly."""
        asked = headers.read(command, fields.ConsumeDirectlyHeader)
        client = self._client(asked.consumer_group, asked.client_id)
        _, _, place = parse_offset_message_id(asked.msg_id or "")
        more = {"brokerName": self._broker_name, "topicSysFlag": "0", "groupSysFlag": "0"}
        return self._consume_directly(client, place, asked.msg_id, {**command.fields, **more})

    async def _consume_directly(
        self, client: Client, place: int, id_: str | None, request_fields: dict[str, str]
    ) -> Reply:
        found = await self._lookup.read(place)
        if found is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"Message {id_} does not exist.")
        code = RequestCode.CONSUME_MESSAGE_DIRECTLY
        return await self._pass_on(client, code, request_fields, bytes(found.message))

    def status(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """223: the offsets of a group's members, as they report them."""
        asked = headers.read(command, ConsumerStatusHeader)
        group = self._clients.consumer_group(names_of.group_of(asked.group))
        members = list(group.members.values()) if group is not None else []
        if asked.client_addr:
            members = [each for each in members if each.client_id == asked.client_addr]
        if not members:
            raise Refused(
                ResponseCode.CONSUMER_NOT_ONLINE,
                f"the consumer group[{asked.group}] not online",
            )
        return self._status(asked, members)

    async def _status(self, asked: ConsumerStatusHeader, members: list[Client]) -> Reply:
        request_fields = headers.write(ConsumerStatusHeader(topic=asked.topic, group=asked.group))
        waiting = iter(members)
        found: dict[str, Keyed[MessageQueue, int]] = {}

        async def ask_on() -> None:
            for client in waiting:
                code = RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
                try:
                    answer = await client.caller.ask(
                        code, dict(request_fields), b"", PASS_ON_SECONDS_MAX
                    )
                    if answer.code == ResponseCode.SUCCESS:
                        found[client.client_id] = javajson.decode(
                            answer.body, ConsumerStatus, code.name, size_max=STATUS_BYTES_MAX
                        ).message_queue_table
                except (TimeoutError, ConnectionError, MalformedRequest):
                    continue

        try:
            async with asyncio.timeout(PASS_ON_SECONDS_MAX), asyncio.TaskGroup() as asking:
                for _ in members[:ASKED_AT_ONCE]:
                    asking.create_task(ask_on())
        except TimeoutError:
            pass
        rows = (keyed(client_id, table) for client_id, table in found.items())
        encoded = await joined(
            b'{"consumerTable":{', rows, b"}}", instead="request one client at a time"
        )
        return Command(ResponseCode.SUCCESS, body=encoded)

    def _client(self, group_name: str, client_id: str | None) -> Client:
        group = self._clients.consumer_group(names_of.group_of(group_name))
        for client in group.members.values() if group is not None else ():
            if client.client_id == client_id:
                return client
        raise Refused(
            ResponseCode.SYSTEM_ERROR, f"The Consumer <{group_name}> <{client_id}> not online"
        )

    async def _pass_on(
        self, client: Client, code: RequestCode, request_fields: dict[str, str], body: Buffer = b""
    ) -> Reply:
        try:
            answer = await client.caller.ask(code, request_fields, body, PASS_ON_SECONDS_MAX)
        except (TimeoutError, ConnectionError) as error:
            raise Refused(
                ResponseCode.CONSUME_MSG_TIMEOUT, f"Consumer <{client.client_id}>: {error}."
            ) from error
        return Command(answer.code, answer.fields, answer.body, remark=answer.remark)


def _check_names(beat: HeartbeatBody) -> None:
    names_of.check_client_id(beat.client_id)
    for producer in beat.producer_data_set:
        names_of.check_group(producer.group_name)
    for consumer in beat.consumer_data_set:
        names_of.check_group(consumer.group_name)
        for subscription in consumer.subscription_data_set:
            names_of.check_topic(subscription.topic)


async def _heartbeat_answer_later(beats: Iterable[str]) -> Reply:
    """Process a heartbeat of many groups over several turns: each may create a topic."""
    refused = []
    share = TimeSlice(TURN_SECONDS)
    for name in beats:
        if name:
            refused.append(name)
        if share.is_over():
            await asyncio.sleep(0)
            share = TimeSlice(TURN_SECONDS)
    return _answer_beat(refused)


def _answer_beat(refused: list[str]) -> Reply:
    if refused:
        raise Refused(
            ResponseCode.NO_PERMISSION,
            f"Groups {', '.join(refused)[:200]} have Kafka members; stop those members first.",
        )
    return _heartbeat_answer(True)


def _heartbeat_answer(is_changed: bool) -> Command:
    answer = fields.HeartbeatAnswer(is_sub_change=is_changed)
    return Command(ResponseCode.SUCCESS, headers.write(answer))


def _connected(client: Client) -> ConnectedClient:
    return ConnectedClient(
        client_addr=str(client.caller.peer.remote),
        client_id=client.client_id,
        language=client.language,
        version=client.version,
    )
