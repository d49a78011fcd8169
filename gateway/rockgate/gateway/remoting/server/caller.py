"""The caller: the connection of a request, as processors and registries see it."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Final, Protocol

from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import NOWHERE, Endpoint
from rockgate.gateway.security.principal import ANONYMOUS, Principal
from rockgate.protocol.entry import BORN_HOST_V6, pack_host
from rockgate.protocol.remoting.command import Buffer, Command, Fields

V4_NOWHERE = bytes(4)
ALLOWED_MAX: Final = 1_000
"""Decisions that are remembered of a connection; one more empties its memory."""


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

    __slots__ = (
        "allowed_count",
        "certified",
        "connection_id",
        "host",
        "listener",
        "local",
        "principal",
        "pullable",
        "remote",
        "sendable",
        "unsigned",
    )

    def __init__(
        self,
        *,
        connection_id: int,
        local: Address,
        remote: Address,
        listener: Endpoint = NOWHERE,
    ) -> None:
        self.connection_id = connection_id
        self.local = local
        self.remote = remote
        self.listener = listener
        """The listener that accepted the connection: its name, TLS, authentication."""
        self.host = Host(remote)
        """The born host of messages from this connection."""
        self.certified: Principal | None = None
        """Whom the client's certificate names; None without one."""
        self.principal = ANONYMOUS
        """Whom the latest request was authenticated as; `become` changes it."""
        self.unsigned: Principal | None = None
        """Whom all its requests come from, once it is known that none has to be signed."""
        self.sendable: dict[str, int] = {}
        """Topics that this principal was allowed to send to, with the generation of grants that
        allowed it."""
        self.pullable: dict[str, dict[str, int]] = {}
        """The same for pulls, by topic and group."""
        self.allowed_count = 0
        """How many decisions both have at most."""

    def become(self, principal: Principal) -> None:
        """A request was authenticated as someone else."""
        self.principal = principal
        self._forget()

    def allow_send(self, topic: str, generation: int) -> None:
        """Remember that its principal may send to a topic."""
        self._make_room()
        self.sendable[topic] = generation

    def allow_pull(self, topic: str, group: str, generation: int) -> None:
        """Remember that its principal may pull from a topic in a group."""
        self._make_room()
        self.pullable.setdefault(topic, {})[group] = generation

    def _make_room(self) -> None:
        if self.allowed_count >= ALLOWED_MAX:
            self._forget()
        self.allowed_count += 1

    def _forget(self) -> None:
        self.sendable.clear()
        self.pullable.clear()
        self.allowed_count = 0

    def __str__(self) -> str:
        return f"connection={self.connection_id} peer={self.remote}"


class Caller(Protocol):
    """A connection, for sending responses and requests to it."""

    peer: Peer

    @property
    def is_open(self) -> bool:
        """Whether anything can still be sent."""

    def enter(self, principal: Principal) -> bool:
        """Count the connection for a user who has authenticated; False if it has too many."""

    def send_oneway(self, code: int, fields: Fields, body: Buffer = b"") -> None:
        """Send a one-way request."""

    def ask(
        self, code: int, fields: Fields, body: Buffer, seconds_max: float
    ) -> asyncio.Future[Command]:
        """Send a request; the future has its response, or TimeoutError, or ConnectionError."""
