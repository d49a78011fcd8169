"""HOST:PORT as a value: the address of a listener, and the address advertised to clients.

It parses and prints and never resolves a name. IPv6 hosts are written in brackets, as in
`[::1]:9092`.
"""

import ipaddress
from dataclasses import dataclass
from typing import Any

PORT_MAX = 65_535
HOST_CHARS_MAX = 253
_WILDCARDS = frozenset({"0.0.0.0", "::"})


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port. Port 0 asks the system for a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `HOST:PORT`, `[IPV6]:PORT` or `off`; anything else is a ValueError."""
        if text.strip().lower() == "off":
            return CLOSED
        host, colon, port_text = text.strip().rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(f"must have its IPv6 host in brackets, as in [::1]:9092, not {text!r}")
        if not colon or not host or not (port_text.isascii() and port_text.isdigit()):
            raise ValueError(f"must be HOST:PORT or 'off', not {text!r}")
        if len(host) > HOST_CHARS_MAX or any(c.isspace() or c in "/@[]" for c in host):
            raise ValueError(f"must have a host name or address before the port, not {host!r}")
        if len(port_text) > 5 or int(port_text) > PORT_MAX:
            raise ValueError(f"must have a port from 0 to {PORT_MAX}, not {port_text}")
        return cls(host, int(port_text))

    @property
    def is_closed(self) -> bool:
        """Whether the listener is disabled."""
        return self == CLOSED

    @property
    def is_wildcard(self) -> bool:
        """Whether a listener bound to this accepts connections on every local address."""
        return self.host in _WILDCARDS

    def __str__(self) -> str:
        if self.is_closed:
            return "off"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


CLOSED = Address("off", 0)


def is_this_machine(local: Address, remote: Address) -> bool:
    """Whether the peer of a connection is on this machine.

    It comes from a loopback address, or from the same address that it came to, which no other
    machine can have.
    """
    try:
        there = ipaddress.ip_address(remote.host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(there, "ipv4_mapped", None)
    return (mapped or there).is_loopback or remote.host == local.host


def socket_address(name: Any) -> Address:
    """A socket's name as a value; a closed connection has none."""
    return Address(str(name[0]), int(name[1])) if name else Address("unknown", 0)
