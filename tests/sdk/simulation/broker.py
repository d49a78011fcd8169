"""One broker: what it answers to members of groups, and what it forgets when it crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tests.sdk.simulation.cluster import FORGET_S, Cluster, Store, Stored
from tests.sdk.simulation.wires import End

from rockgate.protocol.entry import parse_properties
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting import properties as names
from rockgate.protocol.remoting.bodies.clients import ConsumerIds, HeartbeatBody
from rockgate.protocol.remoting.bodies.queues import (
    LockBody,
    LockedBody,
    MessageQueue,
    OffsetTable,
)
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.clients import (
    ConsumerGroupHeader,
    UnregisterClientHeader,
)
from rockgate.protocol.remoting.headers.offsets import (
    MaxOffsetHeader,
    OffsetAnswer,
    QueryConsumerOffsetHeader,
    ResetOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from rockgate.protocol.remoting.headers.pull import (
    COMMIT_OFFSET,
    SUSPEND,
    PulledHeader,
    PullHeader,
)
from rockgate.protocol.remoting.headers.send import SendBackHeader, SendHeaderV2, SentHeader
from rockgate.protocol.remoting.javajson import Keyed
from rockgate.sdk.consumer.delivery.redelivery import LEVELS_S
from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.results import Queue

LOCK_S: Final = 60.0
BUSY: Final = 0.01
"""How many requests are refused while there are faults."""


@dataclass(slots=True)
class _Client:
    """One connection that has sent a heartbeat."""

    id: str
    heard_s: float
    groups: dict[str, dict[str, int]] = field(default_factory=dict)
    """By group the topics that it reads, and since which version."""


@dataclass(slots=True, eq=False)
class _HeldPull:
    end: End
    command: Command
    header: PullHeader
    timer: asyncio.TimerHandle | None = None


class Broker(Store):
    """A master."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(cluster, name)
        self._clients: dict[End, _Client] = {}
        self._locks: dict[tuple[str, Queue], tuple[str, float]] = {}
        self._held: dict[Queue, list[_HeldPull]] = {}
        self.appended = self._wake
        cluster.wires.nodes[self.address] = self
        self.every(10.0, self._close_idle)
        self._handlers: dict[int, Callable[[End, Command], Command | None]] = {
            RequestCode.HEART_BEAT: self._heartbeat,
            RequestCode.UNREGISTER_CLIENT: self._unregister,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._members,
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.QUERY_CONSUMER_OFFSET: self._query_offset,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._update_offset,
            RequestCode.GET_MAX_OFFSET: self._max_offset,
            RequestCode.LOCK_BATCH_MQ: self._lock,
            RequestCode.UNLOCK_BATCH_MQ: self._unlock,
            RequestCode.CONSUMER_SEND_MSG_BACK: self._send_back,
            RequestCode.SEND_MESSAGE_V2: self._send,
        }

    # Faults

    def crash(self, *, is_noticed: bool) -> None:
        """Die; the name server notices at once, or after two minutes."""
        self.is_up = self.is_frozen = False
        self.cluster.watch.crashed(self.name)
        self.cluster.wires.reset(self.address)
        self._clients.clear()
        self._locks.clear()
        for held in [each for part in self._held.values() for each in part]:
            self._unhold(held)
        self.roll_back_offsets()
        if is_noticed:
            self.cluster.name_server.forget(self.name)

    def restart(self) -> None:
        """Come back with what is on disk."""
        self.is_up = True
        self.register()

    def reset(self, group: str, queue: Queue, offset: int) -> None:
        """An operator sets a group back."""
        self.offsets[queue] = offset
        table = OffsetTable(offset_table=Keyed({_named(queue): offset}))
        header = ResetOffsetHeader(topic=queue.topic, group=group, timestamp=0, is_force=True)
        for end, client in list(self._clients.items()):
            if group in client.groups:
                code = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
                end.notify(code, headers.write(header), bytes(javajson.encode(table)))

    def owner(self, group: str, queue: Queue) -> str | None:
        """Whose lock it is now."""
        client, since_s = self._locks.get((group, queue), ("", 0.0))
        return client if client and _now_s() - since_s < LOCK_S else None

    # What a node does

    def accepted(self, end: End) -> None:
        """A client has connected; it is unknown before its first heartbeat."""

    def lost(self, end: End) -> None:
        """A client has left, and is no longer a member."""
        for held in [each for part in self._held.values() for each in part]:
            if held.end is end:
                self._unhold(held)
        client = self._clients.pop(end, None)
        if client is not None:
            for group in client.groups:
                self._notify(group)

    def asked(self, end: End, command: Command) -> None:
        """A request, which may be refused out of a bad mood."""
        if not self.is_up:
            return
        is_bad = not self.cluster.wires.is_calm and self.random.random() < BUSY
        if is_bad and not command.is_oneway and command.code != RequestCode.HEART_BEAT:
            end.respond(command, Command(ResponseCode.SYSTEM_BUSY, remark="try again"))
            return
        handler = self._handlers.get(command.code)
        assert handler is not None, f"the model does not answer {command.code}"
        answer = handler(end, command)
        if answer is not None:
            end.respond(command, answer)

    # Members

    def _heartbeat(self, end: End, command: Command) -> Command:
        body = javajson.decode(command.body, HeartbeatBody, "heartbeat")
        client = self._clients.setdefault(end, _Client(body.client_id, _now_s()))
        client.heard_s = _now_s()
        for data in body.consumer_data_set:
            versions = {each.topic: each.sub_version for each in data.subscription_data_set}
            is_new = client.groups.get(data.group_name, {}).keys() != versions.keys()
            client.groups[data.group_name] = versions
            retry = f"{RETRY_PREFIX}{data.group_name}"
            if retry not in self.topics:
                self.make(retry, 1)
            if is_new:
                self._notify(data.group_name)
        return Command(ResponseCode.SUCCESS)

    def _unregister(self, end: End, command: Command) -> Command:
        asked = headers.read(command, UnregisterClientHeader)
        client = self._clients.get(end)
        if client is not None and client.groups.pop(asked.consumer_group or "", None) is not None:
            self._notify(asked.consumer_group or "")
        return Command(ResponseCode.SUCCESS)

    def _members(self, end: End, command: Command) -> Command:
        group = headers.read(command, ConsumerGroupHeader).consumer_group
        # A client whose last connection is half open is there twice, as RocketMQ has it.
        ids = [client.id for client in self._clients.values() if group in client.groups]
        if not ids:
            return Command(ResponseCode.SYSTEM_ERROR, remark="no consumer for this group")
        return Command(
            ResponseCode.SUCCESS, body=javajson.encode(ConsumerIds(consumer_id_list=ids))
        )

    def _notify(self, group: str) -> None:
        fields = headers.write(ConsumerGroupHeader(consumer_group=group))
        for end, client in list(self._clients.items()):
            if group in client.groups:
                end.notify(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, dict(fields))

    def _close_idle(self) -> None:
        for end, client in list(self._clients.items()):
            if _now_s() - client.heard_s > FORGET_S:
                end.close()

    # Pulls

    def _pull(self, end: End, command: Command) -> Command | None:
        header = headers.read(command, PullHeader)
        queue = Queue(header.topic, self.name, header.queue_id)
        client = self._clients.get(end)
        known = client.groups.get(header.consumer_group, {}) if client else {}
        if header.topic not in known:
            return Command(ResponseCode.SUBSCRIPTION_NOT_EXIST, remark="not subscribed")
        if known[header.topic] < header.sub_version:
            return Command(ResponseCode.SUBSCRIPTION_NOT_LATEST, remark="not the latest")
        if header.sys_flag & COMMIT_OFFSET:
            self._commit(queue, header.commit_offset, end.process)
        log = self.topics[queue.topic][queue.id]
        if header.queue_offset == log.end and header.sys_flag & SUSPEND:
            held = _HeldPull(end, command, header)
            self._held.setdefault(queue, []).append(held)
            seconds = header.suspend_timeout_millis / 1000
            held.timer = asyncio.get_running_loop().call_later(seconds, self._end_hold, held)
            return None
        return self._pulled(queue, header)

    def _pulled(self, queue: Queue, header: PullHeader) -> Command:
        log = self.topics[queue.topic][queue.id]
        offset = header.queue_offset
        found = log.stored[offset : offset + header.max_msg_nums]
        code, following, body = ResponseCode.SUCCESS, offset + len(found), b""
        if not log.begin <= offset <= log.end:
            code = ResponseCode.PULL_OFFSET_MOVED
            following = log.begin if offset < log.begin else log.end
        elif not found:
            code = ResponseCode.PULL_NOT_FOUND
        else:
            body = b"".join(each.encoded() for each in found)
        answer = PulledHeader(next_begin_offset=following, min_offset=log.begin, max_offset=log.end)
        return Command(code, headers.write(answer), body)

    def _wake(self, queue: Queue) -> None:
        for held in list(self._held.get(queue, ())):
            self._end_hold(held)

    def _end_hold(self, held: _HeldPull) -> None:
        queue = self._unhold(held)
        held.end.respond(held.command, self._pulled(queue, held.header))

    def _unhold(self, held: _HeldPull) -> Queue:
        queue = Queue(held.header.topic, self.name, held.header.queue_id)
        self._held[queue].remove(held)
        if held.timer is not None:
            held.timer.cancel()
        return queue

    # Offsets

    def _commit(self, queue: Queue, offset: int, by: str) -> None:
        self.cluster.watch.committed(queue, offset, self.offsets.get(queue), by)
        self.offsets[queue] = offset

    def _query_offset(self, end: End, command: Command) -> Command:
        asked = headers.read(command, QueryConsumerOffsetHeader)
        queue = Queue(asked.topic, self.name, asked.queue_id)
        self.cluster.watch.taken_up(queue, end.process)
        offset = self.offsets.get(queue)
        if offset is None:
            return Command(ResponseCode.QUERY_NOT_FOUND, remark="not known")
        return _offset(offset)

    def _update_offset(self, end: End, command: Command) -> Command:
        asked = headers.read(command, UpdateConsumerOffsetHeader)
        queue = Queue(asked.topic, self.name, asked.queue_id)
        self._commit(queue, asked.commit_offset, end.process)
        return Command(ResponseCode.SUCCESS)

    def _max_offset(self, end: End, command: Command) -> Command:
        asked = headers.read(command, MaxOffsetHeader)
        return _offset(self.topics[asked.topic][asked.queue_id].end)

    # Locks

    def _lock(self, end: End, command: Command) -> Command:
        body = javajson.decode(command.body, LockBody, "lock")
        had: list[MessageQueue] = []
        for each in body.mq_set:
            queue = Queue(each.topic, self.name, each.queue_id)
            if self.owner(body.consumer_group, queue) in (None, body.client_id):
                self._locks[body.consumer_group, queue] = (body.client_id, _now_s())
                had.append(each)
        return Command(ResponseCode.SUCCESS, body=javajson.encode(LockedBody(lock_ok_mq_set=had)))

    def _unlock(self, end: End, command: Command) -> Command:
        body = javajson.decode(command.body, LockBody, "unlock")
        for each in body.mq_set:
            queue = Queue(each.topic, self.name, each.queue_id)
            if self.owner(body.consumer_group, queue) == body.client_id:
                del self._locks[body.consumer_group, queue]
        return Command(ResponseCode.SUCCESS)

    # Messages that come again

    def _send_back(self, end: End, command: Command) -> Command:
        asked = headers.read(command, SendBackHeader)
        message = self.cluster.by_position[asked.offset]
        retries_max = 16 if asked.max_reconsume_times is None else asked.max_reconsume_times
        self._again_or_dead(message, asked.group, message.retries, retries_max, asked.delay_level)
        return Command(ResponseCode.SUCCESS)

    def _send(self, end: End, command: Command) -> Command:
        """A member sends a message to its retry topic by itself."""
        asked = headers.read(command, SendHeaderV2)
        assert asked.topic.startswith(RETRY_PREFIX), asked.topic
        group = asked.topic.removeprefix(RETRY_PREFIX)
        properties = parse_properties((asked.properties or "").encode())
        number = int(bytes(command.body))
        message = Stored(
            number=number,
            queue=Queue(asked.topic, self.name, 0),
            offset=0,
            position=0,
            topic=properties[names.RETRY_TOPIC],
            tag=properties[names.TAGS],
            retries=0,
            stored_ms=0,
        )
        retries = (asked.reconsume_times or 0) - 1
        retries_max = 16 if asked.max_reconsume_times is None else asked.max_reconsume_times
        level = int(properties[names.DELAY_LEVEL])
        self._again_or_dead(message, group, retries, retries_max, level)
        sent = SentHeader(msg_id=f"S{number}", queue_id=0, queue_offset=0)
        return Command(ResponseCode.SUCCESS, headers.write(sent))

    def _again_or_dead(
        self, message: Stored, group: str, retries: int, retries_max: int, level: int
    ) -> None:
        if level < 0 or retries >= retries_max >= 0:
            self.bury(message, group)
            return
        seconds = LEVELS_S[min(level or 3 + retries, len(LEVELS_S)) - 1]
        self.return_later(message, group, retries + 1, seconds)


def _offset(offset: int) -> Command:
    return Command(ResponseCode.SUCCESS, headers.write(OffsetAnswer(offset=offset)))


def _named(queue: Queue) -> MessageQueue:
    return MessageQueue(broker_name=queue.broker, queue_id=queue.id, topic=queue.topic)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
