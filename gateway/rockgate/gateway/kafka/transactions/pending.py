"""Pending offsets: what open transactions would commit for groups, indexed by group.

Their size is counted here as well, by transaction and in total, because they stay in memory until
their transaction has ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rockgate.gateway.kafka.transactions.transaction import (
    Offset,
    Partition,
    PendingOffset,
    Transaction,
)

FIXED_SIZE: Final = 256
"""Counted size of an offset without metadata: about half of its memory."""


def size_of(offset: Offset | PendingOffset) -> int:
    """Return the counted size of an offset."""
    metadata = offset.metadata
    return FIXED_SIZE + (len(metadata) if metadata.isascii() else 4 * len(metadata))


class PendingOffsets:
    """All pending offsets. The fold adds and removes them."""

    def __init__(self) -> None:
        self.size = 0
        """Total counted size in bytes."""
        self._counts: dict[str, dict[Partition, int]] = {}
        """How many transactions have an offset pending, by group and partition."""
        self._owners: dict[str, dict[str, Transaction]] = {}
        """Those transactions, by group and transactional id."""

    def has(self, group: str) -> bool:
        """Whether any is pending for a group."""
        return group in self._counts

    def groups(self) -> Iterable[str]:
        """Return the groups that have any; valid until the next change."""
        return self._counts

    def has_at(self, group: str, topic_id: bytes, queue_id: int) -> bool:
        """Whether any is pending for a group's partition."""
        counts = self._counts.get(group)
        return counts is not None and (topic_id, queue_id) in counts

    def owners(self, group: str) -> list[Transaction]:
        """Return the transactions that have offsets pending for a group."""
        return list(self._owners.get(group, {}).values())

    def put(self, transaction: Transaction, group: str, offset: PendingOffset) -> None:
        """Add an offset, or replace the transaction's earlier one."""
        partition = offset.topic_id, offset.queue_id
        pending = transaction.offsets.setdefault(group, {})
        known = pending.get(partition)
        pending[partition] = offset
        if known is None:
            counts = self._counts.setdefault(group, {})
            counts[partition] = counts.get(partition, 0) + 1
            self._owners.setdefault(group, {})[transaction.id] = transaction
        self._grow(transaction, size_of(offset) - (0 if known is None else size_of(known)))

    def take(self, transaction: Transaction, group: str, partitions: Iterable[Partition]) -> None:
        """Remove some; missing ones are ignored."""
        pending = transaction.offsets.get(group)
        if pending is None:
            return
        counts = self._counts[group]
        for partition in partitions:
            known = pending.pop(partition, None)
            if known is None:
                continue
            self._grow(transaction, -size_of(known))
            if counts[partition] > 1:
                counts[partition] -= 1
            else:
                del counts[partition]
        if not pending:
            del transaction.offsets[group]
            owners = self._owners[group]
            del owners[transaction.id]
            if not owners:
                del self._owners[group], self._counts[group]

    def take_all(self, transaction: Transaction) -> None:
        """Remove all offsets of a transaction."""
        for group, pending in list(transaction.offsets.items()):
            self.take(transaction, group, list(pending))

    def clear(self) -> None:
        """Forget everything."""
        self.size = 0
        self._counts.clear()
        self._owners.clear()

    def _grow(self, transaction: Transaction, by: int) -> None:
        transaction.offsets_size += by
        self.size += by
