"""Assembles the HTTP listener of a gateway: probes, metrics, and who may read those.

A gateway has no users: where a login is demanded it is the token of `http.token_file`.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

from rockgate.gateway.compose.config import Config
from rockgate.gateway.compose.metrics.kafka import RequestSource
from rockgate.gateway.compose.rocketmq.metrics import ClusterSource
from rockgate.gateway.http.access import PageAccess
from rockgate.gateway.http.pages import pages
from rockgate.gateway.http.session import HttpConnections
from rockgate.gateway.http.tokens import FileToken, InvalidTokenFile, read_token
from rockgate.gateway.net.listening.listeners import Listeners
from rockgate.gateway.runtime.errors import StartError
from rockgate.gateway.security.credentials.failed_attempts import FailedAttempts
from rockgate.gateway.security.credentials.logins import PasswordThreads
from rockgate.gateway.security.tls.identity import CertificateIdentity
from rockgate.gateway.telemetry.loop import LoopWatch
from rockgate.gateway.telemetry.process import ProcessSource
from rockgate.gateway.telemetry.telemetry import Telemetry

BACKLOG = 64


class NoUsers:
    """The users of a gateway: none."""

    async def check_password(self, name: str, password: str) -> bool:
        """No name is known."""
        return False


class GatewayPages:
    """The pages of one gateway; `requests` and `cluster` add their metrics."""

    def __init__(
        self,
        config: Config,
        identity: CertificateIdentity,
        resources: AsyncExitStack,
        requests: RequestSource,
        cluster: ClusterSource,
    ) -> None:
        self.phase = "starting"
        """`ready`, or why it is not."""
        watch = LoopWatch(asyncio.get_running_loop())
        resources.callback(watch.stop)
        self._telemetry = Telemetry()
        self._telemetry.sources += [ProcessSource(watch, time.time()), requests, cluster]
        self._connections = HttpConnections(
            config.http, pages(lambda: self.phase, self._telemetry.page)
        )
        self._connections.access = _access(config, identity, resources)
        resources.callback(self._connections.close)

    async def listen(self, listeners: Listeners) -> None:
        """Accept connections."""
        await listeners.listen(self._connections.session, backlog=BACKLOG)


def _access(config: Config, identity: CertificateIdentity, resources: AsyncExitStack) -> PageAccess:
    tokens = None
    if config.http.token_file is not None:
        try:
            read_token(config.http.token_file)
        except InvalidTokenFile as error:
            raise StartError(f"Cannot use http.token_file. {error}") from None
        threads = PasswordThreads(1)
        resources.callback(threads.close)
        tokens = FileToken(config.http.token_file, threads)
    authentication = config.http.authentication
    is_demanded = authentication == "on" or (authentication == "auto" and tokens is not None)
    if is_demanded and tokens is None:
        raise StartError("A gateway has no users. Set http.token_file, or http.authentication=off.")
    return PageAccess(
        passwords=NoUsers(),
        failures=FailedAttempts(config.security.failed_authentication_delay_ms),
        audit=identity.audit,
        access=None,
        demands_login=lambda: is_demanded,
        tokens=tokens,
        is_clear_allowed=config.security.allow_plain_without_tls,
    )
