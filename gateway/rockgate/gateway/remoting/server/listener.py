"""The RocketMQ listeners: broker and name server use the same kind of session."""

from __future__ import annotations

from collections.abc import Callable

from rockgate.gateway.net.clock import Clock
from rockgate.gateway.net.limits import Limits
from rockgate.gateway.net.sessions import Connections
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.gateway.remoting.server.session import Dispatch, Session

OnLost = Callable[[Session], None]


class RemotingConnections(Connections[Session]):
    """Creates and holds sessions; `on_lost` is called for each that is closed."""

    def __init__(self, config: RemotingConfig, dispatch: Dispatch, clock: Clock) -> None:
        super().__init__(
            connections_max=config.connections_max,
            total_bytes_max=config.total_bytes_max,
            frame_bytes_max=config.frame_bytes_max,
        )
        self._limits = Limits.of(config)
        self._dispatch = dispatch
        self._clock = clock
        self.on_lost: list[OnLost] = []

    def session(self) -> Session:
        """The protocol of a new connection."""
        self._last_id += 1
        return Session(
            connection_id=self._last_id,
            limits=self._limits,
            budget=self._budget,
            dispatch=self._dispatch,
            sessions=self,
            clock=self._clock,
            receiving=self._receiving,
        )

    def lost(self, session: Session) -> None:
        """Remove a session, and notify `on_lost`."""
        super().lost(session)
        for listener in self.on_lost:
            listener(session)
