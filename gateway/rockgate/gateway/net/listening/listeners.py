"""The listeners of one protocol: bound together, opened together, closed together."""

import asyncio
import socket
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from rockgate.gateway.net.connection_counts import ConnectionCounts
from rockgate.gateway.net.listening.endpoint import Endpoint
from rockgate.gateway.net.listening.listener import Listener

NewSession = Callable[[Endpoint], asyncio.BaseProtocol]
"""Makes the protocol of a new connection to a listener."""


class Acceptor(Protocol):
    """Accepts the connections of listeners with TLS."""

    def listen(self, bound: socket.socket, endpoint: Endpoint, *, backlog: int) -> None:
        """Start accepting connections of a bound socket."""

    def close(self) -> None:
        """Stop, and close connections that are not yet open."""


class Listeners:
    """All listeners of a protocol, from bind to close; the first may be closed, then it is alone.

    `endpoints` have the bound addresses.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[Endpoint, Listener]],
        secured: Callable[[NewSession], Acceptor] | None = None,
    ) -> None:
        self._listeners = [listener for _, listener in pairs]
        self.endpoints = [endpoint for endpoint, _ in pairs]
        self._secured = secured
        self.counts: ConnectionCounts | None = None
        """Limits the connections of each address and user, together with other protocols."""
        self._acceptor: Acceptor | None = None

    @classmethod
    def bind(
        cls,
        endpoints: Iterable[Endpoint],
        secured: Callable[[NewSession], Acceptor] | None = None,
    ) -> "Listeners":
        """Bind all of them, or none: BindError names the one that failed and what to do.

        `secured` makes what accepts the connections of those with TLS.
        """
        pairs: list[tuple[Endpoint, Listener]] = []
        try:
            for endpoint in endpoints:
                listener = Listener.bind(endpoint.label, endpoint.address)
                pairs.append((endpoint.bound(listener.address), listener))
        except Exception:
            for _, listener in pairs:
                listener.close()
            raise
        return cls(pairs, secured)

    @property
    def first(self) -> Endpoint:
        """The listener that is known by the protocol alone."""
        return self.endpoints[0]

    async def listen(self, session: NewSession, *, backlog: int) -> None:
        """Start accepting connections; `session` makes the protocol of a new one."""
        for endpoint, listener in zip(self.endpoints, self._listeners, strict=True):
            if endpoint.tls == "disabled":
                await listener.listen(partial(session, endpoint), backlog=backlog)
                continue
            if self._acceptor is None:
                assert self._secured is not None, f"{endpoint.label} has TLS"
                self._acceptor = self._secured(session)
            for bound in listener.sockets:
                self._acceptor.listen(bound, endpoint, backlog=backlog)

    def close(self) -> None:
        """Stop accepting connections; accepted ones stay open."""
        if self._acceptor is not None:
            self._acceptor.close()
        for listener in self._listeners:
            listener.close()
