"""Processors of the name server: routes (105), brokers (103, 104, 106 …), configs (100 …).

Behaviour
- A route is what brokers last registered, and what our own broker has at this moment.
- A registration may be compressed, and its checksum is verified.
- Keys and values are on disk before they are acknowledged, and are visible from then on.

- Beside a broker, what changes others' routes (103, 104, 205, 216, 217, 327) is accepted from this
  machine only, and so are changes of keys and values (100, 102), unless settings say otherwise;
  other clients get NO_PERMISSION and the setting. A standalone name server accepts them all.
- No other broker can register under our own broker's name.

Departs from RocketMQ
- 216 does not hide a topic of our own broker: 215 deletes it there and its route goes with it.
- Units do not exist: the three lists about them are empty.
- 318 changes three settings, which are those that have an effect here; any other is NO_PERMISSION
  with its name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

import msgspec

from rockgate.gateway.net.address import is_this_machine
from rockgate.gateway.remoting.admin.properties_text import lines_of
from rockgate.gateway.remoting.nameserver import runtime_settings as settings
from rockgate.gateway.remoting.nameserver.kv import KeyValues
from rockgate.gateway.remoting.nameserver.routes import Live, Routes, queues_of
from rockgate.gateway.remoting.server.caller import Caller
from rockgate.gateway.remoting.server.dispatch import Handle, Later, Reply
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies import topics
from rockgate.protocol.remoting.bodies.clients import DataVersion
from rockgate.protocol.remoting.bodies.nameserver import MemberGroupAnswer, QueueData, RouteData
from rockgate.protocol.remoting.bodies.registration import decode_registration
from rockgate.protocol.remoting.bodies.topics import TopicConfigTable
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode, request_name
from rockgate.protocol.remoting.command import Buffer, Command
from rockgate.protocol.remoting.headers import nameserver as fields
from rockgate.protocol.remoting.headers.topics import TopicHeader
from rockgate.store.api.clock import Clock

ORDER_SPACE: Final = "ORDER_TOPIC_CONFIG"
"""Where `mqadmin updateOrderConf` stores how many queues each broker has for an ordered topic."""
SMALL_BYTES: Final = 16_384
"""Size up to which a registration is decoded on the loop."""
SLICE_COUNT: Final = 2_000
"""Topics of a registration that are added in one turn of the event loop."""
VERSION_BYTES_MAX: Final = 4_096
ROUTE_BYTES_MAX: Final = 16_384
"""Size of a route from an administrator: its keys are numbers, which takes a slow parser."""


class NameServerRequests:
    """The processors of the name server."""

    def __init__(
        self,
        *,
        routes: Routes,
        kv: KeyValues,
        clock: Clock,
        accept_brokers: bool = True,
        accept_values: bool = True,
    ) -> None:
        self._routes = routes
        self._kv = kv
        self._settings = settings.RuntimeSettings(kv)
        self._clock = clock
        self._accept_brokers = accept_brokers
        self._accept_values = accept_values
        self._registering = asyncio.Lock()

    def guards_routes(self, handle: Handle) -> Handle:
        """The same, for clients that may change routes."""
        return handle if self._accept_brokers else _guarded(handle, "namesrv.accept_brokers")

    def guards_values(self, handle: Handle) -> Handle:
        """The same, for clients that may change keys and values."""
        return handle if self._accept_values else _guarded(handle, "namesrv.accept_values")

    # Routes

    def route(self, command: Command, caller: Caller) -> Reply:
        """105: the route of a topic."""
        topic = headers.read(command, fields.RouteHeader).topic
        found = self._routes.route(topic, caller)
        if found is None:
            raise Refused(
                ResponseCode.TOPIC_NOT_EXIST,
                f"No topic route info in name server for the topic: {topic[:200]}",
            )
        if self._settings.is_on(settings.ORDER_TOPICS):
            found.order_topic_conf = self._kv.get(ORDER_SPACE, topic)
        return Command(ResponseCode.SUCCESS, body=javajson.encode(found))

    def cluster(self, command: Command, caller: Caller) -> Reply:
        """106: every broker."""
        return _body(self._routes.cluster(caller))

    def topics(self, command: Command, caller: Caller) -> Reply:
        """206: every topic."""
        self._require(settings.LIST_TOPICS)
        return _body(topics.TopicList(topic_list=self._routes.topics()))

    def cluster_topics(self, command: Command, caller: Caller) -> Reply:
        """224: the topics of a cluster."""
        self._require(settings.LIST_TOPICS_OF_CLUSTER)
        cluster = headers.read(command, fields.ClusterHeader).cluster
        return _body(topics.TopicList(topic_list=self._routes.topics_of(cluster)))

    def system_topics(self, command: Command, caller: Caller) -> Reply:
        """304: clusters, brokers and RocketMQ's own topics."""
        return _body(topics.TopicList(topic_list=self._routes.system_topics(caller)))

    def no_topics(self, command: Command, caller: Caller) -> Reply:
        """311 to 313: there are no units."""
        return _body(topics.TopicList(topic_list=[]))

    def delete_topic(self, command: Command, caller: Caller) -> Reply:
        """216: remove a topic's routes."""
        asked = headers.read(command, fields.DeleteTopicHeader)
        self._routes.delete_topic(asked.topic, asked.cluster_name)
        return Command(ResponseCode.SUCCESS)

    def wipe(self, command: Command, caller: Caller) -> Reply:
        """205: remove the write permission of a broker's topics."""
        asked = headers.read(command, fields.BrokerNameHeader)
        count = self._routes.set_write(asked.broker_name, is_wiped=True)
        answer = headers.write(fields.WipedAnswer(wipe_topic_count=count))
        return Command(ResponseCode.SUCCESS, answer)

    def unwipe(self, command: Command, caller: Caller) -> Reply:
        """327: restore the write permission of a broker's topics."""
        asked = headers.read(command, fields.BrokerNameHeader)
        count = self._routes.set_write(asked.broker_name, is_wiped=False)
        answer = headers.write(fields.AddedAnswer(add_topic_count=count))
        return Command(ResponseCode.SUCCESS, answer)

    # Brokers

    def register(self, command: Command, caller: Caller) -> Reply | Awaitable[Reply]:
        """103: register a broker and its topics."""
        asked = headers.read(command, fields.RegisterBrokerHeader)
        if not command.body:
            return self._registered(_live(asked, caller), None)
        if len(command.body) > SMALL_BYTES:
            return self._register_later(asked, command.body, caller)
        return self._registered(_live(asked, caller), _table(asked, command.body))

    async def _register_later(
        self, asked: fields.RegisterBrokerHeader, body: Buffer, caller: Caller
    ) -> Reply:
        """The same for many topics: a thread decodes them, and they are added over many turns.

        One registration after the other, so that the last one's topics are what is known.
        """

        def read() -> tuple[DataVersion, list[dict[str, QueueData]]]:
            table = _table(asked, body)
            queues = list(queues_of(asked.broker_name, table).items())
            slices = range(0, len(queues), SLICE_COUNT)
            return table.data_version, [dict(queues[at : at + SLICE_COUNT]) for at in slices]

        async with self._registering:
            version, slices = await asyncio.to_thread(read)
            live = _live(asked, caller)
            reply = self._registered(live, TopicConfigTable(data_version=version))
            for queues in slices:
                if not self._routes.add_topics(live, queues):
                    break
                await asyncio.sleep(0)
        return reply

    def _registered(self, live: Live, table: TopicConfigTable | None) -> Reply:
        try:
            master, ha = self._routes.register(live, table, self._clock.monotonic_ms())
        except ValueError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from None
        answer = fields.RegisteredAnswer(master_addr=master or None, ha_server_addr=ha or None)
        return Command(ResponseCode.SUCCESS, headers.write(answer))

    def unregister(self, command: Command, caller: Caller) -> Reply:
        """104: unregister a broker."""
        asked = headers.read(command, fields.UnregisterBrokerHeader)
        self._routes.unregister(asked.cluster_name, asked.broker_addr)
        return Command(ResponseCode.SUCCESS)

    def broker_heartbeat(self, command: Command, caller: Caller) -> Reply:
        """904: heartbeat of a broker."""
        asked = headers.read(command, fields.BrokerHeartbeatHeader)
        now_ms = self._clock.monotonic_ms()
        self._routes.alive(asked.cluster_name, asked.broker_addr, now_ms)
        return Command(ResponseCode.SUCCESS)

    def data_version(self, command: Command, caller: Caller) -> Reply:
        """322: whether the known topics of a broker are up to date."""
        asked = headers.read(command, fields.DataVersionHeader)
        sent = javajson.decode(
            command.body, DataVersion, "QUERY_DATA_VERSION", size_max=VERSION_BYTES_MAX
        )
        known = self._routes.version_of(asked.cluster_name, asked.broker_addr)
        self._routes.alive(asked.cluster_name, asked.broker_addr, self._clock.monotonic_ms())
        answer = headers.write(fields.DataVersionAnswer(changed=known != sent))
        body = b"" if known is None else javajson.encode(known)
        return Command(ResponseCode.SUCCESS, answer, body)

    def members(self, command: Command, caller: Caller) -> Reply:
        """901: the brokers of one name."""
        asked = headers.read(command, fields.MemberGroupHeader)
        found = self._routes.members(asked.cluster_name, asked.broker_name, caller)
        return _body(MemberGroupAnswer(broker_member_group=found))

    # Keys and values

    def put(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """100: set a value."""
        asked = headers.read(command, fields.PutKvHeader)
        try:
            return _saved(self._kv.put(asked.namespace, asked.key, asked.value))
        except ValueError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"Not saved: {error}.") from error

    def get(self, command: Command, caller: Caller) -> Reply:
        """101: get a value."""
        asked = headers.read(command, fields.KvHeader)
        value = self._kv.get(asked.namespace, asked.key)
        if value is None:
            raise Refused(
                ResponseCode.QUERY_NOT_FOUND,
                f"No config item, Namespace: {asked.namespace[:100]} Key: {asked.key[:100]}",
            )
        return Command(ResponseCode.SUCCESS, {"value": value})

    def delete(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """102: remove a value."""
        asked = headers.read(command, fields.KvHeader)
        return _saved(self._kv.delete(asked.namespace, asked.key))

    def namespace(self, command: Command, caller: Caller) -> Reply:
        """219: all values of a namespace."""
        asked = headers.read(command, fields.NamespaceHeader)
        found = self._kv.namespace(asked.namespace)
        if found is None:
            raise Refused(
                ResponseCode.QUERY_NOT_FOUND,
                f"No config item, Namespace: {asked.namespace[:100]}",
            )
        return _body(topics.KeyValues(table=dict(found)))

    def register_topic(self, command: Command, caller: Caller) -> Reply:
        """217: add a topic to brokers; unknown ones are skipped."""
        topic = headers.read(command, TopicHeader).topic
        if command.body:
            what = "the route of the topic"
            route = javajson.decode(command.body, RouteData, what, size_max=ROUTE_BYTES_MAX)
            self._routes.register_topic(topic, route.queue_datas)
        return Command(ResponseCode.SUCCESS)

    def settings(self, command: Command, caller: Caller) -> Reply:
        """319: the settings, one per line."""
        return Command(ResponseCode.SUCCESS, body=lines_of(self._settings.current()))

    def set_settings(self, command: Command, caller: Caller) -> Awaitable[Reply]:
        """318: some can be changed at run time; the current values of others are accepted."""
        return _saved(self._settings.change(command.body))

    def _require(self, name: str) -> None:
        if not self._settings.is_on(name):
            raise Refused(
                ResponseCode.SYSTEM_ERROR, f"The name server does not list topics: {name}=false."
            )


def _live(asked: fields.RegisterBrokerHeader, caller: Caller) -> Live:
    return Live(
        name=asked.broker_name,
        cluster=asked.cluster_name,
        address=asked.broker_addr,
        broker_id=asked.broker_id,
        caller=caller,
        seen_ms=0,
        expiry_ms=max(0, asked.heartbeat_timeout_millis or 0),
        ha_address=asked.ha_server_addr,
        enables_acting_master=bool(asked.enable_acting_master),
    )


def _table(asked: fields.RegisterBrokerHeader, body: Buffer) -> TopicConfigTable:
    return decode_registration(
        body, is_compressed=asked.compressed, checksum=asked.body_crc32
    ).topic_config_serialize_wrapper


def _guarded(handle: Handle, setting: str) -> Handle:
    """The same, for callers on this machine."""

    def guarded(command: Command, caller: Caller) -> Reply | Later:
        if not is_this_machine(caller.peer.local, caller.peer.remote):
            raise Refused(
                ResponseCode.NO_PERMISSION,
                f"{request_name(command.code)} is accepted from this host only; set "
                f"{setting} to true to allow other hosts.",
            )
        return handle(command, caller)

    return guarded


async def _saved(change: Awaitable[None]) -> Reply:
    """The response, once a change of keys and values is on disk."""
    try:
        await change
    except (ValueError, OSError) as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"Not saved: {error}.") from error
    return Command(ResponseCode.SUCCESS)


