"""A standalone name server: no store and no other listener."""

import asyncio
import logging
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack

import uvloop

from rockgate.gateway.compose.app import Stop
from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.config.renamed import warn_of_renamed
from rockgate.gateway.compose.nameserver import NameServerAssembly
from rockgate.gateway.compose.storage import Ticking
from rockgate.gateway.net.listener import Listener
from rockgate.gateway.runtime import logs
from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.telemetry.telemetry import Telemetry
from rockgate.store.clock import SystemClock
from rockgate.store.upkeep.steps import Steps

log = logging.getLogger(__name__)


def run(config: Config, deprecated: Mapping[str, str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; StartError if it cannot start."""
    logs.set_up(config.server.log_level)
    warn_of_renamed(deprecated or {}, log)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config))


async def _serve(config: Config) -> None:
    if config.namesrv.listen.is_closed:
        raise StartError("The name server requires a listener. Set --namesrv HOST:PORT.")
    stop = Stop()
    async with AsyncExitStack() as resources:
        listener = Listener.bind("namesrv", config.namesrv.listen)
        resources.callback(listener.close)
        folder, clock = config.server.data_dir.absolute(), SystemClock()
        server = NameServerAssembly(config=config, folder=folder, clock=clock, is_alone=True)
        await server.open(resources, listener, Telemetry())
        steps = Steps(clock)
        for name, step in server.upkeep().items():
            steps.add(name, step)
        resources.callback(Ticking(steps.run, asyncio.get_running_loop()).stop)
        sys.stdout.write(f"ready namesrv={listener.address}\n")
        sys.stdout.flush()
        log.info("stopping signal=%s", await stop.asked())
    log.info("stopped")
