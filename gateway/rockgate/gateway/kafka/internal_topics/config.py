"""Settings of Kafka's internal topics."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopicsConfig:
    """The internal topics that tools of Kafka's look for."""

    enabled: bool = True
    """Write committed offsets and transactional ids to `__consumer_offsets` and
    `__transaction_state` too, for tools that read them."""
    offsets_partitions: int = field(default=50, metadata={"minimum": 1, "maximum": 10_000})
    """Number of partitions of `__consumer_offsets` when it is created."""
    transactions_partitions: int = field(default=50, metadata={"minimum": 1, "maximum": 10_000})
    """Number of partitions of `__transaction_state` when it is created."""
