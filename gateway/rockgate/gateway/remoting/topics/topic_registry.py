"""Topics as RocketMQ clients see them: names, read and write queues, creation on send.

Names are RocketMQ's here; `transcode.names` turns them into the store's. The system topics of a
RocketMQ broker are there from the start, and internal on Kafka's side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.topics.config import TopicsConfig
from rockgate.gateway.topics.policy import CLEANUP_POLICY
from rockgate.gateway.transcode import names
from rockgate.protocol.remoting.bodies.topics import TopicConfig
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.system_topics import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    CHECKED_OUT_TOPIC,
    DLQ_PREFIX,
    HALF_DECISIONS_TOPIC,
    HALF_TOPIC,
    LEVELS_TOPIC,
    OFFSET_MOVED_TOPIC,
    RETRY_PREFIX,
    SELF_TEST_TOPIC,
    SYSTEM_PREFIX,
    TIMES_TOPIC,
    TRACE_TOPIC,
)
from rockgate.store.api.topics import QUEUE_COUNT_MAX, READ, WRITE, NewTopic, Topic, Topics
from rockgate.store.errors import InvalidTopic

INHERIT = 1
AUTO_CREATE_QUEUES = 8
MESSAGE_TYPE = "message.type"
_POLICIES = {"COMPACTION": "compact", "DELETE": "delete"}
"""Values of the attribute `cleanup.policy`, and of the config of that name."""

NO_SENDING = frozenset(
    (
        LEVELS_TOPIC,
        TIMES_TOPIC,
        HALF_TOPIC,
        HALF_DECISIONS_TOPIC,
        CHECKED_OUT_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
    )
)
"""Topics that only the server writes to."""
_LEGAL = re.compile(r"[%|a-zA-Z0-9_-]+")


class TopicRegistry:
    """Finds, creates and describes topics for RocketMQ clients."""

    def __init__(
        self, topics: Topics, config: TopicsConfig, *, broker_name: str, cluster_name: str
    ) -> None:
        self._topics = topics
        self._config = config
        self._queue_count = sum(topic.queue_count for topic in topics)
        topics.on_created.append(self._created)
        topics.on_deleted.append(self._deleted)
        topics.on_grown.append(self._grown)
        self.cluster_name = cluster_name
        self.reply_topic = f"{cluster_name}_REPLY_TOPIC"
        self._system = {
            AUTO_CREATE_TOPIC: (AUTO_CREATE_QUEUES, READ | WRITE | INHERIT),
            SELF_TEST_TOPIC: (1, READ | WRITE),
            BENCHMARK_TOPIC: (16, READ | WRITE),
            OFFSET_MOVED_TOPIC: (1, READ | WRITE),
            TRACE_TOPIC: (1, READ | WRITE),
            CHECKED_OUT_TOPIC: (1, READ | WRITE),
            LEVELS_TOPIC: (18, READ | WRITE),
            TIMES_TOPIC: (1, READ | WRITE),
            HALF_TOPIC: (1, READ | WRITE),
            HALF_DECISIONS_TOPIC: (1, READ | WRITE),
            cluster_name: (16, READ | WRITE | INHERIT),
            broker_name: (1, READ | WRITE | INHERIT),
            self.reply_topic: (1, READ | WRITE),
        }

    def make_system_topics(self) -> None:
        """Create the missing system topics."""
        news = [
            NewTopic(name=name, queue_count=count, permission=permission, is_internal=True)
            for name, (count, permission) in self._system.items()
            if self._topics.find(names.to_store(name)) is None
        ]
        if news:
            self._topics.create_many(news)

    def is_system(self, name: str) -> bool:
        """Whether a name is that of a system topic."""
        return name in self._system or name.startswith(SYSTEM_PREFIX)

    def system_names(self) -> list[str]:
        """RocketMQ's system topics."""
        return sorted(self._system)

    # Finding

    def find(self, name: str) -> Topic | None:
        """A topic by RocketMQ's name; a name with a dot is never found."""
        if "." in name:
            return None
        return self._topics.find(names.to_store(name) if "|" in name else name)

    def get(self, name: str) -> Topic:
        """A topic by RocketMQ's name; TOPIC_NOT_EXIST if there is none."""
        topic = self.find(name)
        if topic is None:
            raise Refused(
                ResponseCode.TOPIC_NOT_EXIST, f"the topic {name} not exist, apply first please!"
            )
        return topic

    def __iter__(self) -> Iterator[Topic]:
        return (topic for topic in self._topics if names.is_visible(topic.name))

    # Creating

    def for_send(self, name: str, default_topic: str, queue_count: int) -> Topic:
        """The topic that a send names, created if that is allowed."""
        topic = self.find(name)
        if topic is not None:
            return topic
        if name.startswith((RETRY_PREFIX, DLQ_PREFIX)):
            return self.ensure(name, 1, READ | WRITE)
        default = self.find(default_topic) if self._config.auto_create else None
        if default is None or not default.permission & INHERIT:
            raise Refused(
                ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist, apply first please!"
            )
        count = max(1, min(queue_count, default.write_queues))
        return self.ensure(name, count, default.permission & ~INHERIT)

    def ensure(self, name: str, queue_count: int, permission: int) -> Topic:
        """Return a topic, which is created if it does not exist."""
        topic = self.find(name)
        if topic is not None:
            return topic
        check_name(name)
        self._check_room(queue_count)
        is_internal = self.is_system(name)
        return self._topics.create(
            NewTopic(
                name=names.to_store(name),
                queue_count=queue_count,
                permission=permission,
                is_internal=is_internal,
            )
        )

    def ensure_queues(self, name: str, count: int) -> Topic:
        """A retry or dead-letter topic with at least that many queues."""
        count = max(1, count)
        topic = self.ensure(name, count, READ | WRITE)
        if topic.queue_count < count:
            return self.set(name, count, count, topic.permission)
        return topic

    def _created(self, topic: Topic) -> None:
        self._queue_count += topic.queue_count

    def _deleted(self, topic: Topic) -> None:
        self._queue_count -= topic.queue_count

    def _grown(self, topic: Topic, had: int) -> None:
        self._queue_count += topic.queue_count - had

    def _check_room(self, count: int) -> None:
        there = self._queue_count
        if there + count > self._config.partitions_max:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"Creating {count:,} queues would exceed topics.partitions_max "
                f"({self._config.partitions_max:,}); there are {there:,}.",
            )

    def set(self, name: str, read: int, write: int, permission: int) -> Topic:
        """Create a topic with these settings, or update it."""
        for what, count in (("readQueueNums", read), ("writeQueueNums", write)):
            if not 0 < count <= QUEUE_COUNT_MAX:
                raise Refused(
                    ResponseCode.INVALID_PARAMETER,
                    f"{what} must be from 1 to {QUEUE_COUNT_MAX:,}, not {count}.",
                )
        topic = self.ensure(name, max(read, write), permission)
        grows = max(read, write) - topic.queue_count
        if grows > 0:
            self._check_room(grows)
        self._topics.set_queues({topic: (read, write)})
        self._topics.set_permission({topic: permission})
        return topic

    def set_attributes(self, topic: Topic, attributes: str) -> None:
        """Parse attributes such as `+message.type=DELAY`; others are rejected by name."""
        config = dict(topic.config)
        for item in filter(None, attributes.split(",")):
            sign, _, value = item.strip().partition("=")
            name = sign.lstrip("+-")
            if name not in (MESSAGE_TYPE, CLEANUP_POLICY):
                raise Refused(ResponseCode.INVALID_PARAMETER, f"Unknown attribute {sign!r}.")
            if name == CLEANUP_POLICY and not sign.startswith("-"):
                if value not in _POLICIES:
                    reason = f"{CLEANUP_POLICY} must be DELETE or COMPACTION, not {value[:40]!r}."
                    raise Refused(ResponseCode.INVALID_PARAMETER, reason)
                value = _POLICIES[value]
            if sign.startswith("-"):
                config.pop(name, None)
            else:
                config[name] = value
        self._topics.set_config({topic: config})

    def delete(self, name: str) -> None:
        """Delete a topic; deleting a missing one succeeds."""
        if self.is_system(name):
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"The topic[{name}] is conflict with system topic."
            )
        topic = self.find(name)
        if topic is not None:
            self._topics.delete([topic])


def is_legal(name: str) -> bool:
    """Whether a topic's name is valid in RocketMQ."""
    return len(name.encode()) <= names.NAME_SIZE_MAX and _LEGAL.fullmatch(name) is not None


def check_name(name: str) -> None:
    """Reject a name that is invalid in RocketMQ."""
    if not is_legal(name):
        raise InvalidTopic(
            f"Topic name {name[:80]!r} is invalid: it must have 1 to "
            f"{names.NAME_SIZE_MAX} letters, digits, '_', '-', '%' or '|'."
        )


def describe(topic: Topic) -> TopicConfig:
    """A topic as RocketMQ describes it."""
    message_type = topic.config.get(MESSAGE_TYPE)
    attributes = {MESSAGE_TYPE: message_type} if message_type else {}
    if topic.policy.compacts:
        attributes[CLEANUP_POLICY] = "COMPACTION"
    return TopicConfig(
        topic_name=names.to_rocketmq(topic.name),
        attributes=attributes,
        perm=topic.permission,
        read_queue_nums=topic.read_queues,
        write_queue_nums=topic.write_queues,
    )
