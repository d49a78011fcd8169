"""One transactional id: its state, and what each request may do to it.

docs/internals/transactions.md has the table of states; this module is the table as code. It decides
and changes nothing: a decision becomes an entry of the log, and the fold applies that.

    state            begins by        ends by
    EMPTY            INIT             ADD
    ONGOING          ADD              COMPLETE, or PREPARE if it is large
    PREPARE_*        PREPARE          COMPLETE
    COMPLETE_*       COMPLETE         INIT, ADD, COMPLETE (an abort of nothing, version 2)
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode

NO_ID: Final = -1
NO_EPOCH: Final = -1
EPOCH_MAX: Final = 32_766
"""The last epoch of a producer id; its markers may have one more."""

Partition = tuple[bytes, int]
"""Topic id and queue."""


class TransactionState(Enum):
    """The state of a transactional id; the values are those of Kafka's tools."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


PREPARED: Final = frozenset((TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT))


class Offset(NamedTuple):
    """An offset that counts once the transaction commits."""

    topic_id: bytes
    queue_id: int
    offset: int
    leader_epoch: int
    metadata: str


class PendingOffset(NamedTuple):
    """The same while it is pending, with the position of the change that wrote it."""

    topic_id: bytes
    queue_id: int
    offset: int
    leader_epoch: int
    metadata: str
    position: int = -1


class ProducerIdAndEpoch(NamedTuple):
    """A producer id and its epoch."""

    id: int
    epoch: int


class Ending(NamedTuple):
    """The outcome of a transaction, and the producer id and epoch to continue with."""

    is_commit: bool
    marker_epoch: int
    next: ProducerIdAndEpoch
    last: ProducerIdAndEpoch


class Transaction:
    """The state of one transactional id. Changed only by the fold."""

    __slots__ = (
        "changed_ms",
        "ending",
        "groups",
        "id",
        "last",
        "offsets",
        "offsets_size",
        "partitions",
        "place",
        "position",
        "producer",
        "start_ms",
        "state",
        "timeout_ms",
    )

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.state = TransactionState.EMPTY
        self.producer = ProducerIdAndEpoch(NO_ID, NO_EPOCH)
        self.last = ProducerIdAndEpoch(NO_ID, NO_EPOCH)
        """What a retried request may still come with."""
        self.timeout_ms = 0
        self.start_ms = -1
        self.changed_ms = 0
        self.partitions: set[Partition] = set()
        self.groups: set[str] = set()
        self.offsets: dict[str, dict[Partition, PendingOffset]] = {}
        """Pending ones, by group."""
        self.offsets_size = 0
        self.ending: Ending | None = None
        """The decision, while markers are being written."""
        self.position = -1
        self.place = -1

    # Callers

    def check(self, producer: ProducerIdAndEpoch) -> None:
        """Reject all but the current producer."""
        if producer.id != self.producer.id:
            raise RequestError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"Transactional id '{self.id}' has producer id {self.producer.id}, not "
                f"{producer.id}.",
            )
        if producer.epoch != self.producer.epoch:
            raise RequestError(
                ErrorCode.PRODUCER_FENCED,
                f"Producer {producer.id} of transactional id '{self.id}' is at epoch "
                f"{self.producer.epoch}, not {producer.epoch}.",
            )

    def check_idle(self) -> None:
        """Reject requests that must wait until the current completion is done."""
        if self.state in PREPARED:
            raise RequestError(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                f"Transaction of '{self.id}' is being completed.",
            )

    # Beginning

    def init(self, asked: ProducerIdAndEpoch | None) -> ProducerIdAndEpoch | None:
        """Return the producer to continue with; None if the id needs a new producer id.

        With `asked`, what the caller has: the answer to a retry is the current one, as it is to a
        producer whose transaction was aborted because it timed out. While the current one has a
        transaction open, a caller with the previous one is another client.
        """
        self.check_idle()
        current = self.producer
        if asked is not None and asked != current:
            is_last = asked == self.last and asked != (NO_ID, NO_EPOCH)
            if is_last and self.state is not TransactionState.ONGOING:
                return current
            raise RequestError(
                ErrorCode.PRODUCER_FENCED,
                f"Transactional id '{self.id}' has producer id {current.id} with epoch "
                f"{current.epoch}, not {asked.id} with epoch {asked.epoch}.",
            )
        return (
            None
            if current.epoch >= EPOCH_MAX
            else ProducerIdAndEpoch(current.id, current.epoch + 1)
        )

    # Ending

    def end(
        self, caller: ProducerIdAndEpoch, is_commit: bool, is_v2: bool, new_id: int
    ) -> Ending | None:
        """Return how the transaction ends; None for a retry of the same outcome.

        `new_id` is the producer id to continue with when the epochs of this one are exhausted.
        """
        if is_v2 and self._is_repeated(caller):
            self._check_repeated(is_commit)
            return None
        self.check(caller)
        if self.state is TransactionState.ONGOING:
            return self.ending_by(is_commit, is_v2=is_v2, new_id=new_id)
        if not is_v2:
            self._check_repeated(is_commit)
            return None
        self.check_idle()
        if is_commit:
            raise self._out_of_turn(is_commit)
        return self.ending_by(False, is_v2=True, new_id=new_id)

    def ending_by(self, is_commit: bool, *, is_v2: bool, new_id: int = NO_ID) -> Ending:
        """Return the end of a transaction, with its producer's epoch raised in version 2."""
        current = self.producer
        if not is_v2:
            return Ending(is_commit, current.epoch, current, self.last)
        raised = current.epoch + 1
        following = (
            ProducerIdAndEpoch(new_id, 0)
            if current.epoch >= EPOCH_MAX
            else ProducerIdAndEpoch(current.id, raised)
        )
        return Ending(is_commit, raised, following, current)

    def fencing(self) -> Ending:
        """Return the abort by which another instance takes over: the previous one is fenced."""
        current = self.producer
        raised = ProducerIdAndEpoch(current.id, min(current.epoch + 1, EPOCH_MAX + 1))
        return Ending(False, raised.epoch, raised, ProducerIdAndEpoch(NO_ID, NO_EPOCH))

    def _is_repeated(self, caller: ProducerIdAndEpoch) -> bool:
        if self.ending is not None:
            return caller == self.ending.last
        is_complete = self.state in (
            TransactionState.COMPLETE_COMMIT,
            TransactionState.COMPLETE_ABORT,
        )
        return is_complete and caller == self.last

    def _check_repeated(self, is_commit: bool) -> None:
        done = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
        if self.state is done:
            return
        if self.ending is not None and self.ending.is_commit == is_commit:
            self.check_idle()
        raise self._out_of_turn(is_commit)

    def _out_of_turn(self, is_commit: bool) -> RequestError:
        wanted = "committed" if is_commit else "aborted"
        return RequestError(
            ErrorCode.INVALID_TXN_STATE,
            f"Transaction of '{self.id}' is {self.state.value} and cannot be {wanted}.",
        )
