"""Settings of the console: where it listens, which server it shows, and what it hides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rockgate.cli.admin.metrics import MetricsSource
from rockgate.gateway.net.address import Address
from rockgate.sdk.client_config import ClientConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The listeners of one server or cluster."""

    kafka: Sequence[Address]
    remoting: Address
    metrics: Address | None
    metrics_tls: bool = False

    def source(self, config: ClientConfig) -> MetricsSource | None:
        """The metrics page, with the login of a config."""
        if self.metrics is None:
            return None
        return MetricsSource(
            address=self.metrics,
            tls=config.kafka_tls if self.metrics_tls else None,
            username=config.username,
            password=config.password,
        )

    def __str__(self) -> str:
        return ", ".join(map(str, self.kafka))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `rockgate console` was started with."""

    listen: Address
    servers: Servers
    config: ClientConfig
    timeout_s: float = 10.0
    demands_login: bool = False
    """Whether whoever opens a page logs in as a user of the server."""
    is_read_only: bool = False
    hosts: Sequence[str] = ()
    """Names in addition to the address it listens on that browsers may use for it."""
    certificate: str | None = None
    """A file in PEM: the console then speaks TLS."""
    key: str | None = None
    schema_registry: str | None = None
    """Its address, with a login where it needs one."""
    is_behind_tls: bool = False
    """Whether a proxy serves it over TLS."""
    masks: Sequence[str] = ()
    """`FIELD`, or `TOPIC:FIELD`: fields of messages whose values are hidden."""

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it over TLS."""
        return self.certificate is not None or self.is_behind_tls
