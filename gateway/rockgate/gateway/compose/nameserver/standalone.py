"""A standalone name server: no store and no other listener."""

import asyncio
import logging
import sys
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack

import uvloop

from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.config.renamed import warn_of_renamed
from rockgate.gateway.compose.listeners import (
    bind,
    certificate_identity,
    connection_counts,
    endpoints_of,
    ready,
    refuse_anonymous,
    tls_contexts,
)
from rockgate.gateway.compose.nameserver.assembly import NameServerAssembly
from rockgate.gateway.compose.storage import Ticking
from rockgate.gateway.remoting.server.periodic import now_and_then
from rockgate.gateway.runtime import logs
from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.runtime.stop_signal import Stop
from rockgate.gateway.telemetry.telemetry import Telemetry
from rockgate.store.clock import SystemClock
from rockgate.store.upkeep.steps import Steps

log = logging.getLogger(__name__)


def run(
    config: Config, given: Collection[str] = (), deprecated: Mapping[str, str] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT; StartError if it cannot start.

    `given` names the settings that were given a value, `deprecated` the old names used for them.
    """
    logs.set_up(config.server.log_level)
    warn_of_renamed(deprecated or {}, log)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, given))


async def _serve(config: Config, given: Collection[str]) -> None:
    endpoints = endpoints_of(config, given)["namesrv"]
    if endpoints[0].address.is_closed:
        raise StartError("The name server requires a listener. Set --namesrv HOST:PORT.")
    if any(each.authentication != "none" for each in endpoints):
        raise StartError(
            "A name server on its own cannot check signatures: users are in the log of a server. "
            "Set --namesrv.authentication none, and demand client certificates instead."
        )
    stop = Stop()
    async with AsyncExitStack() as resources:
        refuse_anonymous(endpoints, config)
        contexts = tls_contexts(endpoints, config)
        identity = certificate_identity(config)
        listeners = bind(resources, endpoints, config, contexts, identity)
        listeners.counts = connection_counts(config.security)
        folder, clock = config.server.data_dir.absolute(), SystemClock()
        server = NameServerAssembly(
            config=config,
            folder=folder,
            clock=clock,
            is_alone=True,
            identify=identity.principal,
            audit=identity.audit,
        )
        await server.open(resources, listeners, Telemetry())
        steps = Steps(clock)
        for name, step in server.upkeep().items():
            steps.add(name, step)
        if contexts is not None:
            steps.add("certificates", now_and_then(clock, contexts.renew))
        resources.callback(Ticking(steps.run, asyncio.get_running_loop()).stop)
        sys.stdout.write(ready(listeners.endpoints) + "\n")
        sys.stdout.flush()
        log.info("stopping signal=%s", await stop.asked())
    log.info("stopped")