def _body(value: msgspec.Struct) -> Command:
    return Command(ResponseCode.SUCCESS, body=javajson.encode(value))


def table(requests: NameServerRequests) -> dict[RequestCode, Handle]:
    """The processor of each code."""
    r = requests
    return {
        RequestCode.REGISTER_TOPIC_IN_NAMESRV: r.guards_routes(r.register_topic),
        RequestCode.UPDATE_NAMESRV_CONFIG: r.guards_values(r.set_settings),
        RequestCode.PUT_KV_CONFIG: r.guards_values(r.put),
        RequestCode.GET_KV_CONFIG: r.get,
        RequestCode.DELETE_KV_CONFIG: r.guards_values(r.delete),
        RequestCode.REGISTER_BROKER: r.guards_routes(r.register),
        RequestCode.UNREGISTER_BROKER: r.guards_routes(r.unregister),
        RequestCode.GET_ROUTEINFO_BY_TOPIC: r.route,
        RequestCode.GET_BROKER_CLUSTER_INFO: r.cluster,
        RequestCode.WIPE_WRITE_PERM_OF_BROKER: r.guards_routes(r.wipe),
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: r.topics,
        RequestCode.DELETE_TOPIC_IN_NAMESRV: r.guards_routes(r.delete_topic),
        RequestCode.GET_KVLIST_BY_NAMESPACE: r.namespace,
        RequestCode.GET_TOPICS_BY_CLUSTER: r.cluster_topics,
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: r.system_topics,
        RequestCode.GET_UNIT_TOPIC_LIST: r.no_topics,
        RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: r.no_topics,
        RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: r.no_topics,
        RequestCode.GET_NAMESRV_CONFIG: r.settings,
        RequestCode.QUERY_DATA_VERSION: r.data_version,
        RequestCode.ADD_WRITE_PERM_OF_BROKER: r.guards_routes(r.unwipe),
        RequestCode.GET_BROKER_MEMBER_GROUP: r.members,
        RequestCode.BROKER_HEARTBEAT: r.broker_heartbeat,
    }
