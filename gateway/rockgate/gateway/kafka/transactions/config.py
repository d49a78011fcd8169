"""Settings of transactions."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsConfig:
    """Kafka's transactions: how long one may stay open, and how long its id is remembered."""

    timeout_ms_max: int = field(default=900_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """The longest timeout that a transactional producer may ask for."""
    id_expiry_ms: int = field(default=604_800_000, metadata={"minimum": 1, "maximum": 2**62})
    """How long a transactional id without a transaction is remembered."""
    accept_markers: bool = False
    """Whether clients on other machines may end transactions past their coordinator."""
    offsets_bytes_max: int = field(
        default=32 << 20, metadata={"minimum": 1 << 16, "maximum": 1 << 32}
    )
    """Offsets that open transactions may hold, 256 bytes and metadata each; one an eighth of it."""
