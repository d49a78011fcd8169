"""One Kafka connection on a listener that authenticates by SASL.

Every request passes `Login.admit` before it is dispatched, and nowhere else: one of a client that
has not authenticated never reaches a handler other than those of the authentication itself. A
listener without SASL has sessions of the plain class, and no part of this.

Invariants, besides those of a Session
- Before the client has authenticated, at most one of its requests is in flight, none is larger than
  512 KiB, and nothing is read while one is being answered.
- A client that does not authenticate in time is disconnected, also when it does so again.
"""

from __future__ import annotations

from rockgate.gateway.kafka.authentication.authenticator import Authenticator
from rockgate.gateway.kafka.authentication.login import Login, State
from rockgate.gateway.kafka.server.session import Dispatch, Session, Sessions
from rockgate.gateway.net.address import Address
from rockgate.gateway.net.budget import Budget
from rockgate.gateway.net.clock import Clock, Timer
from rockgate.gateway.net.limits import Limits
from rockgate.gateway.net.listening.endpoint import NOWHERE, Endpoint
from rockgate.gateway.net.receive_buffer import ReceiveBuffer
from rockgate.protocol.kafka.connection import Exchange
from rockgate.protocol.kafka.sasl_connection import SaslServerConnection


class SaslSession(Session):
    """A session that admits what the state of its login allows."""

    __slots__ = ("_authenticator", "_deadline", "_login", "_sasl_exchanges")

    _login: Login

    def __init__(
        self,
        *,
        connection_id: int,
        limits: Limits,
        budget: Budget,
        dispatch: Dispatch,
        sessions: Sessions,
        clock: Clock,
        receiving: ReceiveBuffer,
        authenticator: Authenticator,
        listener: Endpoint = NOWHERE,
    ) -> None:
        self._sasl_exchanges = SaslServerConnection(
            frame_bytes_max=limits.frame_bytes_max,
            in_flight_max=limits.in_flight_max,
            spares=receiving.spares,
        )
        super().__init__(
            connection_id=connection_id,
            limits=limits,
            budget=budget,
            dispatch=dispatch,
            sessions=sessions,
            clock=clock,
            receiving=receiving,
            listener=listener,
            exchanges=self._sasl_exchanges,
        )
        self._authenticator = authenticator
        self._deadline: Timer | None = None

    def _begin(self, local: Address, remote: Address) -> bool:
        if not super()._begin(local, remote):
            return False
        authentication = self._authenticator.begin(remote.host, self._changed)
        self.peer.authentication = authentication
        self._login = authentication.login
        self._await_authentication()
        return True

    def _start(self, exchange: Exchange) -> int:
        self._login.admit(exchange.header.api_key, self._clock.time())
        return super()._start(exchange)

    def _has_room(self) -> bool:
        if self._login.principal is None and self._sasl_exchanges.in_flight_count:
            return False
        return super()._has_room()

    def _end_requests(self) -> None:
        self._stop_waiting()
        if self.peer.authentication is not None:
            self._login.release()
        super()._end_requests()

    # The state of the login

    def _changed(self) -> None:
        """The state of the login has changed."""
        login, exchanges = self._login, self._sasl_exchanges
        if login.state is State.EXCHANGING:
            exchanges.is_headerless = login.is_headerless
            self._await_authentication()
        elif login.state is State.OPEN:
            assert login.principal is not None, "somebody has authenticated"
            self._stop_waiting()
            if not self._enter(login.principal):
                self.abort()
                return
            self.peer.become(login.principal)
            exchanges.open()
        else:
            # The response to the failed step is still sent.
            self._stop_waiting()
            self.drain()

    def _await_authentication(self) -> None:
        if self._deadline is None:
            self._deadline = self._clock.call_later(self._authenticator.seconds_max, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        """The client took too long."""
        self._deadline = None
        self.abort("client did not authenticate in time")
