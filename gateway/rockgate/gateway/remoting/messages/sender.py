"""Sends: validation, message type, and the append.

`classify` is the one place that distinguishes ordinary, delayed and half messages; one for a retry
topic is recognized by its topic. Parts that store those differently register for their kind with
`Sender.on_kind`.

What a send is answered with, as RocketMQ's broker does:

    SUCCESS                 in the log, and on disk where the flush setting says so
    FLUSH_DISK_TIMEOUT      in the log, but not known to be on disk in time
    MESSAGE_ILLEGAL         a topic, body or properties that no message can have
    NO_PERMISSION           the topic, or for now this server, accepts no messages
    TOPIC_NOT_EXIST         and it could not be created
    SERVICE_NOT_AVAILABLE   the store is full or stopping
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TypeAlias

from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.topics.topic_registry import NO_SENDING, TopicRegistry, check_name
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.transcode.dictionary import SIZE_MAX, record_key
from rockgate.protocol.entry import (
    COMPRESSED,
    MULTI_TAGS,
    PROPERTIES_SIZE_MAX,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
    Buffer,
    Contents,
    get_property,
)
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.compression import KIND_MASK
from rockgate.protocol.remoting.headers.send import SendHeader, SendHeaderV2
from rockgate.protocol.remoting.message import decode_batch
from rockgate.protocol.remoting.properties import DELAYING, DELAYING_PART
from rockgate.protocol.remoting.system_topics import RETRY_PREFIX
from rockgate.store.api.append import NOTHING_ELSE, Appended, AppendedMessages, Appender, Draft
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import WRITE, Topic

Header: TypeAlias = SendHeader | SendHeaderV2

CLIENT_FLAGS = COMPRESSED | MULTI_TAGS | KIND_MASK
"""The bits of sysFlag that a client may set: the others describe the stored entry."""
_TRANSACTION = TRANSACTION_ROLLBACK
_new = tuple.__new__  # what NamedTuple._make calls, without its own call in between
_DELAYING_PART = DELAYING_PART.encode()
_DELAYING = tuple(sorted(name.encode() for name in DELAYING))
_NO_WAIT = b"WAIT\x01false"
_ENDS = {b"\x02", b""}
"""The end of properties: a separator, unless they are empty."""
BATCH_COUNT_MAX = 4_096


class MessageKind(Enum):
    """How a sent message is stored."""

    ORDINARY = "ordinary"
    DELAYED = "delayed"
    HALF = "half"
    RETRY = "retry"


def classify(sys_flag: int, properties: bytes) -> MessageKind:
    """Determine the kind, by the client's properties and flags."""
    if sys_flag & _TRANSACTION == TRANSACTION_PREPARED:
        return MessageKind.HALF
    if _DELAYING_PART not in properties:
        return MessageKind.ORDINARY
    is_delayed = any(get_property(properties, name) is not None for name in _DELAYING)
    return MessageKind.DELAYED if is_delayed else MessageKind.ORDINARY


class Incoming:
    """A validated message that is not yet appended."""

    __slots__ = ("body", "caller", "header", "properties", "queue", "topic")

    def __init__(
        self,
        topic: Topic,
        queue: Queue,
        header: Header,
        body: Buffer,
        properties: bytes,
        caller: Caller,
    ) -> None:
        self.topic = topic
        self.queue = queue
        self.header = header
        self.body = body
        self.properties = properties
        self.caller = caller


Taken: TypeAlias = Appended | Awaitable[Appended]
OnKind: TypeAlias = Callable[[Incoming], Taken]


