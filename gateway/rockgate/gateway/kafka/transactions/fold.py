"""The fold of transactional ids: the last state of each, and its pending offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from rockgate.gateway.kafka.transactions.changes import FORMAT, TOPIC, TransactionChangeKind, decode
from rockgate.gateway.kafka.transactions.pending import PendingOffsets, size_of
from rockgate.gateway.kafka.transactions.transaction import (
    PREPARED,
    Ending,
    Partition,
    PendingOffset,
    ProducerIdAndEpoch,
    Transaction,
    TransactionState,
)
from rockgate.store.api.folds import Change, Measured, Roster, check_format, pack_array, sliced
from rockgate.store.api.progress import Removed
from rockgate.store.errors import StoreCorrupt

_SLICE_COST: Final = 2_000
_VERSION: Final = bytes((FORMAT,))
_PIECE_PARTITIONS: Final = 1_500
_PIECE_GROUPS: Final = 50
_PIECE_OFFSETS_BYTES: Final = 48 << 10
"""Contents of one piece of a transaction: less than a slice, even with the longest names."""


class _Saved(msgspec.Struct, array_like=True, frozen=True):
    """A transactional id in a snapshot."""

    id: str
    state: str
    producer: ProducerIdAndEpoch
    last: ProducerIdAndEpoch
    timeout_ms: int
    start_ms: int
    changed_ms: int
    position: int
    partitions: list[Partition]
    groups: list[str]
    offsets: dict[str, list[PendingOffset]]
    ending: Ending | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Saved]).decode


class Transactions:
    """All transactional ids."""

    name: Final = "transactions"
    topics: Final = frozenset({TOPIC})

    def __init__(self, slice_cost: int = _SLICE_COST) -> None:
        self._slice_cost = slice_cost
        self._roster: Roster[Transaction] = Roster()
        self._ids: dict[str, Transaction] = {}
        self.pending = PendingOffsets()
        self.on_changed: list[Callable[[str], None]] = []
        """Called with an id that has changed, or was removed."""

    def __len__(self) -> int:
        return len(self._ids)

    def find(self, id_: str) -> Transaction | None:
        """Return the state of a transactional id."""
        return self._ids.get(id_)

    def all(self) -> Iterable[Transaction]:
        """Return all of them; valid until the next change."""
        return self._ids.values()

    def page(self, place: int, count: int) -> tuple[int | None, list[Transaction]]:
        """Return those in the next `count` places and the place to resume at; None at the end."""
        found: list[Transaction] = []
        for at, each in self._roster.walk(place):
            if at - place >= count:
                return at, found
            if each is not None:
                found.append(each)
        return None, found

    # The fold

    def apply(self, change: Change) -> None:
        """Apply one change."""
        kind, what = decode(change)
        if kind is TransactionChangeKind.REMOVE:
            for id_ in what.ids:
                known = self._ids.get(id_)
                if known is not None and known.position < change.position:
                    self._drop(known)
                self._changed(id_)
            return
        if kind is TransactionChangeKind.DROP:
            for removed in what.removals:
                self._drop_pending(removed, change.position)
            return
        transaction = self._ids.get(what.id)
        if transaction is None:
            if kind is not TransactionChangeKind.INIT:
                return
            transaction = self._add(Transaction(what.id))
        elif transaction.position >= change.position:
            return
        transaction.position = change.position
        transaction.changed_ms = change.store_ms
        self._APPLY[kind](self, transaction, what)
        self._changed(what.id)

    def _changed(self, id_: str) -> None:
        for callback in self.on_changed:
            callback(id_)

    def _init(self, transaction: Transaction, what: Any) -> None:
        self._clear(transaction)
        transaction.state = TransactionState.EMPTY
        transaction.producer, transaction.last = what.producer, what.last
        transaction.timeout_ms = what.timeout_ms

    def _include(self, transaction: Transaction, what: Any) -> None:
        if transaction.state is not TransactionState.ONGOING:
            self._clear(transaction)
            transaction.state = TransactionState.ONGOING
            transaction.start_ms = transaction.changed_ms
        for topic_id, queue_ids in what.partitions:
            transaction.partitions.update((topic_id, queue_id) for queue_id in queue_ids)
        transaction.groups.update(what.groups)

    def _offsets(self, transaction: Transaction, what: Any) -> None:
        for offset in what.offsets:
            written = PendingOffset(*offset)._replace(position=transaction.position)
            self.pending.put(transaction, what.group, written)

    def _settle(self, transaction: Transaction, what: Any) -> None:
        for topic_id, queue_ids in what.partitions:
            partitions = [(topic_id, queue_id) for queue_id in queue_ids]
            self.pending.take(transaction, what.group, partitions)

    def _drop_pending(self, removed: Removed, position: int) -> None:
        """Remove the pending offsets of a group whose offsets were deleted."""
        for transaction in self.pending.owners(removed.group):
            pending = transaction.offsets[removed.group]
            partitions: Iterable[Partition] = list(pending)
            if removed.topic_id is not None and removed.queue_ids is not None:
                partitions = [(removed.topic_id, queue_id) for queue_id in removed.queue_ids]
            elif removed.topic_id is not None:
                partitions = [each for each in pending if each[0] == removed.topic_id]
            gone = [
                each
                for each in partitions
                if (known := pending.get(each)) is not None and known.position < position
            ]
            self.pending.take(transaction, removed.group, gone)

    def _prepare(self, transaction: Transaction, what: Any) -> None:
        ending = transaction.ending = what.ending
        transaction.state = (
            TransactionState.PREPARE_COMMIT if ending.is_commit else TransactionState.PREPARE_ABORT
        )

    def _complete(self, transaction: Transaction, what: Any) -> None:
        start_ms = transaction.start_ms
        self._clear(transaction)
        # Kafka reports when the last one began until there is another, or none.
        transaction.start_ms = start_ms
        ending = what.ending
        transaction.state = (
            TransactionState.COMPLETE_COMMIT
            if ending.is_commit
            else TransactionState.COMPLETE_ABORT
        )
        transaction.producer, transaction.last = ending.next, ending.last

    _APPLY: Final = {
        TransactionChangeKind.INIT: _init,
        TransactionChangeKind.ADD: _include,
        TransactionChangeKind.OFFSETS: _offsets,
        TransactionChangeKind.PREPARE: _prepare,
        TransactionChangeKind.COMPLETE: _complete,
        TransactionChangeKind.SETTLE: _settle,
    }

    def _clear(self, transaction: Transaction) -> None:
        """Drop the partitions and groups of a transaction."""
        self.pending.take_all(transaction)
        transaction.partitions = set()
        transaction.groups = set()
        transaction.ending = None
        transaction.start_ms = -1

    def _add(self, transaction: Transaction) -> Transaction:
        self._ids[transaction.id] = transaction
        transaction.place = self._roster.add(transaction)
        return transaction

    def _drop(self, transaction: Transaction) -> None:
        self._clear(transaction)
        self._roster.remove(transaction.place)
        del self._ids[transaction.id]

    def snapshot(self) -> Iterator[bytes]:
        """Yield all transactional ids; a large transaction is several pieces."""
        for saved in sliced(self._encoded(), self._slice_cost):
            yield _VERSION + pack_array(saved)

    def _encoded(self) -> Iterator[Measured[bytes]]:
        for _, each in self._roster.walk():
            yield 1, 0, None
            for cost, piece in _pieces(each) if each is not None else ():
                item = _encode(piece)
                yield cost, len(item), item

    def restore(self, slices: Iterable[bytes]) -> None:
        """Replace everything by what the slices hold."""
        self.clear()
        what = "Transaction snapshot"
        for piece in slices:
            check_format(piece[0] if piece else 0, FORMAT, what)
            try:
                for saved in _decode(piece[1:]):
                    self._load(saved)
            except (ValueError, msgspec.MsgspecError) as error:
                raise StoreCorrupt(what, 0, str(error)) from error

    def _load(self, saved: _Saved) -> None:
        known = self._ids.get(saved.id)
        if known is not None:
            if known.position == saved.position:
                self._load_more(known, saved)
                return
            # It was removed and created again between two slices: the later one counts.
            if known.position > saved.position:
                return
            self._drop(known)
        transaction = self._add(Transaction(saved.id))
        transaction.state = TransactionState(saved.state)
        transaction.producer, transaction.last = saved.producer, saved.last
        transaction.timeout_ms, transaction.start_ms = saved.timeout_ms, saved.start_ms
        transaction.changed_ms, transaction.position = saved.changed_ms, saved.position
        transaction.ending = saved.ending
        self._load_more(transaction, saved)

    def _load_more(self, transaction: Transaction, saved: _Saved) -> None:
        transaction.partitions.update(saved.partitions)
        transaction.groups.update(saved.groups)
        for group, offsets in saved.offsets.items():
            for offset in offsets:
                if offset.position < 0:
                    # Older snapshots lack it: the last change is not before the write.
                    offset = offset._replace(position=saved.position)
                self.pending.put(transaction, group, offset)

    def clear(self) -> None:
        """Forget everything."""
        self._roster.clear()
        self._ids.clear()
        self.pending.clear()

    def prepared(self) -> list[Transaction]:
        """Return those whose completion was decided but is not done: a start resumes them."""
        return [each for each in self._ids.values() if each.state in PREPARED]


def _pieces(transaction: Transaction) -> Iterator[tuple[int, _Saved]]:
    """Return a transaction in pieces, as of one moment, each with its cost.

    Most are one. Each piece has a part of what the transaction is made of, and all else.
    """
    pending = [
        (group, each) for group, found in transaction.offsets.items() for each in found.values()
    ]
    left = len(transaction.partitions) + len(transaction.groups) + len(pending)
    partitions, groups = iter(list(transaction.partitions)), iter(list(transaction.groups))
    offsets = iter(pending)
    whole = _head(transaction)
    while True:
        piece = msgspec.structs.replace(
            whole,
            partitions=sorted(islice(partitions, _PIECE_PARTITIONS)),
            groups=sorted(islice(groups, _PIECE_GROUPS)),
            offsets=_some(offsets),
        )
        cost = len(piece.partitions) + len(piece.groups) + sum(map(len, piece.offsets.values()))
        yield 1 + cost, piece
        left -= cost
        if not left:
            return


def _some(offsets: Iterator[tuple[str, PendingOffset]]) -> dict[str, list[PendingOffset]]:
    """Take pending offsets, by group, until a piece is full."""
    found: dict[str, list[PendingOffset]] = {}
    size = 0
    for group, offset in offsets:
        if group not in found:
            found[group] = []
            size += 4 * len(group)
        found[group].append(offset)
        size += size_of(offset)
        if size >= _PIECE_OFFSETS_BYTES:
            break
    return found


def _head(transaction: Transaction) -> _Saved:
    return _Saved(
        id=transaction.id,
        state=transaction.state.value,
        producer=transaction.producer,
        last=transaction.last,
        timeout_ms=transaction.timeout_ms,
        start_ms=transaction.start_ms,
        changed_ms=transaction.changed_ms,
        position=transaction.position,
        partitions=[],
        groups=[],
        offsets={},
        ending=transaction.ending,
    )
