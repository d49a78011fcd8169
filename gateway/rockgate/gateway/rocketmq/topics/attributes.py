"""Configs of topics as RocketMQ has them: attributes, since 5.0.

    message.type      NORMAL, FIFO, DELAY, TRANSACTION, MIXED
    cleanup.policy    Kafka's delete and compact are DELETE and COMPACTION
    queue.type        SimpleCQ, or BatchCQ; it is chosen when a topic is created

Topics of 4.9 have none. Everything else that Kafka knows is the brokers' own setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.rocketmq.cluster.brokers import Brokers, checked
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.remoting import javajson
from rockgate.protocol.remoting.bodies.topics import TopicConfig
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.errors import MalformedRequest
from rockgate.protocol.remoting.headers.topics import TopicHeader

MESSAGE_TYPE: Final = "message.type"
CLEANUP_POLICY: Final = "cleanup.policy"
QUEUE_TYPE: Final = "queue.type"
BATCH_QUEUES: Final = "BatchCQ"
SIMPLE_QUEUES: Final = "SimpleCQ"
_QUEUE_TYPES: Final = frozenset((BATCH_QUEUES, SIMPLE_QUEUES))
DELAYING_TYPES: Final = frozenset(("DELAY", "MIXED"))
SIZE_MAX: Final = 1 << 20
_POLICIES: Final = {"delete": "DELETE", "compact": "COMPACTION"}
_KAFKA_POLICIES: Final = {ours: kafka for kafka, ours in _POLICIES.items()}


async def read_config(brokers: Brokers, wire: str, broker: str) -> Mapping[str, str] | None:
    """The configs of a topic at a broker; None if its topics have none. BrokerError if unknown."""
    header = TopicHeader(topic=wire)
    answer = await brokers.ask(broker, RequestCode.GET_TOPIC_CONFIG, header)
    if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
        return None
    if answer.code == ResponseCode.TOPIC_NOT_EXIST:
        return {}
    try:
        found = javajson.decode(checked(answer).body, TopicConfig, "351", size_max=SIZE_MAX)
    except MalformedRequest:
        return {}
    config: dict[str, str] = {}
    for name, value in found.attributes.items():
        name = name.lstrip("+")
        if name == MESSAGE_TYPE and value not in ("UNSPECIFIED", ""):
            config[name] = value
        elif name == CLEANUP_POLICY and value in _KAFKA_POLICIES:
            config[name] = _KAFKA_POLICIES[value]
        elif name == QUEUE_TYPE and value in _QUEUE_TYPES:
            config[name] = value
    return config


def to_attributes(config: Mapping[str, str], *, is_new: bool) -> str | None:
    """Configs as brokers read them; INVALID_CONFIG if they have no such attribute."""
    parts: list[str] = []
    for name, value in sorted(config.items()):
        if name == MESSAGE_TYPE:
            parts.append(f"+{MESSAGE_TYPE}={value}")
        elif name == CLEANUP_POLICY and is_new and value in _POLICIES:
            parts.append(f"+{CLEANUP_POLICY}={_POLICIES[value]}")
        elif name == QUEUE_TYPE and is_new and value in _QUEUE_TYPES:
            parts.append(f"+{QUEUE_TYPE}={value}")
        else:
            raise RequestError(
                ErrorCode.INVALID_CONFIG,
                f"Config {name} cannot be set to '{value[:80]}' for a topic of a RocketMQ cluster. "
                "A new topic takes message.type, cleanup.policy and queue.type.",
            )
    return ",".join(parts) or None
