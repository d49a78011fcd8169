"""AddPartitionsToTxn: add the partitions that a transaction will write to.

Clients use v0-3, with one transaction in the `v3_and_below` fields; v4 and v5 carry many and are
used by brokers for verification. With transactions v2 the Produce request does this by itself.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    field,
    message,
    struct,
)


@struct
class AddPartitionsToTxnTopic:
    """Partitions of one topic."""

    name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@struct
class AddPartitionsToTxnTransaction:
    """One transaction and its partitions, from v4."""

    transactional_id: str = field(String)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    verify_only: bool = field(Bool)
    topics: list[AddPartitionsToTxnTopic] = field(Array(AddPartitionsToTxnTopic))


@message(key=ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    """Partitions to add, or from v4 only to verify."""

    transactions: list[AddPartitionsToTxnTransaction] = field(
        Array(AddPartitionsToTxnTransaction), "4+"
    )
    v3_and_below_transactional_id: str = field(String, "0-3")
    v3_and_below_producer_id: int = field(Int64, "0-3")
    v3_and_below_producer_epoch: int = field(Int16, "0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(
        Array(AddPartitionsToTxnTopic), "0-3"
    )


@struct
class AddPartitionsToTxnPartitionResult:
    """Whether one partition was added."""

    partition_index: int = field(Int32)
    partition_error_code: int = field(Int16)


@struct
class AddPartitionsToTxnTopicResult:
    """The outcome for one topic."""

    name: str = field(String)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(
        Array(AddPartitionsToTxnPartitionResult)
    )


@struct
class AddPartitionsToTxnResult:
    """The outcome for one transaction, from v4."""

    transactional_id: str = field(String)
    topic_results: list[AddPartitionsToTxnTopicResult] = field(Array(AddPartitionsToTxnTopicResult))


@message(key=ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    """The outcome, by topic up to v3 and by transaction from v4."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16, "4+")
    results_by_transaction: list[AddPartitionsToTxnResult] = field(
        Array(AddPartitionsToTxnResult), "4+"
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(
        Array(AddPartitionsToTxnTopicResult), "0-3"
    )
