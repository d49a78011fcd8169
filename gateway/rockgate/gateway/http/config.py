"""Settings of the HTTP listener."""

from dataclasses import dataclass, field

from rockgate.gateway.net.address import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """The HTTP listener for probes and metrics."""

    listen: Address = field(default=Address("127.0.0.1", 8080))
    """Address of `/health`, `/ready` and `/metrics`; `off` disables it, port 0 picks a free port.
    """
    connections_max: int = field(default=64, metadata={"minimum": 1, "maximum": 10_000})
    """Maximum number of connections; further ones are closed on accept."""
    exchange_ms_max: int = field(default=5_000, metadata={"minimum": 10, "maximum": 600_000})
    """Close a connection whose request and response take longer than this."""
