"""Topics: 17, 18 create or change, 215 delete, 351 describe, 202 bounds, 21 all, 300 readers, 305.

Behaviour
- 18 is 17 for many topics: all are checked before the first is changed.
- 17 creates a topic, or changes it to match. Read and write queues may differ, and may shrink; the
  queues stay, and Kafka clients still see as many partitions as there ever were.
- 215 deletes a topic with all it holds; for one that does not exist it succeeds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from rockgate.gateway.remoting.groups.clients import ClientGroup, Clients
from rockgate.gateway.remoting.messages.puller import Puller
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.server.long_answers import TURN_SECONDS, joined, keyed
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry, check_name, describe
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.gateway.storage.durability import Durability
from rockgate.gateway.transcode import names
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.clients import DataVersion
from rockgate.protocol.remoting.bodies.queues import MessageQueue, QueueBounds
from rockgate.protocol.remoting.bodies.topics import TopicConfig, TopicConfigList, TopicList
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers import topics as fields
from rockgate.store.api.queues import Queue
from rockgate.store.api.store import ReadOnlyStore
from rockgate.store.api.topics import Topic

PERMISSION_MAX = 7
LIST_BYTES_MAX = 1 << 20
"""Maximum size of one list: some five thousand topics."""


class TopicRequests:
    """Processors of topic requests."""

    def __init__(
        self,
        *,
        store: ReadOnlyStore,
        topics: TopicRegistry,
        clients: Clients,
        puller: Puller,
        durability: Durability,
        broker_name: str,
        put_per_second: Callable[[Topic], float] = lambda topic: 0.0,
    ) -> None:
        self._put_per_second = put_per_second
        self._queues = store.queues
        self._progress = store.progress
        self._store_topics = store.topics
        self._topics = topics
        self._clients = clients
        self._puller = puller
        self._durability = durability
        self._broker_name = broker_name

    def update(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """17: create or update a topic."""
        asked = headers.read(command, fields.CreateTopicHeader)
        self._check(asked.topic, asked.perm)
        topic = self._topics.set(
            asked.topic, asked.read_queue_nums, asked.write_queue_nums, asked.perm
        )
        if asked.attributes:
            self._topics.set_attributes(topic, asked.attributes)
        return self._durability.after_changes(Command(ResponseCode.SUCCESS))

    def update_many(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """18: create or update topics."""
        what = "UPDATE_AND_CREATE_TOPIC_LIST"
        asked = javajson.decode(command.body, TopicConfigList, what, size_max=LIST_BYTES_MAX)
        for each in asked.topic_config_list:
            check_name(each.topic_name)
            self._check(each.topic_name, each.perm)
        return self._update_many(asked.topic_config_list)

    async def _update_many(self, configs: Sequence[TopicConfig]) -> Reply:
        share = TimeSlice(TURN_SECONDS)
        for each in configs:
            topic = self._topics.set(
                each.topic_name, each.read_queue_nums, each.write_queue_nums, each.perm
            )
            if each.attributes:
                pairs = ",".join(f"{name}={value}" for name, value in each.attributes.items())
                self._topics.set_attributes(topic, pairs)
            if share.is_over():
                await asyncio.sleep(0)
                share = TimeSlice(TURN_SECONDS)
        answer = self._durability.after_changes(Command(ResponseCode.SUCCESS))
        return answer if isinstance(answer, Command | list) else await answer

    def _check(self, name: str, permission: int) -> None:
        if self._topics.is_system(name):
            raise Refused(
                ResponseCode.INVALID_PARAMETER, f"The topic[{name}] is conflict with system topic."
            )
        if not 0 <= permission <= PERMISSION_MAX:
            raise Refused(
                ResponseCode.INVALID_PARAMETER, f"Permission {permission} must be from 0 to 7."
            )

    def delete(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """215: delete a topic."""
        self._topics.delete(headers.read(command, fields.TopicHeader).topic)
        return self._durability.after_changes(Command(ResponseCode.SUCCESS))

    def config(self, command: Command, caller: Caller) -> Reply:
        """351: describe a topic."""
        topic = self._topics.get(headers.read(command, fields.TopicHeader).topic)
        return Command(ResponseCode.SUCCESS, body=javajson.encode(describe(topic)))

    def all_configs(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """21: describe every topic."""
        return self._all_configs()

    async def _all_configs(self) -> Reply:
        version = DataVersion(counter=self._store_topics.version)
        body = await joined(
            b'{"dataVersion":%b,"topicConfigTable":{' % javajson.encode(version),
            (keyed(config.topic_name, config) for config in map(describe, self._topics)),
            b"}}",
            instead="request topics one by one (GET_TOPIC_CONFIG)",
        )
        return Command(ResponseCode.SUCCESS, body=body)

    def stats(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """202: the offsets of each queue."""
        return self._stats(self._topics.get(headers.read(command, fields.TopicHeader).topic))

    async def _stats(self, topic: Topic) -> Reply:
        body = await joined(
            b'{"offsetTable":{',
            (self._bounds(topic, queue) for queue in self._queues.of(topic.id)),
            b'},"topicPutTps":%b}' % javajson.encode(self._put_per_second(topic)),
            instead="request queues one by one (GET_MAX_OFFSET, GET_MIN_OFFSET)",
        )
        return Command(ResponseCode.SUCCESS, body=body)

    def _bounds(self, topic: Topic, queue: Queue) -> bytes:
        end = self._puller.end(queue)
        last = queue.find(end - 1) if end > queue.log_start else None
        return keyed(
            MessageQueue(
                broker_name=self._broker_name,
                queue_id=queue.queue_id,
                topic=names.to_rocketmq(topic.name),
            ),
            QueueBounds(
                last_update_timestamp=0 if last is None else last.store_ms,
                max_offset=end,
                min_offset=queue.log_start,
            ),
        )

    def readers(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """300: the groups that read a topic, connected or with committed offsets."""
        return self._readers(headers.read(command, fields.TopicHeader).topic)

    async def _readers(self, name: str) -> Reply:
        topic = self._topics.find(name)
        have = () if topic is None else tuple(self._progress.groups_of(topic.id))
        rows = self._reading(name, tuple(self._clients.consumer_groups()), have)
        body = await joined(b'{"groupList":[', rows, b"]}", instead="there are too many")
        return Command(ResponseCode.SUCCESS, body=body)

    @staticmethod
    def _reading(topic: str, groups: Iterable[ClientGroup], have: Iterable[str]) -> Iterator[bytes]:
        """The names of groups that read a topic, connected or with committed offsets."""
        seen: set[str] = set()
        for group in groups:
            if topic in group.subscriptions:
                seen.add(group.name)
                yield javajson.encode(names.to_rocketmq(group.name))
        for name in have:
            if name not in seen:
                yield javajson.encode(names.to_rocketmq(name))

    def system(self, command: Command, caller: Caller) -> Reply:
        """305: the system topics."""
        body = TopicList(topic_list=self._topics.system_names())
        return Command(ResponseCode.SUCCESS, body=javajson.encode(body))
