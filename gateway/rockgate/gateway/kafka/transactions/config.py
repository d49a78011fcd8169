"""Settings of transactions."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsConfig:
    """Kafka transactions: timeouts, expiry and limits."""

    timeout_ms_max: int = field(default=900_000, metadata={"minimum": 1, "maximum": 2**31 - 1})
    """Maximum transaction timeout of a producer."""
    id_expiry_ms: int = field(default=604_800_000, metadata={"minimum": 1, "maximum": 2**62})
    """How long an inactive transactional id is retained."""
    accept_markers: bool = False
    """Allow clients on other hosts to write transaction markers directly (WriteTxnMarkers)."""
    offsets_bytes_max: int = field(
        default=32 << 20, metadata={"minimum": 1 << 16, "maximum": 1 << 32}
    )
    """Maximum size of the offsets pending in open transactions, at 256 bytes plus metadata each;
    one transaction may use an eighth."""
