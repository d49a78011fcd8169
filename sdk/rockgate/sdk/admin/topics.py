"""Topics: create, change, delete; list them, their routes, their contents and their consumers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from rockgate.protocol.remoting import headers
from rockgate.protocol.remoting.bodies.queues import TopicStats
from rockgate.protocol.remoting.bodies.topics import (
    GroupList,
    TopicConfig,
    TopicConfigTable,
    TopicList,
)
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.protocol.remoting.headers.nameserver import DeleteTopicHeader
from rockgate.protocol.remoting.headers.topics import CreateTopicHeader, TopicHeader
from rockgate.sdk.admin.calls import AdminCalls
from rockgate.sdk.admin.values import QueueRange, TopicSettings, queue_of, time_of
from rockgate.sdk.client.routes import DEFAULT_TOPIC, Route
from rockgate.sdk.errors import NotSupported, Refused
from rockgate.sdk.message import check_topic

QUEUES_MAX = 65_536


class TopicAdmin:
    """Administers topics."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls

    async def create(
        self,
        topic: str,
        settings: TopicSettings | None = None,
        *,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> None:
        """Create a topic at every master, or at those of a cluster or one broker.

        An existing topic gets these settings.
        """
        wanted = settings or TopicSettings()
        check_topic(topic)
        _check(wanted)
        for address in await self._calls.masters(cluster, broker):
            await self._put(address, topic, wanted)

    async def update(
        self,
        topic: str,
        *,
        read_queues: int | None = None,
        write_queues: int | None = None,
        perm: int | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Change the given settings of a topic at all its brokers; the others stay as they are."""
        given = {
            "read_queues": read_queues,
            "write_queues": write_queues,
            "perm": perm,
            "attributes": attributes,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        masters = await self._calls.masters_of(topic)
        known = await self.describe(topic)
        changed = {name: replace(known[name], **changes) for name in masters}
        for each in changed.values():
            _check(each)
        for name, address in masters.items():
            await self._put(address, topic, changed[name])

    async def delete(self, topic: str, *, cluster: str | None = None) -> None:
        """Delete a topic with its messages at every master, and at the name servers."""
        for address in await self._calls.masters(cluster):
            await self._calls.ask(
                address, RequestCode.DELETE_TOPIC_IN_BROKER, TopicHeader(topic=topic)
            )
        code = RequestCode.DELETE_TOPIC_IN_NAMESRV
        fields = headers.write(DeleteTopicHeader(topic=topic, cluster_name=cluster))
        await self._calls.client.name_servers.send_all(code, fields)

    async def names(self) -> list[str]:
        """The topics that name servers know, RocketMQ's own included, sorted."""
        found = await self._calls.named(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, TopicList)
        return sorted(found.topic_list) if found is not None else []

    async def route(self, topic: str) -> Route:
        """The current route of a topic, from a name server; UnknownTopic if there is none."""
        return await self._calls.client.routes.ask_again(topic)

    async def describe(self, topic: str) -> dict[str, TopicSettings]:
        """A topic as each of its brokers has it, by the broker's name."""
        found: dict[str, TopicSettings] = {}
        for name, address in (await self._calls.masters_of(topic)).items():
            config = await self._config(address, topic)
            found[name] = TopicSettings(
                read_queues=config.read_queue_nums,
                write_queues=config.write_queue_nums,
                perm=config.perm,
                is_ordered=config.order,
                attributes=config.attributes,
            )
        return found

    async def bounds(self, topic: str) -> list[QueueRange]:
        """What each queue of a topic holds."""
        found: list[QueueRange] = []
        code = RequestCode.GET_TOPIC_STATS_INFO
        for address in (await self._calls.masters_of(topic)).values():
            stats = await self._calls.read(address, code, TopicStats, TopicHeader(topic=topic))
            found += [
                QueueRange(
                    queue=queue_of(queue),
                    min_offset=held.min_offset,
                    max_offset=held.max_offset,
                    written_at=time_of(held.last_update_timestamp),
                )
                for queue, held in stats.offset_table.items.items()
            ]
        return sorted(found, key=lambda each: each.queue)

    async def groups(self, topic: str) -> list[str]:
        """The groups that read a topic, or have, sorted."""
        found: set[str] = set()
        code = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
        for address in (await self._calls.masters_of(topic)).values():
            answer = await self._calls.read(address, code, GroupList, TopicHeader(topic=topic))
            found.update(answer.group_list)
        return sorted(found)

    async def _config(self, address: str, topic: str) -> TopicConfig:
        code = RequestCode.GET_TOPIC_CONFIG
        try:
            return await self._calls.read(address, code, TopicConfig, TopicHeader(topic=topic))
        except NotSupported:
            # Brokers before 5.0 list all topics or none.
            every = RequestCode.GET_ALL_TOPIC_CONFIG
            table = await self._calls.read(address, every, TopicConfigTable)
        config = table.topic_config_table.get(topic)
        if config is None:
            raise Refused(f"{every.name} to {address}", ResponseCode.TOPIC_NOT_EXIST, topic)
        return config

    async def _put(self, address: str, topic: str, settings: TopicSettings) -> None:
        attributes = ",".join(f"+{name}={value}" for name, value in settings.attributes.items())
        header = CreateTopicHeader(
            topic=topic,
            default_topic=DEFAULT_TOPIC,
            read_queue_nums=settings.read_queues,
            write_queue_nums=settings.write_queues,
            perm=settings.perm,
            order=settings.is_ordered,
            attributes=attributes or None,
        )
        await self._calls.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


def _check(settings: TopicSettings) -> None:
    for name in ("read_queues", "write_queues"):
        value = getattr(settings, name)
        if not 1 <= value <= QUEUES_MAX:
            raise ValueError(f"{name} must be 1 to {QUEUES_MAX:,}, not {value:,}.")
    if not 0 <= settings.perm <= 7:
        raise ValueError(f"perm must be 0 to 7, not {settings.perm}.")
