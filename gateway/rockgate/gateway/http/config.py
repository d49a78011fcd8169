"""Settings of the HTTP listener."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rockgate.gateway.net.address import Address
from rockgate.gateway.net.listening.endpoint import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """The HTTP listener for probes and metrics."""

    listen: Address = field(default=Address("127.0.0.1", 8080))
    """Address of `/health`, `/ready` and `/metrics`; `off` disables it, port 0 picks a free port.
    """
    tls: bool = False
    """Whether connections are encrypted."""
    authentication: Literal["auto", "on", "off"] = "auto"
    """Whether pages other than `/health` and `/ready` need a login; auto: once there is a user, or
    if grants decide what clients may do."""
    token_file: Path | None = None
    """File whose first line is a token that reads every page, without a user or a grant; not used
    where OAUTHBEARER is enabled."""
    connections_max: int = field(default=64, metadata={"minimum": 1, "maximum": 10_000})
    """Maximum number of connections; further ones are closed on accept."""
    exchange_ms_max: int = field(default=5_000, metadata={"minimum": 10, "maximum": 600_000})
    """Close a connection whose request and response take longer than this."""

    def endpoint(self) -> Endpoint:
        """The listener."""
        return Endpoint(
            protocol="http", address=self.listen, tls="enforcing" if self.tls else "disabled"
        )
