"""ListTransactions: v0-2.

Behaviour
- Every filter that is given must hold: state, producer id, how long it has been open, and a regular
  expression that the whole id matches.
- States that do not exist are told, and let nothing through. A pattern that cannot be read is
  INVALID_REGULAR_EXPRESSION.

Versions
- v1: open for longer than so many milliseconds.  v2: a pattern.

Departs from Kafka
- Patterns are Python's, without repeated groups (see `patterns`); Kafka's are RE2's.
"""

from __future__ import annotations

from typing import Final

from rockgate.gateway.kafka.errors import coordinator_code
from rockgate.gateway.kafka.patterns import compile_pattern
from rockgate.gateway.kafka.peer import Call
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.kafka.transactions.transaction import State, Transaction
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from rockgate.store.clock import Clock

_STATES: Final = frozenset(state.value for state in State)


class ListTransactions:
    """Lists transactional ids."""

    def __init__(self, *, transactions: Transactions, clock: Clock) -> None:
        self._transactions = transactions
        self._clock = clock

    def handle(self, request: ListTransactionsRequest, call: Call) -> ListTransactionsResponse:
        """List those that pass."""
        pattern = None
        if request.transactional_id_pattern:
            try:
                pattern = compile_pattern(request.transactional_id_pattern)
            except ValueError:
                return self.refuse(request, ErrorCode.INVALID_REGULAR_EXPRESSION)
        wanted = frozenset(request.state_filters)
        ids = frozenset(request.producer_id_filters)
        before_ms = self._clock.now_ms() - request.duration_filter

        def passes(each: Transaction) -> bool:
            return (
                (not wanted or each.state.value in wanted)
                and (not ids or each.producer.id in ids)
                and (request.duration_filter < 0 or 0 <= each.start_ms < before_ms)
                and (pattern is None or pattern.fullmatch(each.id) is not None)
            )

        return ListTransactionsResponse(
            unknown_state_filters=sorted(wanted - _STATES),
            transaction_states=[
                TransactionState(
                    transactional_id=each.id,
                    producer_id=each.producer.id,
                    transaction_state=each.state.value,
                )
                for each in self._transactions.all()
                if passes(each)
            ],
        )

    def refuse(self, request: ListTransactionsRequest, code: ErrorCode) -> ListTransactionsResponse:
        """An error and no ids."""
        return ListTransactionsResponse(error_code=coordinator_code(code))
