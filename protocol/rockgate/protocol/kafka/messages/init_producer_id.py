"""InitProducerId: an id and epoch for an idempotent or transactional producer.

With a transactional id it also ends the open transaction of an earlier producer. From v3 a producer
may ask to raise the epoch of the id it has (KIP-360).
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Int16,
    Int32,
    Int64,
    NullableString,
    field,
    message,
)


@message(key=ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+")
class InitProducerIdRequest:
    """The producer; a null transactional id means without transactions."""

    transactional_id: str | None = field(NullableString)
    transaction_timeout_ms: int = field(Int32)
    producer_id: int = field(Int64, "3+", default=-1)
    producer_epoch: int = field(Int16, "3+", default=-1)


@message(key=ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+")
class InitProducerIdResponse:
    """The id and epoch to put into batches."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    producer_id: int = field(Int64, default=-1)
    producer_epoch: int = field(Int16)
