"""The coordinator: carries out what may be done with transactions, as entries of the log.

Who may do what is decided in `transaction`; here it is appended, in one atomic group wherever more
than one thing must happen together. When a method returns its change is made; whoever answers a
client waits for the disk where the setting says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from rockgate.gateway.kafka.errors import RequestError
from rockgate.gateway.kafka.producers import Producers
from rockgate.gateway.kafka.transactions import changes
from rockgate.gateway.kafka.transactions.changes import TOPIC, Kind
from rockgate.gateway.kafka.transactions.fold import Transactions
from rockgate.gateway.kafka.transactions.markers import Markers
from rockgate.gateway.kafka.transactions.transaction import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_ID,
    Ending,
    Offset,
    Partition,
    Producer,
    State,
    Transaction,
)
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.appending import Appender, Intake
from rockgate.store.commitlog import Draft
from rockgate.store.progress import Commit, Progress
from rockgate.store.topics import Topics

MARKERS_PER_GROUP: Final = 200
"""Markers that are written at once: about two milliseconds."""
_PARTITION_SIZE: Final = 8
_OFFSET_SIZE: Final = 64


class Ended(NamedTuple):
    """The end of a transaction."""

    producer: Producer
    """With whom to go on."""
    is_sync: bool = False
    """Whether it counts only once it is on disk, because a partition that it wrote to does."""


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
        topics: Topics,
        timeout_ms_max: int,
    ) -> None:
        self._transactions = transactions
        self._producers = producers
        self._markers = markers
        self._appender = appender
        self._progress = progress
        self._topics = topics
        self._timeout_ms_max = timeout_ms_max
        self._unfinished: list[Transaction] = []
        self.on_begun: Callable[[Transaction], None] = lambda transaction: None
        """Told of every transaction that begins: somebody watches the time."""

    def resume(self) -> None:
        """Go on with the ends that a stop of the server interrupted."""
        self._unfinished = self._transactions.prepared()

    # Beginning

    def init(self, id_: str, timeout_ms: int, asked: Producer | None) -> Producer:
        """Let a producer begin with a transactional id; what was left open is aborted."""
        if not 0 < timeout_ms <= self._timeout_ms_max:
            raise RequestError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"a transaction timeout of {timeout_ms} ms is not within {self._timeout_ms_max} ms",
            )
        transaction = self._transactions.find(id_)
        if transaction is None:
            # Whatever id the caller remembers was forgotten here.
            return self._begin(id_, Producer(self._producers.new_id(), 0), None, timeout_ms)
        producer = transaction.init(asked)
        if transaction.state is State.ONGOING:
            # Its own producer may have to ask again for the end of a large one, and is known then.
            is_own = asked is not None
            ending = self._aborting(transaction) if is_own else transaction.fencing()
            self._end(transaction, ending)
            transaction.check_idle()
            producer = transaction.init(asked)
        if producer is None:
            producer = Producer(self._producers.new_id(), 0)
        return self._begin(id_, producer, asked, timeout_ms)

    def _begin(
        self, id_: str, producer: Producer, last: Producer | None, timeout_ms: int
    ) -> Producer:
        last = Producer(NO_ID, NO_EPOCH) if last is None else last
        self._append(Kind.INIT, changes.Init(id_, producer, last, timeout_ms))
        return producer

    # During

    def add(
        self,
        id_: str,
        producer: Producer,
        partitions: Iterable[Partition] = (),
        groups: Iterable[str] = (),
    ) -> None:
        """Make partitions and groups part of the transaction, which begins if there is none."""
        transaction = self._of(id_, producer)
        transaction.check_idle()
        self._include(transaction, partitions, groups)

    def verify(self, id_: str, producer: Producer, partition: Partition) -> bool:
        """Whether a partition is part of the ongoing transaction."""
        transaction = self._of(id_, producer)
        transaction.check_idle()
        return transaction.state is State.ONGOING and partition in transaction.partitions

    def offsets(
        self, id_: str, producer: Producer, group: str, offsets: Sequence[Offset], adds: bool
    ) -> bool:
        """Keep offsets for the commit; false if the group is no part, and may not become one."""
        transaction = self._of(id_, producer)
        transaction.check_idle()
        if transaction.state is not State.ONGOING or group not in transaction.groups:
            if not adds:
                return False
            self._include(transaction, (), (group,))
        metadata_size = max((len(each.metadata) * 4 for each in offsets), default=0)
        for part in changes.in_parts(list(offsets), _OFFSET_SIZE + metadata_size):
            self._append(Kind.OFFSETS, changes.Offsets(id_, group, part))
        return True

    def _include(
        self, transaction: Transaction, partitions: Iterable[Partition], groups: Iterable[str]
    ) -> None:
        is_new = transaction.state is not State.ONGOING
        if not is_new:
            partitions = [each for each in partitions if each not in transaction.partitions]
            groups = [each for each in groups if each not in transaction.groups]
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, queue_id in partitions:
            by_topic.setdefault(topic_id, []).append(queue_id)
        groups = list(groups)
        if is_new or by_topic or groups:
            added = changes.Add(transaction.id, list(by_topic.items()), groups)
            self._append(Kind.ADD, added)
        if is_new:
            self.on_begun(transaction)

    # Ending

    def end(self, id_: str, producer: Producer, is_commit: bool, is_v2: bool) -> Ended:
        """Commit or abort; says with which producer to go on."""
        transaction = self._find(id_)
        new_id = self._new_id(transaction) if is_v2 else NO_ID
        ending = transaction.end(producer, is_commit, is_v2, new_id)
        if ending is None:
            return Ended(transaction.producer)
        is_sync = any(map(self._markers.is_sync, transaction.partitions))
        self._end(transaction, ending)
        return Ended(ending.next, is_sync)

    def time_out(self, transaction: Transaction) -> None:
        """Abort a transaction whose producer did not come in time.

        That one goes on as after an abort of its own, if it asks to abort or to begin anew.
        """
        if transaction.state is State.ONGOING:
            self._end(transaction, self._aborting(transaction))

    def forget(self, transactions: Sequence[Transaction]) -> None:
        """Forget transactional ids."""
        if transactions:
            self._append(Kind.REMOVE, changes.Remove([each.id for each in transactions]))

    def step(self) -> bool:
        """Write some more markers of a large transaction; say whether there are more."""
        if not self._unfinished:
            return False
        transaction = self._unfinished[0]
        if transaction.ending is None or self._write_some(transaction, transaction.ending):
            del self._unfinished[0]
        return bool(self._unfinished)

    def _aborting(self, transaction: Transaction) -> Ending:
        """Return the abort after which the same producer may go on, with the next epoch."""
        return transaction.ending_by(False, is_v2=True, new_id=self._new_id(transaction))

    def _new_id(self, transaction: Transaction) -> int:
        """Return an id to go on with, if the epochs of this one are used up."""
        is_used_up = transaction.producer.epoch >= EPOCH_MAX
        return self._producers.new_id() if is_used_up else NO_ID

    def _end(self, transaction: Transaction, ending: Ending) -> None:
        partitions = self._markers.wanted(transaction.producer.id)
        if len(partitions) > MARKERS_PER_GROUP:
            self._append(Kind.PREPARE, changes.End(transaction.id, ending))
            self._unfinished.append(transaction)
            return
        self._finish(transaction, ending, partitions)

    def _write_some(self, transaction: Transaction, ending: Ending) -> bool:
        """Write the next markers, and with the last of them the end itself."""
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
        """End it whole: the decision, the offsets and the last markers are one append."""
        states = [_state(TOPIC, changes.encode(Kind.COMPLETE, changes.End(transaction.id, ending)))]
        if ending.is_commit:
            states += self._commits(transaction)
        marker = self._markers.marker(transaction.producer.id, ending)
        self._markers.append(marker, partitions, states)

    def _commits(self, transaction: Transaction) -> list[Intake]:
        found: list[Intake] = []
        for group, pending in transaction.offsets.items():
            commits = [
                Commit(*each)
                for each in pending.values()
                if self._topics.find_id(each.topic_id) is not None
            ]
            found += [_state(*each) for each in self._progress.changes(group, commits)]
        return found

    # Helpers of all of them

    def _of(self, id_: str, producer: Producer) -> Transaction:
        transaction = self._find(id_)
        transaction.check(producer)
        return transaction

    def _find(self, id_: str) -> Transaction:
        transaction = self._transactions.find(id_)
        if transaction is None:
            raise RequestError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"there is no transactional id {id_}"
            )
        return transaction

    def _append(self, kind: Kind, change: changes.AnyChange) -> None:
        self._appender.append_state(TOPIC, changes.encode(kind, change))


def _state(topic: bytes, body: bytes) -> Intake:
    return Intake(None, Draft(topic, 0, -1, body))
