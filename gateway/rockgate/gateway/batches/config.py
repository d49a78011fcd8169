"""Settings of what a record batch may become when it is opened."""

from dataclasses import dataclass, field

from rockgate.protocol.kafka.records.bounds import BOUNDS, WIDEST, Bounds

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesConfig:
    """Record batches, where they have to be opened: most pass through the server closed."""

    inflated_bytes_max: int = field(
        default=BOUNDS.inflated_bytes_max,
        metadata={"minimum": MIB, "maximum": WIDEST.inflated_bytes_max},
    )
    """What the records of one batch may take in plain; a batch with more is opened by nobody."""
    records_max: int = field(
        default=BOUNDS.records_max, metadata={"minimum": 1_000, "maximum": WIDEST.records_max}
    )
    """Records of one batch, where it has to be opened."""
    record_headers_max: int = field(
        default=BOUNDS.record_headers_max,
        metadata={"minimum": 1_000, "maximum": WIDEST.record_headers_max},
    )
    """Headers of one record, where its batch has to be opened."""
    headers_max: int = field(
        default=BOUNDS.headers_max, metadata={"minimum": 1_000, "maximum": WIDEST.headers_max}
    )
    """Headers of all records of one batch, where it has to be opened."""
    opening_bytes_max: int = field(
        default=2 * BOUNDS.inflated_bytes_max, metadata={"minimum": MIB, "maximum": 2**40}
    )
    """What batches that are being opened may take in plain at a time; others wait. One may be."""

    def bounds(self) -> Bounds:
        """Return what one batch may become."""
        return Bounds(
            inflated_bytes_max=self.inflated_bytes_max,
            records_max=self.records_max,
            record_headers_max=self.record_headers_max,
            headers_max=self.headers_max,
        )
