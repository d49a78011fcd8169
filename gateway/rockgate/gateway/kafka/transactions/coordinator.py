"""The transaction coordinator: carries out transactions, as entries of the log.

What is allowed is decided in `transaction`; here it is appended, in one atomic group where several
changes belong together. When a method returns its change is made; handlers wait for the disk before
they respond, where the setting requires it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from rockgate.gateway.kafka.produce.producers import Producers
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.gateway.kafka.transactions import changes
from rockgate.gateway.kafka.transactions.changes import TOPIC, TransactionChangeKind
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.kafka.transactions.markers import Markers
from rockgate.gateway.kafka.transactions.pending import size_of
from rockgate.gateway.kafka.transactions.transaction import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_ID,
    Ending,
    Offset,
    Partition,
    PendingOffset,
    ProducerIdAndEpoch,
    Transaction,
    TransactionState,
)
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.api.append import Appender, Draft, Intake
from rockgate.store.api.progress import Commit, Progress, Removed, check_group
from rockgate.store.api.topics import TopicLookup

MARKERS_PER_GROUP: Final = 200
"""Markers that are written at once: about two milliseconds."""
OFFSETS_SIZE_PER_GROUP: Final = 256 << 10
"""Bytes of offsets that are committed at once, as counted: a few milliseconds."""
OFFSETS_SHARE: Final = 8
"""One transaction may use this fraction of all pending offsets."""


class Ended(NamedTuple):
    """The end of a transaction."""

    producer: ProducerIdAndEpoch
    """The id and epoch to continue with."""
    is_sync: bool = False
    """Whether it waits for the disk, because a partition that it wrote to does."""


class Coordinator:
    """Coordinates all transactional ids."""

    def __init__(
        self,
        *,
        transactions: Transactions,
        producers: Producers,
        markers: Markers,
        appender: Appender,
        progress: Progress,
        topics: TopicLookup,
        timeout_ms_max: int,
        offsets_bytes_max: int,
    ) -> None:
        self._transactions = transactions
        self._producers = producers
        self._markers = markers
        self._appender = appender
        self._progress = progress
        self._topics = topics
        self._timeout_ms_max = timeout_ms_max
        self._offsets_bytes_max = offsets_bytes_max
        progress.on_removed.append(self._drop)
        self._unfinished: list[Transaction] = []
        self.on_begun: list[Callable[[Transaction], None]] = []
        """Called for every transaction that begins; its timeout is watched elsewhere."""

    def resume(self) -> None:
        """Resume the completions that a stop interrupted."""
        self._unfinished = self._transactions.prepared()

    # Beginning

    def init(
        self, id_: str, timeout_ms: int, asked: ProducerIdAndEpoch | None
    ) -> ProducerIdAndEpoch:
        """Initialize a producer with a transactional id; a transaction left open is aborted."""
        if not 0 < timeout_ms <= self._timeout_ms_max:
            raise RequestError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"Transaction timeout of {timeout_ms:,} ms must be from 1 to "
                f"{self._timeout_ms_max:,} ms.",
            )
        transaction = self._transactions.find(id_)
        if transaction is None:
            # Whatever id the caller has was removed here.
            return self._begin(
                id_, ProducerIdAndEpoch(self._producers.new_id(), 0), None, timeout_ms
            )
        producer = transaction.init(asked)
        if transaction.state is TransactionState.ONGOING:
            # Its own producer may have to retry the end of a large one, and is known then.
            is_own = asked is not None
            ending = self._aborting(transaction) if is_own else transaction.fencing()
            self._end(transaction, ending)
            transaction.check_idle()
            producer = transaction.init(asked)
        if producer is None:
            producer = ProducerIdAndEpoch(self._producers.new_id(), 0)
        return self._begin(id_, producer, asked, timeout_ms)

    def _begin(
        self,
        id_: str,
        producer: ProducerIdAndEpoch,
        last: ProducerIdAndEpoch | None,
        timeout_ms: int,
    ) -> ProducerIdAndEpoch:
        last = ProducerIdAndEpoch(NO_ID, NO_EPOCH) if last is None else last
        self._append(TransactionChangeKind.INIT, changes.Init(id_, producer, last, timeout_ms))
        return producer

    # During

    def add(
        self,
        id_: str,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[Partition] = (),
        groups: Iterable[str] = (),
    ) -> None:
        """Add partitions and groups to the transaction, which begins if there is none."""
        transaction = self._of(id_, producer)
        transaction.check_idle()
        self._include(transaction, partitions, groups)

    def verify(self, id_: str, producer: ProducerIdAndEpoch, partition: Partition) -> bool:
        """Whether a partition is part of the ongoing transaction."""
        transaction = self._of(id_, producer)
        transaction.check_idle()
        return transaction.state is TransactionState.ONGOING and partition in transaction.partitions

    def admit(self, id_: str, producer: ProducerIdAndEpoch, group: str, *, adds: bool) -> bool:
        """Return whether a group is part of the transaction; with `adds` it is added."""
        transaction = self._of(id_, producer)
        transaction.check_idle()
        check_group(group)
        if transaction.state is TransactionState.ONGOING and group in transaction.groups:
            return True
        if adds:
            self._include(transaction, (), (group,))
        return adds

    def offsets(
        self, id_: str, producer: ProducerIdAndEpoch, group: str, offsets: Sequence[Offset]
    ) -> None:
        """Hold offsets of a group that is part of the transaction until its commit."""
        transaction = self._of(id_, producer)
        self._check_room(transaction, sum(map(size_of, offsets)))
        # Offsets that are still to be appended were committed before these.
        self._progress.settle(group, [(each.topic_id, each.queue_id) for each in offsets])
        size_each = max(map(size_of, offsets), default=1)
        for part in changes.in_parts(list(offsets), size_each):
            self._append(TransactionChangeKind.OFFSETS, changes.Offsets(id_, group, part))

    def _check_room(self, transaction: Transaction, size: int) -> None:
        """Reject offsets beyond the limit of pending ones: all are in memory until the end."""
        own_size, all_size = transaction.offsets_size + size, self._transactions.pending.size + size
        if own_size > self._offsets_bytes_max // OFFSETS_SHARE or (
            all_size > self._offsets_bytes_max
        ):
            raise RequestError(
                ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
                f"Pending offsets ({own_size:,} bytes in the transaction of "
                f"'{transaction.id}', {all_size:,} in total) exceed "
                f"transactions.offsets_bytes_max ({self._offsets_bytes_max:,}).",
            )

    def _drop(self, removals: Sequence[Removed]) -> None:
        """Drop pending offsets that are removed."""
        has = self._transactions.pending.has
        found = [each for each in removals if has(each.group)]
        size_each = max((4 * len(e.group) + 5 * len(e.queue_ids or ()) for e in found), default=1)
        for part in changes.in_parts(found, size_each + 32):
            self._append(TransactionChangeKind.DROP, changes.Drop(part))

    def _include(
        self, transaction: Transaction, partitions: Iterable[Partition], groups: Iterable[str]
    ) -> None:
        is_new = transaction.state is not TransactionState.ONGOING
        if not is_new:
            partitions = [each for each in partitions if each not in transaction.partitions]
            groups = [each for each in groups if each not in transaction.groups]
        by_topic, groups = changes.by_topic(partitions), list(groups)
        if is_new or by_topic or groups:
            self._append(TransactionChangeKind.ADD, changes.Add(transaction.id, by_topic, groups))
        if is_new:
            for callback in self.on_begun:
                callback(transaction)

    # Ending

    def end(self, id_: str, producer: ProducerIdAndEpoch, is_commit: bool, is_v2: bool) -> Ended:
        """Commit or abort; returns the producer to continue with."""
        transaction = self._find(id_)
        new_id = self._new_id(transaction) if is_v2 else NO_ID
        ending = transaction.end(producer, is_commit, is_v2, new_id)
        if ending is None:
            return Ended(transaction.producer)
        is_sync = any(map(self._markers.is_sync, transaction.partitions))
        self._end(transaction, ending)
        return Ended(ending.next, is_sync)

    def time_out(self, transaction: Transaction) -> None:
        """Abort a transaction that timed out.

        Its producer continues as after its own abort, if it asks to abort or to start over.
        """
        if transaction.state is TransactionState.ONGOING:
            self._end(transaction, self._aborting(transaction))

    def forget(self, transactions: Sequence[Transaction]) -> None:
        """Remove transactional ids."""
        if transactions:
            self._append(
                TransactionChangeKind.REMOVE, changes.Remove([each.id for each in transactions])
            )

    def step(self) -> bool:
        """Continue the completion of a large transaction; True if there is more."""
        if not self._unfinished:
            return False
        transaction = self._unfinished[0]
        try:
            if transaction.ending is None or self._write_some(transaction, transaction.ending):
                del self._unfinished[0]
        except Exception:
            # One that cannot be completed now must not block those behind it.
            self._unfinished.append(self._unfinished.pop(0))
            raise
        return bool(self._unfinished)

    def _aborting(self, transaction: Transaction) -> Ending:
        """Return the abort after which the same producer may continue, with the next epoch."""
        return transaction.ending_by(False, is_v2=True, new_id=self._new_id(transaction))

    def _new_id(self, transaction: Transaction) -> int:
        """Return a new producer id, if the epochs of this one are exhausted."""
        is_used_up = transaction.producer.epoch >= EPOCH_MAX
        return self._producers.new_id() if is_used_up else NO_ID

    def _end(self, transaction: Transaction, ending: Ending) -> None:
        partitions = self._markers.wanted(transaction.producer.id)
        if len(partitions) > MARKERS_PER_GROUP or _has_many_offsets(transaction):
            self._append(TransactionChangeKind.PREPARE, changes.End(transaction.id, ending))
            self._unfinished.append(transaction)
            return
        self._finish(transaction, ending, partitions)

    def _write_some(self, transaction: Transaction, ending: Ending) -> bool:
        """Settle the next offsets or write markers, and with the last of them the completion."""
        if _has_many_offsets(transaction):
            self._settle_some(transaction, ending)
            return False
        partitions = self._markers.wanted(transaction.producer.id)
        if len(partitions) <= MARKERS_PER_GROUP:
            self._finish(transaction, ending, partitions)
            return True
        marker = self._markers.marker(transaction.producer.id, ending)
        self._markers.append(marker, partitions[:MARKERS_PER_GROUP], ())
        return False

    def _finish(
        self, transaction: Transaction, ending: Ending, partitions: Sequence[Partition]
    ) -> None:
        """Complete it at once: the decision, the offsets and the last markers are one append."""
        states = [
            _state(
                TOPIC,
                changes.encode(TransactionChangeKind.COMPLETE, changes.End(transaction.id, ending)),
            )
        ]
        if ending.is_commit:
            for group, pending in transaction.offsets.items():
                states += self._commits(group, pending.values())
        marker = self._markers.marker(transaction.producer.id, ending)
        self._markers.append(marker, partitions, states)

    def _settle_some(self, transaction: Transaction, ending: Ending) -> None:
        """Commit or drop some of the pending offsets."""
        intakes: list[Intake] = []
        for group, part in _some_offsets(transaction):
            if ending.is_commit:
                intakes += self._commits(group, part)
            partitions = changes.by_topic((each.topic_id, each.queue_id) for each in part)
            settled = changes.Settle(transaction.id, group, partitions)
            intakes.append(_state(TOPIC, changes.encode(TransactionChangeKind.SETTLE, settled)))
        self._appender.group(intakes, is_upkeep=True)

    def _commits(self, group: str, pending: Iterable[PendingOffset]) -> list[Intake]:
        commits = [
            (Commit(*each[:-1]), each.position)
            for each in pending
            if self._topics.find_id(each.topic_id) is not None
        ]
        return [_state(*each) for each in self._progress.changes_as_of(group, commits)]

    # Shared

    def _of(self, id_: str, producer: ProducerIdAndEpoch) -> Transaction:
        transaction = self._find(id_)
        transaction.check(producer)
        return transaction

    def _find(self, id_: str) -> Transaction:
        transaction = self._transactions.find(id_)
        if transaction is None:
            raise RequestError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"Transactional id '{id_}' does not exist."
            )
        return transaction

    def _append(self, kind: TransactionChangeKind, change: changes.AnyChange) -> None:
        self._appender.append_state(TOPIC, changes.encode(kind, change))


def _state(topic: bytes, body: bytes) -> Intake:
    return Intake(None, Draft(topic=topic, queue_id=0, offset=-1, body=body))


def _has_many_offsets(transaction: Transaction) -> bool:
    return transaction.offsets_size > OFFSETS_SIZE_PER_GROUP


def _some_offsets(transaction: Transaction) -> list[tuple[str, list[PendingOffset]]]:
    """Return as many pending offsets as are settled at once, by group."""
    found = []
    left = OFFSETS_SIZE_PER_GROUP
    for group, pending in transaction.offsets.items():
        part = []
        left -= 4 * len(group)
        for each in pending.values():
            part.append(each)
            left -= size_of(each)
            if left <= 0:
                break
        found.append((group, part))
        if left <= 0:
            break
    return found
