"""AddOffsetsToTxn: a transaction will commit offsets of a group."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Int16,
    Int32,
    Int64,
    String,
    field,
    message,
)


@message(key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    """The transaction and the group."""

    transactional_id: str = field(String)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    group_id: str = field(String)


@message(key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    """Whether the group's offsets are part of it now."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
