"""WriteTxnMarkers: end a transaction in single partitions.

Brokers send it to each other, and administrators abort hanging transactions with it. v2 adds the
version of the transaction (KIP-1228).
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    field,
    message,
    struct,
)


@struct
class WritableTxnMarkerTopic:
    """Partitions of one topic."""

    name: str = field(String)
    partition_indexes: list[int] = field(Array(Int32))


@struct
class WritableTxnMarker:
    """How one producer's transaction ends, and where."""

    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    transaction_result: bool = field(Bool)
    topics: list[WritableTxnMarkerTopic] = field(Array(WritableTxnMarkerTopic))
    coordinator_epoch: int = field(Int32)
    transaction_version: int = field(Int8, "2+")


@message(key=ApiKey.WRITE_TXN_MARKERS, versions="1-2", flexible="1+")
class WriteTxnMarkersRequest:
    """The markers to write."""

    markers: list[WritableTxnMarker] = field(Array(WritableTxnMarker))


@struct
class WritableTxnMarkerPartitionResult:
    """Whether one marker was written."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@struct
class WritableTxnMarkerTopicResult:
    """The outcome for one topic."""

    name: str = field(String)
    partitions: list[WritableTxnMarkerPartitionResult] = field(
        Array(WritableTxnMarkerPartitionResult)
    )


@struct
class WritableTxnMarkerResult:
    """The outcome for one producer."""

    producer_id: int = field(Int64)
    topics: list[WritableTxnMarkerTopicResult] = field(Array(WritableTxnMarkerTopicResult))


@message(key=ApiKey.WRITE_TXN_MARKERS, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse:
    """The outcome for each of them."""

    markers: list[WritableTxnMarkerResult] = field(Array(WritableTxnMarkerResult))
