"""The topics of a cluster as Kafka's handlers see and change them.

A topic is its route and its partition table. The table lies in the name servers' key-value configs,
in the namespace `rockgate`, under the topic's name; the longest one counts. A topic without a table
gets one from its route, brokers by name; queues that a route has and the table does not are added
at its end. So a topic whose brokers are all away is still there, with all its partitions.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from rockgate.gateway.kafka.request import names as kafka_names
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.topics.catalog import NO_REFUSALS, NewTopic, Refusal, Refusals
from rockgate.gateway.rocketmq.cluster.brokers import Brokers, checked
from rockgate.gateway.rocketmq.cluster.errors import BrokerError, BrokerLost, BrokerRefused
from rockgate.gateway.rocketmq.topics.attributes import read_config, to_attributes
from rockgate.gateway.rocketmq.topics.partitions import (
    PARTITIONS_MAX,
    PartitionTable,
    is_broker,
)
from rockgate.gateway.rocketmq.topics.topic import (
    READABLE,
    WRITABLE,
    ClusterTopic,
    wire_name,
)
from rockgate.gateway.rocketmq.topics.written import WrittenTables
from rockgate.gateway.transcode import names
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.remoting.bodies.nameserver import RouteData
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.headers.nameserver import DeleteTopicHeader
from rockgate.protocol.remoting.headers.topics import CreateTopicHeader, TopicHeader
from rockgate.protocol.remoting.system_topics import (
    AUTO_CREATE_TOPIC,
    DLQ_PREFIX,
    RETRY_PREFIX,
    SYSTEM_PREFIX,
)

CONFIG_S: Final = 60.0
"""How old the configs of a topic may be."""
REFRESH_S: Final = 10.0
"""How often routes are asked for again, and how old the list of topics may be."""
ASKS_MAX: Final = 16
"""Routes that are asked for at the same time."""
_IDS: Final = uuid.UUID("0f6a2f4e-5a0c-4d3b-9c5e-6d4d2d3f7b11")
_OWN: Final = (RETRY_PREFIX, DLQ_PREFIX, SYSTEM_PREFIX, "RMQ_SYS_")

log = logging.getLogger(__name__)


class Cluster(Brokers, Protocol):
    """What the catalog asks of brokers and name servers."""

    @property
    def masters(self) -> list[str]:
        """The names of masters that are there."""
        ...

    @property
    def readable(self) -> set[str]:
        """The brokers without a master that have a slave which may be read."""
        ...

    @property
    def cluster(self) -> str:
        """The name of the cluster."""
        ...

    def version(self, broker: str) -> int:
        """The version of RocketMQ that a master reports; 0 if it has not answered yet."""
        ...

    async def find_masters(self) -> None:
        """Learn where all masters are."""
        ...

    async def route(self, topic: str) -> RouteData | None:
        """The route of a topic, if it has one."""
        ...

    async def topics(self) -> list[str]:
        """The names of all topics."""
        ...

    async def system_topics(self) -> set[str]:
        """The names of those that are RocketMQ's own."""
        ...

    async def values(self, namespace: str, key: str) -> list[str]:
        """What name servers have under a key."""
        ...

    async def put_value(self, namespace: str, key: str, value: str) -> None:
        """Store a value at every name server."""
        ...

    async def remove_value(self, namespace: str, key: str) -> None:
        """Delete a value at every name server."""
        ...

    async def tell_name_servers(self, code: RequestCode, header: DeleteTopicHeader) -> None:
        """Ask every name server to do something."""
        ...


