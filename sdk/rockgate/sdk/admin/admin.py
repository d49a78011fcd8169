"""Administers a cluster: topics, groups, brokers, messages and offsets.

    async with Admin("127.0.0.1:9876") as admin:
        await admin.topics.create("orders", TopicSettings(read_queues=16, write_queues=16))
        print((await admin.groups.lag("billing")).lag)

Masters that hold part of the answer are queried one after the other. If a broker returns an error,
Refused is raised with its code and remark, as everywhere in the SDK; one that does not know a
request is NotSupported.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rockgate.sdk.admin.brokers import BrokerAdmin
from rockgate.sdk.admin.calls import TIMEOUT_S, AdminCalls
from rockgate.sdk.admin.groups import GroupAdmin
from rockgate.sdk.admin.messages import MessageAdmin
from rockgate.sdk.admin.offsets import OffsetAdmin
from rockgate.sdk.admin.topics import TopicAdmin
from rockgate.sdk.client.client import Client
from rockgate.sdk.client.shared_clients import Lease
from rockgate.sdk.credentials import Credentials, Tls
from rockgate.sdk.errors import Closed


class Admin:
    """Administration over one client; its parts have the operations."""

    def __init__(
        self,
        name_servers: str | Sequence[str] = (),
        *,
        timeout_s: float = TIMEOUT_S,
        instance: str | None = None,
        client: Client | None = None,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
    ) -> None:
        """`timeout_s` bounds each request; a call may make several."""
        if timeout_s <= 0:
            raise ValueError(f"timeout_s must be greater than 0, not {timeout_s:g}.")
        self._lease = Lease(
            name_servers, instance=instance, client=client, credentials=credentials, tls=tls
        )
        self._timeout_s = timeout_s
        self._calls: AdminCalls | None = None
        self._was_opened = False

    async def open(self) -> Self:
        """Open; the first connection is made by the first request."""
        if self._was_opened:
            raise Closed("The admin is already open; it can be opened only once.")
        self._was_opened = True
        self._calls = AdminCalls(await self._lease.open(), self._timeout_s)
        return self

    async def close(self) -> None:
        """Close what was opened."""
        self._calls = None
        await self._lease.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def topics(self) -> TopicAdmin:
        """Topics."""
        return TopicAdmin(self._open)

    @property
    def groups(self) -> GroupAdmin:
        """Groups of consumers and producers."""
        return GroupAdmin(self._open)

    @property
    def brokers(self) -> BrokerAdmin:
        """Brokers."""
        return BrokerAdmin(self._open)

    @property
    def messages(self) -> MessageAdmin:
        """Messages, looked up."""
        return MessageAdmin(self._open)

    @property
    def offsets(self) -> OffsetAdmin:
        """Offsets of queues and groups."""
        return OffsetAdmin(self._open)

    @property
    def _open(self) -> AdminCalls:
        if self._calls is None:
            raise Closed("The admin is not open. Use `async with` or `await admin.open()`.")
        return self._calls
