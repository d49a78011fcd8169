"""Settings of the HTTP listener."""

from dataclasses import dataclass, field

from rockgate.gateway.net.address import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """The listener for probes and monitoring."""

    listen: Address = field(default=Address("127.0.0.1", 8080))
    """Address of `/health`, `/ready` and `/metrics`; `off` disables it, port 0 is any free one."""
    connections_max: int = field(default=64, metadata={"minimum": 1, "maximum": 10_000})
    """Connections held at a time; one more is closed as it arrives."""
    exchange_ms_max: int = field(default=5_000, metadata={"minimum": 10, "maximum": 600_000})
    """Time for one request and its answer, after which the connection is closed."""