class ClusterCatalog:
    """The known topics; all others have to be asked for."""

    topic_partitions_max = PARTITIONS_MAX

    def __init__(
        self,
        cluster: Cluster,
        *,
        partitions_max: int,
        tables: WrittenTables | None = None,
        on_dropped: Callable[[str], None] = lambda wire: None,
    ) -> None:
        """`on_dropped` is called with the name of a topic that is gone, as RocketMQ has it."""
        self._on_dropped = on_dropped
        self._cluster = cluster
        self._tables = tables or WrittenTables(cluster)
        self._partitions_max = partitions_max
        self._known: dict[str, ClusterTopic] = {}
        self._by_id: dict[bytes, ClusterTopic] = {}
        self._listed_at = float("-inf")
        self._asking: dict[str, asyncio.Task[None]] = {}
        self.version = 0

    # Reading

    def learn(self, names: Iterable[str | None] | None) -> Awaitable[None] | None:
        """Ask for the topics of these names that are not known; for all, if one has no name."""
        wanted = None if names is None else list(names)
        if wanted is None or None in wanted:
            now = asyncio.get_running_loop().time()
            return self._list() if now - self._listed_at > REFRESH_S else None
        unknown = [name for name in wanted if name and name not in self._known]
        return self._ask_all(unknown) if unknown else None

    def find(self, name: str) -> ClusterTopic | None:
        """A topic by name, if known."""
        return self._known.get(name)

    def find_id(self, topic_id: bytes) -> ClusterTopic | None:
        """A topic by id, if known."""
        return self._by_id.get(topic_id)

    def __iter__(self) -> Iterator[ClusterTopic]:
        """All known topics."""
        return iter(list(self._known.values()))

    def names_from(self, name: str) -> Iterator[str]:
        """The names from one on, in order."""
        found = sorted(self._known)
        return iter(found[bisect_left(found, name) :])

    def check_room(self, count: int) -> None:
        """POLICY_VIOLATION if that many more partitions would exceed the limit."""
        used = sum(topic.queue_count for topic in self._known.values())
        if used + count > self._partitions_max:
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"Creating {count:,} partitions would exceed topics.partitions_max "
                f"({self._partitions_max:,}); there are {used:,}.",
            )

    async def refresh(self) -> None:
        """Ask again for masters, and for the routes of all known topics."""
        before = self._cluster.masters
        await self._cluster.find_masters()
        if self._cluster.masters != before:
            self.version += 1
        await self._ask_all(list(self._known))

    # Changing

    async def create(self, news: Sequence[NewTopic]) -> Refusals:
        """Create topics, spread evenly over the masters."""
        return await self._each({new.name: self._create(new) for new in news})

    async def grow(self, counts: Mapping[str, int]) -> Refusals:
        """Add partitions at the end of tables."""
        return await self._each({name: self._grow(name, n) for name, n in counts.items()})

    async def delete(self, names: Sequence[str]) -> Refusals:
        """Delete topics at every master and name server, with their tables."""
        return await self._each({name: self._delete(name) for name in names})

    async def alter(self, configs: Mapping[str, Mapping[str, str]]) -> Refusals:
        """Change `message.type` at every master; brokers have no other config that can change."""
        return await self._each({name: self._alter(name, c) for name, c in configs.items()})

    # Private

    async def _each(self, changes: Mapping[str, Awaitable[None]]) -> Refusals:
        refused: dict[str, Refusal] = {}
        for name, change in changes.items():
            try:
                await change
            except RequestError as error:
                refused[name] = Refusal(error.code, error.reason)
            except BrokerLost as lost:
                refused[name] = Refusal(ErrorCode.REQUEST_TIMED_OUT, str(lost))
            except BrokerRefused as error:
                refused[name] = Refusal(_refusal_code(error), error.reason)
            except BrokerError as error:
                refused[name] = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
        return refused or NO_REFUSALS

    async def _create(self, new: NewTopic) -> None:
        attributes = to_attributes(new.config, is_new=True)
        wire = wire_name(new.name)
        if not names.is_visible(new.name):
            reason = f"RocketMQ's topic names have at most {names.NAME_SIZE_MAX} characters."
            raise RequestError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        if await self._cluster.route(wire) is not None:
            raise RequestError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' exists.")
        await self._cluster.find_masters()
        masters = [name for name in self._cluster.masters if is_broker(name)]
        if not masters:
            raise RequestError(ErrorCode.REQUEST_TIMED_OUT, "No master is known.")
        table = self._tables.spread(PartitionTable(), new.partition_count, masters)
        async with self._tables.writing(wire):
            if await self._cluster.route(wire) is not None:
                raise RequestError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' exists.")
            await self._put_queues(wire, table, table.brokers, attributes)
            await self._tables.put(wire, table)
        self._keep(new.name, table, None)
        self._known[new.name].config = dict(new.config)
        await self._read_config(self._known[new.name])

    async def _grow(self, name: str, count: int) -> None:
        await self._ask_once(name)
        topic = self._known.get(name)
        if topic is None:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No topic '{name}'.")
        masters = [each for each in self._cluster.masters if is_broker(each)]
        async with self._tables.writing(topic.wire):
            # Another gateway may have let it grow in the meantime.
            known = await self._tables.written(topic.wire) or topic.table
            table = self._tables.spread(known, count, masters)
            changed = [
                each for each in table.brokers if table.count_of(each) > topic.table.count_of(each)
            ]
            await self._put_queues(topic.wire, table, changed)
            await self._tables.put(topic.wire, table)
        self._keep(name, table, None)

    async def _alter(self, name: str, config: Mapping[str, str]) -> None:
        topic = self._known.get(name)
        if topic is None:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No topic '{name}'.")
        changed = {key: value for key, value in config.items() if topic.config.get(key) != value}
        removed = {key: "NORMAL" for key in topic.config.keys() - config.keys()}
        attributes = to_attributes({**changed, **removed}, is_new=False)
        if attributes is not None:
            await self._put_queues(topic.wire, topic.table, topic.table.brokers, attributes)
            topic.config = dict(config)
            topic.position += 1
            self.version += 1

    async def _delete(self, name: str) -> None:
        wire = wire_name(name)
        for broker in self._cluster.masters:
            header = TopicHeader(topic=wire)
            checked(await self._cluster.ask(broker, RequestCode.DELETE_TOPIC_IN_BROKER, header))
        code = RequestCode.DELETE_TOPIC_IN_NAMESRV
        await self._cluster.tell_name_servers(code, DeleteTopicHeader(topic=wire))
        await self._tables.remove(wire)
        self._drop(name)

    async def _put_queues(
        self,
        wire: str,
        table: PartitionTable,
        brokers: Iterable[str],
        attributes: str | None = None,
    ) -> None:
        for broker in brokers:
            count = table.count_of(broker)
            header = CreateTopicHeader(
                topic=wire,
                default_topic=AUTO_CREATE_TOPIC,
                read_queue_nums=count,
                write_queue_nums=count,
                perm=READABLE | WRITABLE,
                attributes=attributes,
            )
            code = RequestCode.UPDATE_AND_CREATE_TOPIC
            checked(await self._cluster.ask(broker, code, header))

    # Asking

    async def _list(self) -> None:
        hidden = await self._cluster.system_topics()
        found = [
            kafka_names.to_kafka(names.to_store(wire))
            for wire in await self._cluster.topics()
            if wire not in hidden and not wire.startswith(_OWN)
        ]
        there = {name for name in found if kafka_names.is_legal(name)}
        await self._ask_all([*there, *(name for name in self._known if name not in there)])
        self._listed_at = asyncio.get_running_loop().time()

    async def _ask_all(self, wanted: Sequence[str]) -> None:
        limit = asyncio.Semaphore(ASKS_MAX)

        async def ask(name: str) -> None:
            async with limit:
                try:
                    await self._ask_once(name)
                except BrokerLost as lost:
                    log.warning("cannot ask for topic %s: %s", name, lost)

        await asyncio.gather(*(ask(name) for name in dict.fromkeys(wanted)))

    async def _ask_once(self, name: str) -> None:
        """Ask for one topic; all who want it at the same time share the answer."""
        task = self._asking.get(name)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask(name))
            self._asking[name] = task
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        await asyncio.shield(task)

    async def _ask(self, name: str) -> None:
        if not kafka_names.is_legal(name):
            return
        wire = wire_name(name)
        route = await self._cluster.route(wire)
        counts = {
            each.broker_name: min(
                PARTITIONS_MAX, max(each.read_queue_nums, each.write_queue_nums, 0)
            )
            for each in (route.queue_datas if route else ())
            if is_broker(each.broker_name)
        }
        table = await self._tables.covering(wire, counts)
        if table is None:
            return
        if route is None and not table.count:
            self._drop(name)
            return
        self._keep(name, table, route)
        await self._read_config(self._known[name])

    async def _read_config(self, topic: ClusterTopic) -> None:
        """Ask a broker for the configs of a topic, now and then."""
        now = asyncio.get_running_loop().time()
        there = sorted(set(topic.table.brokers) & set(self._cluster.masters))
        if not there or now - topic.asked_at < CONFIG_S:
            return
        try:
            config = await read_config(self._cluster, topic.wire, there[0])
        except BrokerError as failed:
            log.warning("cannot ask for the configs of topic %s: %s", topic.name, failed)
            return
        topic.asked_at, topic.is_typed = now, config is not None
        if config is not None and config != topic.config:
            topic.config = config
            topic.position += 1
            self.version += 1

    def _keep(self, name: str, table: PartitionTable, route: RouteData | None) -> None:
        topic = self._known.get(name)
        if topic is None:
            id_ = uuid.uuid5(_IDS, f"{self._cluster.cluster}/{name}").bytes
            topic = self._known[name] = self._by_id[id_] = ClusterTopic(name, id_, table)
            self.version += 1
        elif topic.table.text != table.text:
            topic.table = table
            topic.position += 1
            self.version += 1
        # After a change of ours the route is not known yet, and everything may be written.
        topic.queues = {each.broker_name: each for each in (route.queue_datas if route else ())}

    def _drop(self, name: str) -> None:
        topic = self._known.pop(name, None)
        if topic is not None:
            del self._by_id[topic.id]
            self.version += 1
            self._on_dropped(topic.wire)


def _refusal_code(error: BrokerRefused) -> ErrorCode:
    """Brokers have one code for all that they do not take of a topic's attributes."""
    is_config = error.code == ResponseCode.INVALID_PARAMETER
    return ErrorCode.INVALID_CONFIG if is_config else ErrorCode.UNKNOWN_SERVER_ERROR
