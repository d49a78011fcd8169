"""Assembles the name server: beside a broker, or alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.metrics.remoting import RequestSource
from rockgate.gateway.net.listening.listeners import Listeners
from rockgate.gateway.remoting.authorization.changes import audited
from rockgate.gateway.remoting.authorization.guard import RequestGuard
from rockgate.gateway.remoting.authorization.nameserver_needs import NAMESERVER
from rockgate.gateway.remoting.nameserver import processors
from rockgate.gateway.remoting.nameserver.kv import KeyValues
from rockgate.gateway.remoting.nameserver.routes import Local, Routes
from rockgate.gateway.remoting.server.dispatch import Dispatcher
from rockgate.gateway.remoting.server.listener import RemotingConnections
from rockgate.gateway.remoting.server.periodic import now_and_then
from rockgate.gateway.security.audit import ChangeAudit
from rockgate.gateway.security.tls.identity import Identify, is_anonymous
from rockgate.gateway.telemetry.telemetry import Telemetry
from rockgate.store.clock import Clock


class NameServerAssembly:
    """The name server: beside a broker, or alone."""

    def __init__(
        self,
        *,
        config: Config,
        folder: Path,
        clock: Clock,
        local: Local | None = None,
        is_alone: bool = False,
        guard: RequestGuard | None = None,
        identify: Identify = is_anonymous,
        audit: ChangeAudit | None = None,
    ) -> None:
        """Without a `guard` nothing is checked."""
        self._identify = identify
        self._audit = audit
        self._config = config
        self._clock = clock
        self._is_alone = is_alone
        self._guard = guard
        self.routes = Routes(
            local,
            config.namesrv.broker_expiry_ms,
            shares_topics=config.namesrv.accept_brokers,
        )
        self._kv = KeyValues(folder)

    async def open(
        self, resources: AsyncExitStack, listeners: Listeners, telemetry: Telemetry
    ) -> None:
        """Listen; `resources` drains and closes the listeners."""
        config = self._config.namesrv
        requests = processors.NameServerRequests(
            routes=self.routes,
            kv=self._kv,
            clock=self._clock,
            accept_brokers=self._is_alone or config.accept_brokers,
            accept_values=self._is_alone or config.accept_values,
        )
        table = processors.table(requests)
        if self._audit is not None:
            table = audited(table, NAMESERVER, self._audit)
        if self._guard is not None:
            table = self._guard.around(table, NAMESERVER)
        dispatcher = Dispatcher(table)
        connections = RemotingConnections(
            self._config.remoting,
            dispatcher,
            asyncio.get_running_loop(),
            identify=self._identify,
            seconds_max=self._config.security.authentication_ms_max / 1000,
        )
        connections.counts = listeners.counts
        connections.on_lost.append(self.routes.lost)
        if not listeners.first.address.is_closed:
            telemetry.sources.append(RequestSource("namesrv", dispatcher.stats, connections))
        resources.push_async_callback(connections.drain, self._config.server.drain_ms_max / 1000)
        resources.callback(listeners.close)
        await listeners.listen(connections.session, backlog=self._config.remoting.backlog)

    def upkeep(self) -> dict[str, Callable[[], bool]]:
        """Remove brokers that were silent for too long."""
        return {"brokers": now_and_then(self._clock, self.routes.expire)}
