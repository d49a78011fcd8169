"""Settings of client quotas."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasConfig:
    """How the rates that quotas limit are measured."""

    window_count: int = field(default=11, metadata={"minimum": 2, "maximum": 1_000})
    """Number of samples retained to measure a rate, including the current one."""
    window_ms: int = field(default=1_000, metadata={"minimum": 10, "maximum": 3_600_000})
    """Length of a sample."""
    mutation_window_count: int = field(default=11, metadata={"minimum": 2, "maximum": 1_000})
    """`window_count` for the controller mutation rate."""
    mutation_window_ms: int = field(default=1_000, metadata={"minimum": 10, "maximum": 3_600_000})
    """`window_ms` for the controller mutation rate."""
