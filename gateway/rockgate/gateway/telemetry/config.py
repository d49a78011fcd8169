"""Settings of what the server tells of itself."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """How much `/metrics` tells."""

    topics_max: int = field(default=200, metadata={"minimum": 0, "maximum": 100_000})
    """Topics that have series of their own, the oldest first; the others are only counted."""
    groups_max: int = field(default=200, metadata={"minimum": 0, "maximum": 100_000})
    """Pairs of group and topic whose lag has a series of its own, the largest of all."""
