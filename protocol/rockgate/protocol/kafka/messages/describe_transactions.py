"""DescribeTransactions: the state of transactional ids, with the partitions they have open."""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    SlicedArray,
    String,
    field,
    message,
    struct,
)


@message(key=ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    """The transactional ids to describe."""

    transactional_ids: list[str] = field(Array(String))


@struct
class TopicData:
    """Partitions of one topic."""

    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@struct
class TransactionState:
    """One transactional id; the start time is -1 when nothing is open."""

    error_code: int = field(Int16)
    transactional_id: str = field(String)
    transaction_state: str = field(String)
    transaction_timeout_ms: int = field(Int32)
    transaction_start_time_ms: int = field(Int64)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    topics: list[TopicData] = field(SlicedArray(TopicData))


@message(key=ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    """The transactional ids asked for."""

    throttle_time_ms: int = field(Int32)
    transaction_states: list[TransactionState] = field(SlicedArray(TransactionState))
