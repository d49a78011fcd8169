"""Sending one message over either wire, with a key, headers, a tag and a delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import time
from typing import Final

from rockgate.cli.admin.topic_settings import check_delays
from rockgate.cli.client.kafka.cluster import Cluster
from rockgate.cli.client.kafka.errors import Unusable
from rockgate.cli.client.produce.producer import Outgoing, Producer
from rockgate.cli.client.remoting.connection import RemotingConnection
from rockgate.protocol.entry import pack_properties
from rockgate.protocol.kafka.records.record import Header
from rockgate.protocol.remoting import headers as header_fields
from rockgate.protocol.remoting.headers.send import SendHeader, SentHeader
from rockgate.protocol.remoting.properties import (
    KEYS,
    START_DELIVER_TIME,
    TAGS,
    TIMER_DELIVER_MS,
)
from rockgate.sdk.admin import one_broker

GROUP: Final = "rockgate-console"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """What to send; without a partition the key, or the server, chooses one."""

    topic: str
    value: bytes | None
    key: str | None = None
    headers: Sequence[tuple[str, str]] = ()
    tag: str | None = None
    deliver_ms: int | None = None
    """When to deliver it, in milliseconds since 1970; None is at once."""
    partition: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """Where a message was stored, or waits; -1 for what the wire does not say."""

    topic: str
    partition: int
    offset: int
    message_id: str | None = None
    recall_handle: str | None = None


async def send_kafka(cluster: Cluster, message: NewMessage) -> SentMessage:
    """Over Kafka's wire, acknowledged by all replicas; the topic must exist."""
    await cluster.topics([message.topic])
    if message.deliver_ms is not None:
        await check_delays(cluster, message.topic)
    found: list[Header] = [(name, value.encode()) for name, value in message.headers]
    if message.tag:
        found.append((TAGS, message.tag.encode()))
    if message.deliver_ms is not None:
        found.append((START_DELIVER_TIME, str(message.deliver_ms).encode()))
    producer = Producer(cluster, message.topic)
    await producer.open()
    producer.add(
        Outgoing(
            key=None if message.key is None else message.key.encode(),
            value=message.value,
            headers=tuple(found),
            partition=message.partition,
        )
    )
    await producer.flush()
    ((partition, sent),) = producer.sent.items()
    return SentMessage(topic=message.topic, partition=partition, offset=sent.first_offset)


async def send_remoting(remoting: RemotingConnection, message: NewMessage) -> SentMessage:
    """Over RocketMQ's wire; the topic must exist."""
    if message.value is None:
        raise Unusable("A message of RocketMQ's wire needs a body")
    properties: dict[str, str] = dict(message.headers)
    if message.key:
        properties[KEYS] = message.key
    if message.tag:
        properties[TAGS] = message.tag
    if message.deliver_ms is not None:
        properties[TIMER_DELIVER_MS] = str(message.deliver_ms)
    header = SendHeader(
        producer_group=GROUP,
        topic=message.topic,
        default_topic="",
        queue_id=-1 if message.partition is None else message.partition,
        sys_flag=0,
        born_timestamp=int(time() * 1000),
        flag=0,
        properties=_packed(properties),
    )
    answer = await one_broker.send(remoting.command, header, message.value)
    sent = header_fields.read(answer, SentHeader)
    return SentMessage(
        topic=message.topic,
        partition=sent.queue_id,
        offset=sent.queue_offset,
        message_id=sent.msg_id,
        recall_handle=sent.recall_handle,
    )


def _packed(properties: Mapping[str, str]) -> str:
    try:
        return pack_properties(properties.items()).decode()
    except ValueError as error:
        raise Unusable(f"Cannot send these headers: {error}") from None
