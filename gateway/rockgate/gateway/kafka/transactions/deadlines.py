"""Transactions that take too long are aborted, and ids that nobody uses are forgotten."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from rockgate.gateway.kafka.transactions.coordinator import Coordinator
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.kafka.transactions.transaction import PREPARED, State, Transaction
from rockgate.store.clock import Clock

EXPIRY_EVERY_MS: Final = 60_000
PLACES_PER_STEP: Final = 1_000
FENCES_PER_STEP: Final = 10


class Deadlines:
    """Watches the time of all transactions. Told of each that begins; stepped by the upkeep."""

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
        self._due = [_deadline(each) for each in transactions.all() if each.state is State.ONGOING]
        heapify(self._due)
        self._place = 0
        self._next_walk_ms = clock.monotonic_ms() + EXPIRY_EVERY_MS
        coordinator.on_begun = self.begun

    def begun(self, transaction: Transaction) -> None:
        """Watch a transaction from now on."""
        heappush(self._due, _deadline(transaction))

    def step(self) -> bool:
        """Do what is due, a little of it; say whether there is more."""
        return self._abort_late() or self._forget_unused()

    def _abort_late(self) -> bool:
        now_ms = self._clock.now_ms()
        for _ in range(FENCES_PER_STEP):
            if not self._due or self._due[0][0] > now_ms:
                return False
            _, id_, start_ms = heappop(self._due)
            transaction = self._transactions.find(id_)
            if transaction is not None and transaction.start_ms == start_ms:
                self._coordinator.time_out(transaction)
        return True

    def _forget_unused(self) -> bool:
        if not self._place and self._clock.monotonic_ms() < self._next_walk_ms:
            return False
        before_ms = self._clock.now_ms() - self._id_expiry_ms
        place, found = self._transactions.page(self._place, PLACES_PER_STEP)
        self._coordinator.forget(
            [
                each
                for each in found
                if each.changed_ms < before_ms
                and each.state is not State.ONGOING
                and each.state not in PREPARED
            ]
        )
        self._place = place or 0
        if place is None:
            self._next_walk_ms = self._clock.monotonic_ms() + EXPIRY_EVERY_MS
        return place is not None


def _deadline(transaction: Transaction) -> tuple[int, str, int]:
    return transaction.start_ms + transaction.timeout_ms, transaction.id, transaction.start_ms
