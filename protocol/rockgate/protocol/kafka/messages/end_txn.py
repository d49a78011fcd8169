"""EndTxn: commit or abort a transaction.

From v5 every end raises the producer's epoch, and the response carries the new one (KIP-890).
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    field,
    message,
)


@message(key=ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnRequest:
    """The transaction, and how it ends."""

    transactional_id: str = field(String)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    committed: bool = field(Bool)


@message(key=ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnResponse:
    """The outcome; from v5 the id and epoch to continue with."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    producer_id: int = field(Int64, "5+", default=-1)
    producer_epoch: int = field(Int16, "5+", default=-1)
