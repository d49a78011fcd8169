"""The sockets of a listener: bound early, so that a bad address fails at once; listening later.

A name may resolve to several addresses (`localhost` is 127.0.0.1 and ::1): all of them get the same
port. `[::]` accepts IPv4 as well.
"""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable

from rockgate.gateway.net.address import Address
from rockgate.gateway.runtime.errors import BindError

_CHOOSE = "Choose another address"
_ADVICE = {
    errno.EADDRINUSE: "Stop the process that uses it, or choose another address",
    errno.EACCES: f"Ports below 1024 require privileges. {_CHOOSE}",
    errno.EADDRNOTAVAIL: f"No local interface has this address. {_CHOOSE}",
}


class Listener:
    """The sockets of one listener, from bind to close. A closed listener has none."""

    def __init__(self, listener: str, address: Address, sockets: list[socket.socket]) -> None:
        self.listener = listener
        self.address = address
        self.sockets = sockets
        self._servers: list[asyncio.Server] = []

    @classmethod
    def bind(cls, listener: str, address: Address) -> "Listener":
        """Bind every address of the host; BindError names the one that failed and what to do."""
        if address.is_closed:
            return cls(listener, address, [])
        sockets: list[socket.socket] = []
        try:
            for family, host in _resolve(listener, address):
                # With port 0, the first socket picks the port for all.
                port = sockets[0].getsockname()[1] if sockets else address.port
                sockets.append(_bound(family, host, port))
        except OSError as error:
            for bound in sockets:
                bound.close()
            advice = _ADVICE.get(error.errno or 0, _CHOOSE)
            raise BindError(
                listener=listener,
                address=str(address),
                reason=(error.strerror or str(error)).lower(),
                advice=f"{advice} {_how(listener)}",
            ) from error
        return cls(listener, Address(address.host, sockets[0].getsockname()[1]), sockets)

    async def listen(self, factory: Callable[[], asyncio.BaseProtocol], *, backlog: int) -> None:
        """Start accepting connections."""
        loop = asyncio.get_running_loop()
        for bound in self.sockets:
            self._servers.append(await loop.create_server(factory, sock=bound, backlog=backlog))

    def close(self) -> None:
        """Stop accepting connections; accepted ones stay open."""
        for server in self._servers:
            server.close()
        for bound in self.sockets:
            with contextlib.suppress(OSError):
                bound.close()
        self._servers, self.sockets = [], []


def _how(listener: str) -> str:
    """Where the address of a listener is set: one with a name is in its protocol's list."""
    protocol, dot, _ = listener.partition(".")
    where = f"in {protocol}.listeners" if dot else f"with --{listener} HOST:PORT"
    return f"{where} (port 0 picks a free port)."


def _resolve(listener: str, address: Address) -> list[tuple[socket.AddressFamily, str]]:
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise BindError(
            listener=listener,
            address=str(address),
            reason=f"unknown host ({error.strerror})",
            advice=f"{_CHOOSE} {_how(listener)}",
        ) from error
    return list(dict.fromkeys((family, str(where[0])) for family, _, _, _, where in found))


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    # Declared as TCP: asyncio sets TCP_NODELAY only on such sockets.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit keepalive, which detects peers whose machine has failed.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        bound.setblocking(False)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
