"""The RocketMQ listeners: broker and name server use the same kind of session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rockgate.gateway.net.clock import Clock
from rockgate.gateway.net.limits import Limits
from rockgate.gateway.net.listening.endpoint import NOWHERE, Endpoint
from rockgate.gateway.net.sessions import Connections
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.server.session import Dispatch, Session
from rockgate.gateway.security.principal import Principal
from rockgate.gateway.security.tls.identity import Identify, is_anonymous

SECONDS_MAX: Final = 10.0
OnLost = Callable[[Session], None]


class RemotingConnections(Connections[Session]):
    """Creates and holds sessions; `on_lost` is called for each that is closed."""

    def __init__(
        self,
        config: RemotingConfig,
        dispatch: Dispatch,
        clock: Clock,
        *,
        identify: Identify = is_anonymous,
        seconds_max: float = SECONDS_MAX,
    ) -> None:
        """`seconds_max`: what a client has for its first request with a valid signature."""
        super().__init__(
            connections_max=config.connections_max,
            total_bytes_max=config.total_bytes_max,
            frame_bytes_max=config.frame_bytes_max,
        )
        self._limits = Limits.of(config)
        self._dispatch = dispatch
        self._clock = clock
        self._identify = identify
        self.seconds_max = seconds_max
        self.on_lost: list[OnLost] = []

    def session(self, listener: Endpoint = NOWHERE) -> Session:
        """The protocol of a new connection to one of the listeners."""
        self._last_id += 1
        return Session(
            connection_id=self._last_id,
            limits=self._limits,
            budget=self._budget,
            dispatch=self._dispatch,
            sessions=self,
            clock=self._clock,
            receiving=self._receiving,
            listener=listener,
        )

    def identify(self, certificate: Mapping[str, Any], host: str, listener: str) -> Principal:
        """The principal of a client's certificate; ValueError if it has none."""
        return self._identify(certificate, host, listener)

    def lost(self, session: Session) -> None:
        """Remove a session, and notify `on_lost`."""
        super().lost(session)
        for listener in self.on_lost:
            listener(session)
