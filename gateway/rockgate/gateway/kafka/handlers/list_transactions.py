"""ListTransactions: v0-2.

Behaviour
- Every filter that is given must hold: state, producer id, how long it has been open, and a regular
  expression that the whole id matches.
- Patterns are RE2, whose matches take linear time, and at most 4,096 characters.
- Ids that the client may not describe are not listed.
- Unknown states are listed in the response and match nothing. A pattern that cannot be parsed is
  INVALID_REGULAR_EXPRESSION.

Versions
- v1: open for longer than a duration in milliseconds.  v2: a pattern.

Departs from Kafka
- With a duration, only ids with an open transaction are listed. Kafka treats the missing start time
  of an Empty id as long ago, and lists all of them regardless of the duration.
- A request whose response would exceed 90 MiB is rejected with POLICY_VIOLATION; request less at a
  time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from rockgate.gateway.kafka.request.chunked import Growing, Room, Turn
from rockgate.gateway.kafka.request.errors import coordinator_code
from rockgate.gateway.kafka.request.handler import Call
from rockgate.gateway.kafka.request.patterns import compile_pattern
from rockgate.gateway.kafka.request.permitted import UNCHECKED, Permitted
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.kafka.transactions.transaction import Transaction, TransactionState
from rockgate.gateway.security.grants import AclOperation, AclResourceType
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.kafka.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from rockgate.protocol.kafka.messages.list_transactions import TransactionState as ListedTransaction
from rockgate.store.api.clock import Clock

SLICE_COUNT: Final = 500
"""Ids that are read at once; more of them in slices."""
PIECE_COUNT: Final = 50
_STATES: Final = frozenset(state.value for state in TransactionState)


class ListTransactions:
    """Lists transactional ids."""

    def __init__(
        self, *, transactions: Transactions, clock: Clock, permitted: Permitted = UNCHECKED
    ) -> None:
        self._may = permitted.may
        self._transactions = transactions
        self._clock = clock

    def handle(
        self, request: ListTransactionsRequest, call: Call
    ) -> ListTransactionsResponse | Awaitable[ListTransactionsResponse]:
        """List those that pass the filters."""
        pattern = None
        if request.transactional_id_pattern:
            try:
                pattern = compile_pattern(request.transactional_id_pattern)
            except ValueError:
                return self.refuse(request, ErrorCode.INVALID_REGULAR_EXPRESSION)
        wanted = frozenset(request.state_filters)
        ids = frozenset(request.producer_id_filters)
        before_ms = self._clock.now_ms() - request.duration_filter
        may, peer, type_ = self._may, call.peer, AclResourceType.TRANSACTIONAL_ID

        def passes(each: Transaction) -> bool:
            return (
                (not wanted or each.state.value in wanted)
                and (not ids or each.producer.id in ids)
                and (request.duration_filter < 0 or 0 <= each.start_ms < before_ms)
                and (pattern is None or pattern.fullmatch(each.id) is not None)
                and may(peer, AclOperation.DESCRIBE, type_, each.id)
            )

        response = ListTransactionsResponse(unknown_state_filters=sorted(wanted - _STATES))
        place, found = self._transactions.page(0, SLICE_COUNT)
        response.transaction_states = [_state(each) for each in found if passes(each)]
        if place is None:
            return response
        return self._list_rest(place, response, passes, call.version)

    async def _list_rest(
        self,
        place: int | None,
        response: ListTransactionsResponse,
        passes: Callable[[Transaction], bool],
        version: int,
    ) -> ListTransactionsResponse:
        """List the rest, with other requests in between."""
        turn = Turn()
        listed = Growing(ListTransactionsResponse, ListedTransaction, version, Room())
        while place is not None:
            if turn.is_over:
                await turn.next()
            place, found = self._transactions.page(place, PIECE_COUNT)
            for each in found:
                if passes(each):
                    listed.add(_state(each))
        response.transaction_states += listed.take()
        return response

    def refuse(self, request: ListTransactionsRequest, code: ErrorCode) -> ListTransactionsResponse:
        """An error and no ids."""
        return ListTransactionsResponse(error_code=coordinator_code(code))


def _state(transaction: Transaction) -> ListedTransaction:
    return ListedTransaction(
        transactional_id=transaction.id,
        producer_id=transaction.producer.id,
        transaction_state=transaction.state.value,
    )
