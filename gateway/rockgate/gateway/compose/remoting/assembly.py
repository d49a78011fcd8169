"""Assembles RocketMQ's listener: its services, processors and sessions.

The app creates the folds with the store, then the listeners; shutdown closes the listeners first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack

from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.metrics.remoting import (
    BrokerSource,
    HookSource,
    OverloadSource,
    RequestSource,
)
from rockgate.gateway.compose.metrics.statistics import PopSource, StatisticsSource
from rockgate.gateway.compose.remoting.access import RemotingAccess, may_check, needs_of
from rockgate.gateway.compose.remoting.services import SENDS, RemotingServices
from rockgate.gateway.compose.remoting.table import families, table
from rockgate.gateway.net.listening.listeners import Listeners
from rockgate.gateway.remoting.authorization.changes import audited
from rockgate.gateway.remoting.authorization.guard import RequestGuard
from rockgate.gateway.remoting.groups.slow_groups import SlowGroups
from rockgate.gateway.remoting.server.admission import Admission
from rockgate.gateway.remoting.server.dispatch import Dispatcher, Handle
from rockgate.gateway.remoting.server.listener import RemotingConnections
from rockgate.gateway.remoting.server.periodic import now_and_then
from rockgate.gateway.remoting.topics.local_broker import LocalBroker
from rockgate.gateway.remoting.topics.registration import Registrar
from rockgate.gateway.storage.config import OverloadConfig
from rockgate.gateway.storage.stalls import Stalls
from rockgate.gateway.telemetry.telemetry import Telemetry
from rockgate.protocol.remoting.codes import RequestCode
from rockgate.store.errors import StoreFull, StoreReadOnly

log = logging.getLogger(__name__)


class RemotingAssembly:
    """The broker's listener. The app creates one and calls `open` once."""

    def __init__(
        self,
        services: RemotingServices,
        *,
        config: Config,
        stalls: Stalls,
        access: RemotingAccess,
    ) -> None:
        self._services = services
        self._access = access
        self._guard: RequestGuard | None = None
        self._drain_ms_max = config.server.drain_ms_max
        self._overload = services.overload
        self._is_protected = config.overload.enabled
        self._stalls = stalls
        self._slow_groups = _slow_groups(services, config.overload)
        services.settings.on_overload_changed.append(self._slow_groups.configure)

    async def open(
        self, resources: AsyncExitStack, listeners: Listeners, telemetry: Telemetry
    ) -> LocalBroker:
        """Create the processors and listen; `resources` drains and closes the listeners."""
        services, first = self._services, listeners.first
        is_open = not first.address.is_closed
        config, topics = services.config, services.topics
        if is_open:
            try:
                topics.make_system_topics()
            except (StoreFull, StoreReadOnly) as error:
                # Existing ones are used; the next start, or a standby's primary, creates others.
                log.error("cannot create RocketMQ system topics: %s", error)
        self._guard = self._access.guard("remoting", listeners.endpoints)
        address = str(first.advertised or first.address)
        made = families(services, address)
        resources.callback(made.halves.finish)
        resources.push_async_callback(services.log_checks.close)
        processors = table(made) | self._access.table(services, address)
        dispatcher = Dispatcher(
            self._guarded(self._hooked(processors, telemetry)),
            services.requests,
            admission=self._admission(resources),
            on_slow=dict.fromkeys(SENDS, made.sends.was_slow),
        )
        connections = RemotingConnections(
            config,
            dispatcher,
            asyncio.get_running_loop(),
            identify=self._access.identify,
            seconds_max=self._access.seconds_max,
        )
        connections.counts = listeners.counts
        connections.on_lost.append(services.clients.lost)
        if is_open:
            telemetry.sources += [
                RequestSource("broker", dispatcher.stats, connections),
                self._source(),
                OverloadSource(self._overload),
                *self._statistics(),
            ]
        resources.push_async_callback(connections.drain, self._drain_ms_max / 1000)
        resources.callback(services.poll_registry.finish)
        resources.callback(listeners.close)
        await listeners.listen(connections.session, backlog=config.backlog)
        if is_open:
            registrar = Registrar(
                topics=services.store.topics,
                book=topics,
                broker_name=config.broker_name,
                address=address,
            )
            registrar.follow(config.name_server_list())
            services.settings.on_changed.append(
                lambda config: registrar.follow(config.name_server_list())
            )
            resources.push_async_callback(registrar.stop)
        return LocalBroker(topics, broker_name=config.broker_name, endpoints=listeners.endpoints)

    def _admission(self, resources: AsyncExitStack) -> Admission:
        """Make what protects the processors from overload."""
        loop = asyncio.get_running_loop()
        admission = Admission(self._overload, loop, self._stalls.slow_appends)
        if self._is_protected:
            self._stalls.on_stalled.append(admission.stalled)
            resources.callback(admission.stop)
        return admission

    def upkeep(self) -> dict[str, Callable[[], bool]]:
        """Check half messages, and expire silent clients and locks periodically."""
        services, clock = self._services, self._services.store.clock
        return {
            "clients": now_and_then(clock, services.clients.expire),
            "locks": now_and_then(clock, services.locks.expire),
            "checks": services.check_backs.step,
            "pop-expiry": services.revival.expire,
            "pop-progress": services.revival.commit,
            "pop-clock": services.pop_clock.follow,
            "statistics": services.statistics.step,
            "slow-groups": self._slow_groups.step,
        }

    def _guarded(self, processors: dict[RequestCode, Handle]) -> dict[RequestCode, Handle]:
        """The processors, whose changes are audited, with guards if anything is checked."""
        guard, needs = self._guard, needs_of(self._services)
        processors = audited(processors, needs, self._access.audit)
        if guard is None:
            return processors
        self._services.check_backs.may_check = may_check(guard)
        return guard.around(processors, needs)

    def _hooked(
        self, processors: dict[RequestCode, Handle], telemetry: Telemetry
    ) -> dict[RequestCode, Handle]:
        """The processors, with the hooks that the settings name around them."""
        names = self._services.config.hooks
        if not names:
            return processors
        # Imported for the few servers that have hooks: every module delays the start.
        from rockgate.gateway.remoting.hooks.around import Hooks
        from rockgate.gateway.remoting.hooks.installed import load_hooks

        hooks = Hooks(load_hooks(names))
        telemetry.sources.append(HookSource(hooks.failed_counts))
        return hooks.around(processors)

    def _statistics(self) -> tuple[StatisticsSource, PopSource]:
        services = self._services
        return (
            StatisticsSource(
                statistics=services.statistics,
                topics=services.store.topics,
                groups_max=services.series_max,
            ),
            PopSource(
                in_flight=services.folds.in_flight,
                acquirer=services.acquirer,
                receipts=services.receipts,
                revival=services.revival,
            ),
        )

    def _source(self) -> BrokerSource:
        services = self._services
        return BrokerSource(
            clients=services.clients,
            puller=services.puller,
            transcoder=services.transcoder,
            halves=services.halves,
            check_backs=services.check_backs,
            retries=services.retries,
            dead_letters=services.dead_letters,
        )


def _slow_groups(services: RemotingServices, config: OverloadConfig) -> SlowGroups:
    """What looks for groups that are too far behind, while that is switched on."""
    store = services.store
    return SlowGroups(
        clients=services.clients,
        settings=services.folds.settings,
        progress=store.progress,
        queues=store.queues,
        commit_log=store.log,
        clock=store.clock,
        config=services.folds.changed.over(config),
    )
