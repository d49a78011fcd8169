"""Settings of client metrics."""

from dataclasses import dataclass, field

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMetricsConfig:
    """Whether clients push their metrics, and how much of them."""

    enabled: bool = False
    """Whether clients may push their own metrics (KIP-714), which `/metrics` then exports."""
    push_bytes_max: int = field(default=MIB, metadata={"minimum": KIB, "maximum": 16 * MIB})
    """Maximum size of a push as it is sent."""
    inflated_bytes_max: int = field(default=4 * MIB, metadata={"minimum": KIB, "maximum": 64 * MIB})
    """Maximum size of a push when it is decompressed."""
    clients_max: int = field(default=1_000, metadata={"minimum": 1, "maximum": 100_000})
    """Maximum number of clients whose metrics are retained, those heard last."""
    series_max: int = field(default=20_000, metadata={"minimum": 0, "maximum": 1_000_000})
    """Maximum number of series of all clients together; further ones are only counted."""
