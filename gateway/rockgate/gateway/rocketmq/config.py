"""Settings of a gateway to a RocketMQ cluster."""

from dataclasses import dataclass, field
from pathlib import Path

from rockgate.gateway.net.address import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class RocketmqConfig:
    """The RocketMQ cluster that `rockgate gateway` serves."""

    name_servers: str = ""
    """Name servers of the cluster as `host:port`, separated by semicolons."""
    cache_bytes_max: int = field(
        default=64 << 20, metadata={"minimum": 1 << 20, "maximum": 1 << 40}
    )
    """Memory for record batches that were read from brokers."""

    client_config: Path | None = None
    """File that says how to connect to name servers and brokers: TLS and access keys, by the names
    that the commands' `--client-config` has."""
    brokers: str = ""
    """Brokers in a fixed order, as `a, b`, by which partitions are numbered: partition p is queue
    p // n of broker p % n. Without it numbers are written down in the name servers."""
    confirm_tables: bool = False
    """Whether partitions may be numbered by routes although the name servers have lost the tables
    of this cluster."""

    def broker_list(self) -> list[str]:
        """The brokers in their fixed order."""
        return [each.strip() for each in self.brokers.split(",") if each.strip()]

    def name_server_list(self) -> list[Address]:
        """The name servers; ValueError if one is not an address."""
        parts = self.name_servers.replace(",", ";").split(";")
        return [Address.parse(each.strip()) for each in parts if each.strip()]
