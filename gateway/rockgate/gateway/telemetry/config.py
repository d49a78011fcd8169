"""Settings of metrics."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """Limits on the series of `/metrics`."""

    topics_max: int = field(default=200, metadata={"minimum": 0, "maximum": 100_000})
    """Maximum number of topics with series of their own, oldest first; the rest are only counted.
    """
    groups_max: int = field(default=200, metadata={"minimum": 0, "maximum": 100_000})
    """Maximum number of group and topic pairs with lag series, largest lag first."""
