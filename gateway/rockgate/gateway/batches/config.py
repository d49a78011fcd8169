"""Settings: limits on record batches that are decoded."""

from dataclasses import dataclass, field

from rockgate.protocol.kafka.records.bounds import BOUNDS, WIDEST, Bounds

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesConfig:
    """Limits on record batches that the server has to decode; most are stored and returned as they
    are."""

    inflated_bytes_max: int = field(
        default=BOUNDS.inflated_bytes_max,
        metadata={"minimum": MIB, "maximum": WIDEST.inflated_bytes_max},
    )
    """Maximum decompressed size of a batch; larger ones are not decoded."""
    records_max: int = field(
        default=BOUNDS.records_max, metadata={"minimum": 1_000, "maximum": WIDEST.records_max}
    )
    """Maximum number of records in a batch."""
    record_headers_max: int = field(
        default=BOUNDS.record_headers_max,
        metadata={"minimum": 1_000, "maximum": WIDEST.record_headers_max},
    )
    """Maximum number of headers of a record."""
    headers_max: int = field(
        default=BOUNDS.headers_max, metadata={"minimum": 1_000, "maximum": WIDEST.headers_max}
    )
    """Maximum number of headers over all records of a batch."""
    decoding_bytes_max: int = field(
        default=2 * BOUNDS.inflated_bytes_max, metadata={"minimum": MIB, "maximum": 2**40}
    )
    """Maximum decompressed size of the batches decoded at the same time; further ones wait. At
    least one is decoded."""

    def bounds(self) -> Bounds:
        """Return what one batch may become."""
        return Bounds(
            inflated_bytes_max=self.inflated_bytes_max,
            records_max=self.records_max,
            record_headers_max=self.record_headers_max,
            headers_max=self.headers_max,
        )
