"""The next step for a queue that is consumed in order: one after the other, no waiting.

    next        says what is due: run these messages, rest, ask for the lock, wait for messages, end
    judged      a listener has ended: the messages that have had their last try, to be sent away
    settled     this many of them were sent: the offset to commit, if it moves

    listener says        automatic commit             manual commit
    done                 commit                       stays open; the queue continues
    commit               commit                       commit, with all that is open before it
    again, or raises     put back, the queue rests    put back, the queue rests
    rollback             as again                     put back all that is open, the queue rests
    abandoned            put back                     put back

The first message of what is put back has had one more try. One that has had its last, or that the
listener gives up, is sent to the dead letters, and the queue continues behind it. The caller passes
times in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from rockgate.sdk.consumer.delivery.redelivery import is_last_try
from rockgate.sdk.consumer.queues.process_queue import ProcessQueue
from rockgate.sdk.consumer.settings import SUSPEND_S_RANGE, ConsumerSettings, Model

if TYPE_CHECKING:
    from rockgate.sdk.received import Received

TURN_S: Final = 60.0
"""How long one queue is consumed without pause while others may wait for a worker."""
TURN_OVER_S: Final = 0.01
LOCK_LOST_S: Final = 0.1
LOCK_HAD_S: Final = 0.01
LOCK_REFUSED_S: Final = 3.0


class Ruling(Enum):
    """A listener's decision on its messages."""

    DONE = auto()
    COMMIT = auto()
    AGAIN = auto()
    ROLLBACK = auto()
    ABANDONED = auto()
    """No listener was called with them."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a listener's call."""

    ruling: Ruling
    done_count: int = 0
    """If messages are redelivered: how many before them are done."""
    suspend_s: float | None = None
    """How long the queue rests; else as it is set."""
    dead_count: int = 0
    """If messages are redelivered: how many, from the first, become dead letters instead."""


class Due(Enum):
    """The next action, if it is not consuming."""

    END = auto()
    IDLE = auto()
    ASK_LOCK = auto()


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing for this long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """Deliver these messages."""

    messages: Sequence[Received]


Step = Due | Rest | Run


class QueueOrder:
    """One queue."""

    def __init__(
        self,
        cached: ProcessQueue[Received],
        settings: ConsumerSettings,
        *,
        batch_max: int | None = None,
    ) -> None:
        self._cached = cached
        self._settings = settings
        self.batch_max = batch_max or settings.batch_max
        self._is_locking = settings.model is Model.CLUSTERING
        self._rest_until_s: float | None = None
        self._turn_began_s: float | None = None
        self._is_lock_lost = False
        self._verdict = Verdict(Ruling.DONE)
        self._running: Sequence[Received] = ()

    def next(self, now_s: float) -> Step:
        """The next step."""
        cached = self._cached
        if cached.is_dropped:
            return Due.END
        if self._rest_until_s is not None:
            if now_s < self._rest_until_s:
                return Rest(self._rest_until_s - now_s)
            self._rest_until_s = None
        if self._is_locking and not cached.is_locked(now_s):
            if self._is_lock_lost:
                return Due.ASK_LOCK
            self._is_lock_lost = True
            return self._rest(LOCK_LOST_S, now_s)
        self._is_lock_lost = False
        if self._turn_began_s is None:
            self._turn_began_s = now_s
        elif now_s - self._turn_began_s > TURN_S:
            return self._rest(TURN_OVER_S, now_s)
        messages = cached.take(self.batch_max, now_s)
        if not messages:
            self._turn_began_s = None
            return Due.IDLE
        self._running = messages
        return Run(messages)

    def lock_answered(self, *, is_had: bool, now_s: float) -> None:
        """The broker has granted or refused the lock."""
        if is_had:
            self._cached.locked_at_s = now_s
        self._rest(LOCK_HAD_S if is_had else LOCK_REFUSED_S, now_s)

    def judged(self, verdict: Verdict) -> Sequence[Received]:
        """A listener has ended; return the messages without retries left, to be sent back first."""
        self._verdict = verdict
        if verdict.ruling not in (Ruling.AGAIN, Ruling.ROLLBACK):
            return ()
        last_count = 0
        failed = self._running[verdict.done_count :]
        for message in failed:
            is_last = is_last_try(message.tries - 1, self._settings.retry_count_max)
            if not is_last and last_count >= verdict.dead_count:
                break
            last_count += 1
        return failed[:last_count]

    def settled(self, now_s: float, sent_count: int = 0) -> tuple[int, int] | None:
        """How many messages are finished, and the offset behind them; None if none is."""
        verdict, running, self._running = self._verdict, self._running, ()
        cached, is_auto = self._cached, self._settings.auto_commit
        if verdict.ruling is Ruling.DONE:
            return self._commit() if is_auto else None
        if verdict.ruling is Ruling.COMMIT:
            return self._commit()
        if verdict.ruling is Ruling.ABANDONED:
            cached.put_back(running)
            return None
        again = running[verdict.done_count + sent_count :]
        if again:
            again[0].retries_here += 1
            is_rollback = verdict.ruling is Ruling.ROLLBACK and not is_auto and not sent_count
            cached.put_back(None if is_rollback else again)
            self._rest(self._suspend_s(verdict), now_s)
        return self._commit() if is_auto else None

    # Private

    def _commit(self) -> tuple[int, int] | None:
        before = self._cached.count
        offset = self._cached.commit()
        return None if offset is None else (before - self._cached.count, offset)

    def _suspend_s(self, verdict: Verdict) -> float:
        least, most = SUSPEND_S_RANGE
        wanted = self._settings.suspend_s if verdict.suspend_s is None else verdict.suspend_s
        return min(max(wanted, least), most)

    def _rest(self, seconds: float, now_s: float) -> Rest:
        self._turn_began_s = None
        self._rest_until_s = now_s + seconds
        return Rest(seconds)
