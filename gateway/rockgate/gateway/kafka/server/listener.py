"""The Kafka listener: creates a session for each connection."""

from collections.abc import Callable

from rockgate.gateway.kafka.server.config import KafkaConfig
from rockgate.gateway.kafka.server.session import Dispatch, Session
from rockgate.gateway.net.clock import Clock
from rockgate.gateway.net.limits import Limits
from rockgate.gateway.net.sessions import Connections


class KafkaConnections(Connections[Session]):
    """Creates and holds sessions."""

    def __init__(
        self,
        config: KafkaConfig,
        dispatch: Dispatch,
        clock: Clock,
        *,
        may_connect: Callable[[str], bool] = lambda address: True,
    ) -> None:
        """`may_connect` returns whether another connection from an address is allowed."""
        super().__init__(
            connections_max=config.connections_max,
            total_bytes_max=config.total_bytes_max,
            frame_bytes_max=config.frame_bytes_max,
        )
        self._limits = Limits.of(config)
        self._dispatch = dispatch
        self._clock = clock
        self._may_connect = may_connect

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

    def end_throttle_pauses(self) -> None:
        """End all throttling: the quotas have changed."""
        for session in list(self._sessions):
            session.end_throttle_pause()

    def opened(self, session: Session) -> bool:
        """Register a new session, unless its address connected too often."""
        return self._may_connect(session.remote_host) and super().opened(session)
