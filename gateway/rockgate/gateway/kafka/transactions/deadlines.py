"""Aborts transactions that time out, and expires transactional ids that are not used.

A transaction's time is measured by a monotonic clock, so that setting the machine's clock neither
ends it early nor leaves it open. Only a start has to rely on the time that was saved: whatever that
is, nothing is due before now nor later than a whole timeout from now.
"""

from __future__ import annotations

import logging
from heapq import heapify, heappop, heappush
from typing import Final

from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.kafka.transactions.transaction import PREPARED, Transaction, TransactionState
from rockgate.store.api.clock import Clock, TrustedTime
from rockgate.store.api.problems import DeferralLog
from rockgate.store.errors import StoreError

EXPIRY_EVERY_MS: Final = 60_000
RETRY_MS: Final = 1_000
"""How long to wait before an abort that could not be written is retried."""
PLACES_PER_STEP: Final = 1_000
ABORTS_PER_STEP: Final = 10
log = logging.getLogger(__name__)


class _Armed:
    """The deadline of one transactional id; extended by each transaction, and checked when due."""

    __slots__ = ("due_ms", "rings_ms")

    def __init__(self, due_ms: int) -> None:
        self.due_ms = due_ms
        self.rings_ms = due_ms


class Deadlines:
    """Tracks the deadlines of all transactions. Notified of each begin; stepped by the upkeep."""

    def __init__(
        self,
        *,
        transactions: Transactions,
        coordinator: Coordinator,
        clock: Clock,
        id_expiry_ms: int,
    ) -> None:
        self._transactions = transactions
        self._coordinator = coordinator
        self._clock = clock
        self._id_expiry_ms = id_expiry_ms
        self._trusted_time = TrustedTime(clock)
        self._aborts = DeferralLog(log, "aborts of timed-out transactions")
        self._armed: dict[str, _Armed] = {}
        self._rings: list[tuple[int, str]] = []
        """When to check which id, monotonic; an id that was extended since has another entry."""
        self._resume()
        self._place = 0
        self._next_walk_ms = clock.monotonic_ms() + EXPIRY_EVERY_MS
        coordinator.on_begun.append(self.begun)

    def _resume(self) -> None:
        """Watch the transactions that were open at the last stop for the rest of their timeouts."""
        wall_ms, now_ms = self._clock.now_ms(), self._clock.monotonic_ms()
        for each in self._transactions.all():
            if each.state is TransactionState.ONGOING:
                left_ms = each.start_ms + each.timeout_ms - wall_ms
                due_ms = now_ms + min(max(left_ms, 0), each.timeout_ms)
                self._armed[each.id] = _Armed(due_ms)
                self._rings.append((due_ms, each.id))
        heapify(self._rings)

    def begun(self, transaction: Transaction) -> None:
        """Watch a transaction from now on."""
        due_ms = self._clock.monotonic_ms() + transaction.timeout_ms
        armed = self._armed.get(transaction.id)
        if armed is not None and armed.rings_ms <= due_ms:
            armed.due_ms = due_ms
            return
        self._armed[transaction.id] = _Armed(due_ms)
        heappush(self._rings, (due_ms, transaction.id))

    def step(self) -> bool:
        """Process some of what is due; True if there is more."""
        return self._abort_late() or self._forget_unused()

    def _abort_late(self) -> bool:
        now_ms = self._clock.monotonic_ms()
        for _ in range(ABORTS_PER_STEP):
            if not self._rings or self._rings[0][0] > now_ms:
                return False
            rings_ms, id_ = heappop(self._rings)
            armed = self._armed.get(id_)
            if armed is None or armed.rings_ms != rings_ms:
                continue
            transaction = self._transactions.find(id_)
            if transaction is None or transaction.state is not TransactionState.ONGOING:
                del self._armed[id_]
            elif armed.due_ms > now_ms:
                self._ring_again(id_, armed, armed.due_ms)
            elif self._abort(transaction):
                del self._armed[id_]
            else:
                self._ring_again(id_, armed, now_ms + RETRY_MS)
        return True

    def _ring_again(self, id_: str, armed: _Armed, at_ms: int) -> None:
        armed.rings_ms = at_ms
        heappush(self._rings, (at_ms, id_))

    def _abort(self, transaction: Transaction) -> bool:
        try:
            self._coordinator.time_out(transaction)
        except StoreError as error:
            self._aborts.report(error)
            return False
        self._aborts.end()
        return True

    def _forget_unused(self) -> bool:
        if not self._place and self._clock.monotonic_ms() < self._next_walk_ms:
            return False
        before_ms = self._trusted_time.now_ms() - self._id_expiry_ms
        place, found = self._transactions.page(self._place, PLACES_PER_STEP)
        self._coordinator.forget(
            [
                each
                for each in found
                if each.changed_ms < before_ms
                and each.state is not TransactionState.ONGOING
                and each.state not in PREPARED
            ]
        )
        self._place = place or 0
        if place is None:
            self._next_walk_ms = self._clock.monotonic_ms() + EXPIRY_EVERY_MS
        return place is not None
