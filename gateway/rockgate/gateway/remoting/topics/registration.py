"""Telling other name servers about our broker: again and again, and at once when topics change.

One task for each name server, because each may be away on its own. Ours needs no telling.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import zlib

from rockgate.gateway.net.address import Address
from rockgate.gateway.remoting.topics.topic_registry import TopicBook, describe
from rockgate.gateway.runtime.quoting import shown
from rockgate.gateway.transcode import names
from rockgate.protocol.errors import ProtocolError
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.clients import DataVersion
from rockgate.protocol.remoting.bodies.nameserver import RegisterBody
from rockgate.protocol.remoting.bodies.topics import TopicConfigTable
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.connection import Connection
from rockgate.protocol.remoting.headers.nameserver import (
    RegisterBrokerHeader,
    UnregisterBrokerHeader,
)
from rockgate.store.api.topics import WatchedTopics

EVERY_SECONDS = 30.0
ANSWER_SECONDS_MAX = 6.0
MASTER_ID = 0
log = logging.getLogger(__name__)


class Registrar:
    """Registers one broker with several name servers. Owned by the app."""

    def __init__(
        self,
        *,
        topics: WatchedTopics,
        book: TopicBook,
        broker_name: str,
        address: str,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._topics = topics
        self._book = book
        self._broker_name = broker_name
        self._address = address
        self._every_seconds = every_seconds
        self._changes: list[asyncio.Event] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, name_servers: list[Address]) -> None:
        """Begin to register with each."""
        if not name_servers:
            return
        listeners = (self._topics.on_created, self._topics.on_deleted, self._topics.on_altered)
        for listener in listeners:
            listener.append(lambda topic: self._changed())
        for address in name_servers:
            changed = asyncio.Event()
            self._changes.append(changed)
            self._tasks.append(asyncio.ensure_future(self._keep_registered(address, changed)))

    async def stop(self) -> None:
        """Tell each that we leave, as far as it hears."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _changed(self) -> None:
        for event in self._changes:
            event.set()

    async def _keep_registered(self, address: Address, changed: asyncio.Event) -> None:
        was_told = False
        while True:
            changed.clear()
            try:
                await self._converse(address, changed)
            except (OSError, TimeoutError, ProtocolError, EOFError) as error:
                if not was_told:
                    log.warning("name server is away address=%s: %s", address, error)
                was_told = True
            await self._pause(changed)

    async def _pause(self, changed: asyncio.Event) -> None:
        """Until something changes, or it is time again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._every_seconds):
                await changed.wait()

    async def _converse(self, address: Address, changed: asyncio.Event) -> None:
        """Register on one connection for as long as it lasts."""
        # Not by wait_for, which drops a cancellation that comes with the end of what it waits for.
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            reader, writer = await asyncio.open_connection(address.host, address.port)
        connection = Connection()
        try:
            while True:
                changed.clear()
                answer = await self._ask(reader, writer, connection)
                if answer.code:
                    log.warning(
                        "name server refuses us address=%s: %s", address, shown(answer.remark)
                    )
                await self._pause(changed)
        finally:
            connection.request(
                RequestCode.UNREGISTER_BROKER,
                headers.write(
                    UnregisterBrokerHeader(
                        broker_name=self._broker_name,
                        broker_addr=self._address,
                        cluster_name=self._book.cluster_name,
                        broker_id=MASTER_ID,
                    )
                ),
                oneway=True,
            )
            writer.writelines(connection.data_to_send())
            writer.close()

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Connection
    ) -> Command:
        body = self._body()
        header = RegisterBrokerHeader(
            broker_name=self._broker_name,
            broker_addr=self._address,
            cluster_name=self._book.cluster_name,
            broker_id=MASTER_ID,
            enable_acting_master=False,
            body_crc32=zlib.crc32(body) & 0x7FFFFFFF,
        )
        connection.request(RequestCode.REGISTER_BROKER, headers.write(header), body)
        writer.writelines(connection.data_to_send())
        while True:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                data = await reader.read(65_536)
            if not data:
                raise EOFError("the name server closed the connection")
            if commands := connection.receive_data(data):
                return commands[0]

    def _body(self) -> bytes:
        table = {names.to_rocketmq(topic.name): describe(topic) for topic in self._book}
        version = DataVersion(counter=self._topics.version)
        wrapper = TopicConfigTable(data_version=version, topic_config_table=table)
        return javajson.encode(RegisterBody(topic_config_serialize_wrapper=wrapper))
