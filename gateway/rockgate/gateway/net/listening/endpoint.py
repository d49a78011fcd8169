"""An endpoint: one listener of a protocol, as its settings describe it and its sessions know it.

Every protocol has one, and may have more. They differ in address, in the advertised address, in
TLS and in authentication; what is served is the same on all of them.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from typing import Literal

from rockgate.gateway.net.address import CLOSED, Address

TlsMode = Literal["disabled", "permissive", "enforcing"]
"""Whether connections are encrypted; with `permissive` the first byte of each one decides."""
Authentication = Literal["none", "sasl", "signature"]
"""How clients say who they are, besides a certificate."""

DEFAULT_NAME = "DEFAULT"
"""The name of a protocol's first listener, unless its security protocol gives it one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One listener of a protocol; `address` is the bound one as soon as it is bound."""

    protocol: str
    """The section of its settings: kafka, remoting, namesrv or http."""
    name: str = DEFAULT_NAME
    address: Address = CLOSED
    advertised: Address | None = None
    """The address for clients to dial, if it is not the bound one."""
    tls: TlsMode = "disabled"
    authentication: Authentication = "none"
    is_first: bool = True
    """Whether it is the protocol's first listener, which scripts know by the protocol alone."""

    @property
    def label(self) -> str:
        """What the ready line, logs and errors call it: `kafka`, `kafka.PUBLIC`."""
        return self.protocol if self.is_first else f"{self.protocol}.{self.name}"

    @property
    def is_local(self) -> bool:
        """Whether only processes of this machine can reach it."""
        return self.address.is_closed or is_loopback(self.address.host)

    def bound(self, address: Address) -> Endpoint:
        """The same, once its port is known."""
        return replace(self, address=address)

    def address_for(self, local: Address) -> Address:
        """The address for the client of a connection that arrived on `local`.

        The advertised one; else the listener's own; for a wildcard, which cannot be dialled, the
        one that the connection arrived on: the client has just proved that it works.
        """
        if self.advertised is not None:
            return self.advertised
        is_unknown = self.address.is_wildcard or self.address.is_closed
        return local if is_unknown else self.address


def is_loopback(host: str) -> bool:
    """Whether a host to bind is a loopback address; names other than localhost may be anything."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() == "localhost"


NOWHERE = Endpoint(protocol="none")
"""The listener of a peer without a session."""
