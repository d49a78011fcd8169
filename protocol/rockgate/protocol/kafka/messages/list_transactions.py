"""ListTransactions: the transactional ids this broker coordinates.

v1 filters by age in milliseconds, v2 by a regular expression over ids.
"""

from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    NullableString,
    SlicedArray,
    String,
    field,
    message,
    struct,
)


@message(key=ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    """Which to list; empty filters match everything."""

    state_filters: list[str] = field(Array(String))
    producer_id_filters: list[int] = field(Array(Int64))
    duration_filter: int = field(Int64, "1+", default=-1)
    transactional_id_pattern: str | None = field(NullableString, "2+", default=None)


@struct
class TransactionState:
    """One transactional id."""

    transactional_id: str = field(String)
    producer_id: int = field(Int64)
    transaction_state: str = field(String)


@message(key=ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    """The transactional ids that match."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    unknown_state_filters: list[str] = field(Array(String))
    transaction_states: list[TransactionState] = field(SlicedArray(TransactionState))
