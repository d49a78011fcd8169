"""Registers the broker with external name servers: periodically, and when topics change.

One task for each name server, because each may be unreachable on its own. Our own name server does
not need it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rockgate.gateway.net.address import Address
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry, describe
from rockgate.gateway.runtime.quoting import quoted
from rockgate.gateway.transcode import names
from rockgate.protocol.remoting import headers, javajson
from rockgate.protocol.remoting.bodies.clients import DataVersion
from rockgate.protocol.remoting.bodies.nameserver import RegisterBody
from rockgate.protocol.remoting.bodies.topics import TopicConfigTable
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.protocol.remoting.command import Command
from rockgate.protocol.remoting.headers.nameserver import (
    RegisterBrokerHeader,
    UnregisterBrokerHeader,
)
from rockgate.store.api.topics import WatchedTopics

if TYPE_CHECKING:
    from rockgate.sdk.client.connection import Link

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
        book: TopicRegistry,
        broker_name: str,
        address: str,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._topics = topics
        self._book = book
        self._broker_name = broker_name
        self._address = address
        self._every_seconds = every_seconds
        self._changes: dict[Address, asyncio.Event] = {}
        self._tasks: dict[Address, asyncio.Task[None]] = {}
        self._ending: dict[Address, asyncio.Task[None]] = {}
        self._is_following = False

    def follow(self, name_servers: Sequence[Address]) -> None:
        """Register with each from now on, and unregister from others."""
        if name_servers and not self._is_following:
            self._is_following = True
            topics = self._topics
            for listener in (topics.on_created, topics.on_deleted, topics.on_altered):
                listener.append(lambda topic: self._changed())
        for address in self._tasks.keys() - set(name_servers):
            del self._changes[address]
            task = self._ending[address] = self._tasks.pop(address)
            task.cancel()
        for address in name_servers:
            if address not in self._tasks:
                changed = self._changes[address] = asyncio.Event()
                registering = self._keep_registered(address, changed, self._ending.get(address))
                self._tasks[address] = asyncio.ensure_future(registering)

    async def stop(self) -> None:
        """Unregister from each that can be reached."""
        self.follow(())
        await asyncio.gather(*self._ending.values(), return_exceptions=True)

    def _changed(self) -> None:
        for event in self._changes.values():
            event.set()

    async def _keep_registered(
        self, address: Address, changed: asyncio.Event, before: asyncio.Task[None] | None
    ) -> None:
        """Register again and again; not before an earlier task has unregistered."""
        if before is not None:
            await asyncio.wait([before])
        # Imported here: a server that registers nowhere loads no client.
        from rockgate.sdk.client.connection import Link, LinkSettings

        # Dialled again for each registration, however recently that failed.
        settings = LinkSettings(dial_timeout_s=ANSWER_SECONDS_MAX, backoff_s=0.0, backoff_max_s=0.0)
        link, was_logged = Link(str(address), settings=settings), False
        try:
            while True:
                changed.clear()
                try:
                    answer = await self._register(link)
                    if answer.code:
                        log.warning(
                            "name server rejected the registration address=%s: %s",
                            address,
                            quoted(answer.remark),
                        )
                except OSError as error:  # the client's Unreachable and TimedOut among them
                    if not was_logged:
                        log.warning("name server is unreachable address=%s: %s", address, error)
                    was_logged = True
                await self._pause(changed)
        finally:
            header = UnregisterBrokerHeader(
                broker_name=self._broker_name,
                broker_addr=self._address,
                cluster_name=self._book.cluster_name,
                broker_id=MASTER_ID,
            )
            link.notify(RequestCode.UNREGISTER_BROKER, headers.write(header))
            await link.close()

    async def _pause(self, changed: asyncio.Event) -> None:
        """Until something changes, or the next registration is due."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._every_seconds):
                await changed.wait()

    async def _register(self, link: Link) -> Command:
        body = self._body()
        header = RegisterBrokerHeader(
            broker_name=self._broker_name,
            broker_addr=self._address,
            cluster_name=self._book.cluster_name,
            broker_id=MASTER_ID,
            enable_acting_master=False,
            body_crc32=zlib.crc32(body) & 0x7FFFFFFF,
        )
        return await link.request(
            RequestCode.REGISTER_BROKER,
            headers.write(header),
            body,
            timeout_s=ANSWER_SECONDS_MAX,
        )

    def _body(self) -> bytes:
        table = {names.to_rocketmq(topic.name): describe(topic) for topic in self._book}
        version = DataVersion(counter=self._topics.version)
        wrapper = TopicConfigTable(data_version=version, topic_config_table=table)
        return javajson.encode(RegisterBody(topic_config_serialize_wrapper=wrapper))
