"""Settings of replication."""

from dataclasses import dataclass, field
from pathlib import Path

from rockgate.gateway.net.address import CLOSED, Address


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationConfig:
    """Replication: a standby that follows this server's log, or that this server is."""

    listen: Address = field(default=CLOSED)
    """Address that standbys connect to; `off` disables it, port 0 picks a free port."""
    replica_of: Address = field(default=CLOSED)
    """Address of a primary that this server follows, as a standby: it reads, and never writes."""
    secret_file: Path | None = None
    """File whose first line both sides have to know; required beyond loopback."""
    retain_bytes: int = field(default=10 << 30, metadata={"minimum": 0, "maximum": 2**62})
    """How much log is retained for standbys that are behind; beyond that they copy anew."""
    replicas_max: int = field(default=16, metadata={"minimum": 1, "maximum": 1_000})
    """Maximum number of standbys; further ones are refused."""
