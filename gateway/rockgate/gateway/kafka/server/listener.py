"""Kafka's listeners: a session for each connection, with limits that all of them share."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from rockgate.gateway.kafka.authentication.authenticator import Authenticator
from rockgate.gateway.kafka.server.config import KafkaConfig
from rockgate.gateway.kafka.server.sasl_session import SaslSession
from rockgate.gateway.kafka.server.session import Dispatch, Session
from rockgate.gateway.net.clock import Clock
from rockgate.gateway.net.limits import Limits
from rockgate.gateway.net.listening.endpoint import NOWHERE, Endpoint
from rockgate.gateway.net.sessions import Connections
from rockgate.gateway.security.principal import Principal
from rockgate.gateway.security.tls.identity import Identify, is_anonymous


class KafkaConnections(Connections[Session]):
    """Creates and holds sessions."""

    def __init__(
        self,
        config: KafkaConfig,
        dispatch: Dispatch,
        clock: Clock,
        *,
        may_connect: Callable[[str], bool] = lambda address: True,
        identify: Identify = is_anonymous,
        authenticators: Mapping[str, Authenticator] | None = None,
    ) -> None:
        """`may_connect` returns whether another connection from an address is allowed, `identify`
        the principal of a client's certificate; `authenticators` are those of the listeners, by
        name, that authenticate by SASL."""
        super().__init__(
            connections_max=config.connections_max,
            total_bytes_max=config.total_bytes_max,
            frame_bytes_max=config.frame_bytes_max,
        )
        self._limits = Limits.of(config)
        self._dispatch = dispatch
        self._clock = clock
        self._may_connect = may_connect
        self._identify = identify
        self._authenticators = authenticators or {}

    def session(self, listener: Endpoint = NOWHERE) -> Session:
        """The protocol of a new connection to one of the listeners."""
        self._last_id += 1
        if listener.authentication == "sasl":
            return SaslSession(
                connection_id=self._last_id,
                limits=self._limits,
                budget=self._budget,
                dispatch=self._dispatch,
                sessions=self,
                clock=self._clock,
                receiving=self._receiving,
                authenticator=self._authenticators[listener.name],
                listener=listener,
            )
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

    def end_throttle_pauses(self) -> None:
        """End all throttling: the quotas have changed."""
        for session in list(self._sessions):
            session.end_throttle_pause()

    def close_users(self, names: AbstractSet[str]) -> None:
        """Close the connections of users: they were removed or disabled."""
        for session in list(self._sessions):
            authentication = session.peer.authentication
            if authentication is not None and session.peer.user in names:
                session.abort("user was removed or disabled")

    def close_tokens(self, ids: AbstractSet[str]) -> None:
        """Close the connections that have authenticated with tokens: those were removed."""
        for session in list(self._sessions):
            authentication = session.peer.authentication
            if authentication is not None and authentication.login.token_id in ids:
                session.abort("delegation token was removed")

    def opened(self, session: Session) -> bool:
        """Register a new session, unless its address connected too often."""
        return self._may_connect(session.remote_host) and super().opened(session)
