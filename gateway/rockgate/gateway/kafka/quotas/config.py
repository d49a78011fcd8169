"""Settings of client quotas."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasConfig:
    """How rates are measured that quotas limit."""

    window_count: int = field(default=11, metadata={"minimum": 2, "maximum": 1_000})
    """Windows that a rate is measured over; the one under way is among them."""
    window_ms: int = field(default=1_000, metadata={"minimum": 10, "maximum": 3_600_000})
    """How long a window is."""
    mutation_window_count: int = field(default=11, metadata={"minimum": 2, "maximum": 1_000})
    """As `window_count`, for partitions that are created and deleted."""
    mutation_window_ms: int = field(default=1_000, metadata={"minimum": 10, "maximum": 3_600_000})
    """As `window_ms`, for partitions that are created and deleted."""