class Sender:
    """Appends what clients send."""

    def __init__(
        self,
        *,
        appender: Appender,
        queues: Queues,
        topics: TopicRegistry,
        durability: Durability,
        body_bytes_max: int,
        asks: Callable[[str, Caller], None] = lambda client_id, caller: None,
    ) -> None:
        self._appender = appender
        self._queues = queues
        self._topics = topics
        self._durability = durability
        self._asks = asks
        self._body_bytes_max = body_bytes_max
        self._request_tail = f"CLUSTER\x01{topics.cluster_name}\x02".encode()
        self.on_kind: dict[MessageKind, OnKind] = {}
        """Handlers of messages that are not ordinary; without one they are rejected."""

    def configure(self, config: RemotingConfig) -> None:
        """Take messages of another size from now on."""
        self._body_bytes_max = config.message_bytes_max

    def take(self, header: Header, body: Buffer, caller: Caller) -> Taken:
        """Append one message; the result may wait for the disk."""
        properties = self._check(header, body)
        topic, queue = self._queue(header)
        if topic.policy.compacts and record_key(properties) is None:
            raise _no_key()
        kind = classify(header.sys_flag, properties)
        if header.topic.startswith(RETRY_PREFIX) and kind is not MessageKind.HALF:
            kind = MessageKind.RETRY
        if kind is not MessageKind.ORDINARY:
            return self._other(kind, Incoming(topic, queue, header, body, properties, caller))
        if b"REPLY_TO_CLIENT\x01" in properties:
            properties = self._request(properties, caller)
        host = caller.peer.host
        fields = (
            queue.topic,
            queue.queue_id,
            queue.next_offset,
            body,
            properties,
            0,
            header.born_timestamp,
            host.packed,
            header.flag,
            header.sys_flag & CLIENT_FLAGS | host.flag,
            header.reconsume_times or 0,
            *NOTHING_ELSE,
        )
        appended = self._appender.placed(queue, _new(Draft, fields))
        if queue.is_sync and _NO_WAIT not in properties:
            return self._durability.after(appended.end, appended)
        return appended

    def take_batch(
        self, header: Header, body: Buffer, caller: Caller
    ) -> AppendedMessages | Awaitable[AppendedMessages]:
        """Append the messages of a batch atomically."""
        if len(body) > self._body_bytes_max:
            raise _too_large(len(body), self._body_bytes_max)
        if header.topic.startswith(RETRY_PREFIX):
            raise Refused(
                ResponseCode.MESSAGE_ILLEGAL, "batch request does not support retry group"
            )
        if header.sys_flag & _TRANSACTION == TRANSACTION_PREPARED:
            raise _not_in_batches()
        messages = decode_batch(body, count_max=BATCH_COUNT_MAX)
        if not messages.flags:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, "Batch is empty.")
        topic, queue = self._queue(header)
        if topic.policy.compacts and None in map(record_key, messages.properties):
            raise _no_key()
        host = caller.peer.host
        appended = self._appender.messages(
            queue,
            _checked(messages),
            born_ms=header.born_timestamp,
            born_host=host.packed,
            sys_flag=header.sys_flag & CLIENT_FLAGS | host.flag,
        )
        if queue.is_sync:
            return self._durability.after(appended.end, appended)
        return appended

    def _request(self, properties: bytes, caller: Caller) -> bytes:
        """Note the requester; replies find the cluster in the request's properties."""
        asker = get_property(properties, b"REPLY_TO_CLIENT")
        # A reply has the property too, and comes from another client.
        if asker and get_property(properties, b"MSG_TYPE") != b"reply":
            self._asks(asker.decode("utf-8", "replace"), caller)
        return properties + self._request_tail

    def _other(self, kind: MessageKind, incoming: Incoming) -> Taken:
        taker = self.on_kind.get(kind)
        if taker is None:
            raise Refused(
                ResponseCode.MESSAGE_ILLEGAL,
                f"{kind.value.capitalize()} messages are not supported.",
            )
        return taker(incoming)

    def _check(self, header: Header, body: Buffer) -> bytes:
        """Reject an invalid message; returns the packed properties."""
        if not body:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, "Body is empty.")
        if len(body) > self._body_bytes_max:
            raise _too_large(len(body), self._body_bytes_max)
        text = header.properties
        if not text:
            return b""
        properties = text.encode("utf-8", "surrogatepass")
        # A message that is sent back already has some of the added properties.
        is_again = header.topic.startswith(RETRY_PREFIX)
        _check_size(len(properties), PROPERTIES_SIZE_MAX if is_again else SIZE_MAX)
        return properties if properties[-1] == 2 else properties + b"\x02"

    def find_queue(self, topic_name: str, queue_id: int) -> Queue | None:
        """Return a queue by name and number; None if there is no such queue."""
        topic = self._topics.find(topic_name)
        return None if topic is None else self._queues.find(topic.id, max(0, queue_id))

    def _queue(self, header: Header) -> tuple[Topic, Queue]:
        """The topic and queue of a send."""
        topic = self._topics.find(header.topic)
        if topic is None:
            check_name(header.topic)
            topic = self._topics.for_send(
                header.topic, header.default_topic, header.default_topic_queue_nums
            )
        if topic.is_internal and header.topic in NO_SENDING:
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"Sending message to topic[{header.topic}] is forbidden.",
            )
        if not topic.permission & WRITE:
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"the topic[{header.topic}] sending message is forbidden",
            )
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = random.randrange(topic.write_queues)
        elif queue_id >= max(topic.write_queues, topic.read_queues):
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"request queueId[{queue_id}] is illegal, topic {header.topic} has "
                f"{topic.write_queues} write queues",
            )
        return topic, self._queues.of(topic.id)[queue_id]


def _checked(messages: Contents) -> Contents:
    """Reject invalid messages of a batch; returns them with their properties terminated."""
    flags, bodies, properties, is_alike = messages
    if not all(bodies[:1] if is_alike else bodies):
        raise Refused(ResponseCode.MESSAGE_ILLEGAL, "A message of the batch has an empty body.")
    _check_size(max(map(len, properties), default=0), SIZE_MAX)
    joined = b"".join(properties)
    # Usually one check is enough for all of them.
    if _DELAYING_PART in joined and any(
        classify(0, each) is not MessageKind.ORDINARY for each in properties
    ):
        raise _not_in_batches()
    width = len(properties[0]) if is_alike else 0
    if width and joined[width - 1 :: width].count(2) == len(properties):
        return messages
    if {each[-1:] for each in properties} <= _ENDS:
        return messages
    ended = [each + b"\x02" if each and each[-1] != 2 else each for each in properties]
    return Contents(flags, bodies, ended)


def _check_size(size: int, size_max: int) -> None:
    """Reject properties that leave no space for those that are added later."""
    if size > size_max:
        raise Refused(
            ResponseCode.MESSAGE_ILLEGAL,
            f"Properties are {size:,} bytes; the maximum is {size_max:,}.",
        )


def _not_in_batches() -> Refused:
    return Refused(
        ResponseCode.MESSAGE_ILLEGAL, "A batch must not contain delayed or half messages."
    )


def _no_key() -> Refused:
    return Refused(ResponseCode.MESSAGE_ILLEGAL, "Required message key is missing")


def _too_large(size: int, size_max: int) -> Refused:
    return Refused(
        ResponseCode.MESSAGE_ILLEGAL, f"Body is {size:,} bytes; the maximum is {size_max:,}."
    )
