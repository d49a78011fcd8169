"""The caller: the connection of a request, as processors and registries see it."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Protocol

from rockgate.gateway.net.address import Address
from rockgate.protocol.entry import BORN_HOST_V6, pack_host
from rockgate.protocol.remoting.command import Buffer, Command, Fields

V4_NOWHERE = bytes(4)


class Host:
    """An address as stored in an entry: packed, with the flag for its width."""

    __slots__ = ("flag", "packed")

    def __init__(self, address: Address) -> None:
        try:
            ip = ipaddress.ip_address(address.host)
        except ValueError:
            packed, self.flag = V4_NOWHERE, 0
        else:
            mapped = getattr(ip, "ipv4_mapped", None)
            packed = (mapped or ip).packed
            self.flag = BORN_HOST_V6 if len(packed) == 16 else 0
        self.packed = pack_host(packed, address.port)


class Peer:
    """The peer of a connection."""

    __slots__ = ("connection_id", "host", "local", "remote")

    def __init__(self, *, connection_id: int, local: Address, remote: Address) -> None:
        self.connection_id = connection_id
        self.local = local
        self.remote = remote
        self.host = Host(remote)
        """The born host of messages from this connection."""

    def __str__(self) -> str:
        return f"connection={self.connection_id} peer={self.remote}"


class Caller(Protocol):
    """A connection, for sending responses and requests to it."""

    peer: Peer

    @property
    def is_open(self) -> bool:
        """Whether anything can still be sent."""

    def send_oneway(self, code: int, fields: Fields, body: Buffer = b"") -> None:
        """Send a one-way request."""

    def ask(
        self, code: int, fields: Fields, body: Buffer, seconds_max: float
    ) -> asyncio.Future[Command]:
        """Send a request; the future has its response, or TimeoutError, or ConnectionError."""
