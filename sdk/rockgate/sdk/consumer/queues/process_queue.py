"""The messages of one queue that are pulled and not finished.

Messages are in the order of their offsets. Concurrent listeners finish them in any order, and the
offset to commit is that of the first one that is not finished: it never passes a message that would
be lost with this process. An orderly listener takes the first ones and commits or returns them.

    put        pulled                 ──► cached
    finish     cached                 ──► gone          concurrent; says the offset to commit
    take       cached                 ──► taken         orderly
    commit     taken                  ──► gone          orderly; says the offset to commit
    put_back   taken                  ──► cached        orderly: all, or those that are named
    drop       another member has the queue: what is still finished here changes nothing

Nothing here waits or reads a clock: the caller passes times in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Generic, Protocol, TypeVar

from rockgate.sdk.consumer.settings import LOCK_S_MAX, PULL_IDLE_S_MAX, FlowLimits


class QueuedMessage(Protocol):
    """What a process queue needs of a message."""

    @property
    def offset(self) -> int:
        """Its place in its queue."""

    @property
    def body_size(self) -> int:
        """How many bytes its body has."""


P = TypeVar("P", bound=QueuedMessage)


class Limit(Enum):
    """Why a queue is not being pulled."""

    COUNT = "messages"
    SIZE = "bytes"
    SPAN = "span"


class ProcessQueue(Generic[P]):
    """The cached messages of one queue."""

    def __init__(self, now_s: float) -> None:
        self._cached: dict[int, P] = {}
        self._order: deque[int] = deque()
        """Offsets, ascending; those no longer cached are skipped at the front."""
        self._taken: dict[int, P] = {}
        self._next_offset = 0
        self.count = 0
        """Messages that are cached or taken."""
        self.size = 0
        """The bytes of their bodies."""
        self.is_dropped = False
        self.is_lost = False
        """Another member has it, or its offset was set elsewhere: nothing is committed here."""
        self.begin_offset = 0
        """The offset at which consuming began."""
        self.pulled_at_s = now_s
        self.consumed_at_s = now_s
        self.locked_at_s: float | None = None
        self.lock_s_max = LOCK_S_MAX
        self.pull_idle_s_max = PULL_IDLE_S_MAX
        self.lag = 0
        """How many messages the broker has beyond the last one that was pulled."""

    # Filling

    def put(self, messages: Iterable[P]) -> None:
        """Cache pulled messages. One with a cached offset replaces the other in the counts."""
        order, cached, taken = self._order, self._cached, self._taken
        for message in messages:
            offset = message.offset
            if offset in taken:
                continue
            if offset in cached:
                self.size += message.body_size - cached[offset].body_size
                cached[offset] = message
                continue
            cached[offset] = message
            self.count += 1
            self.size += message.body_size
            if order and offset < order[-1]:
                self._insert(offset)
            else:
                order.append(offset)
            if offset >= self._next_offset:
                self._next_offset = offset + 1

    # Finishing, concurrently

    def finish(self, messages: Iterable[P], now_s: float) -> int | None:
        """These are finished; the offset up to which all are, None if nothing was cached."""
        self.consumed_at_s = now_s
        cached = self._cached
        if not cached:
            return None
        for message in messages:
            found = cached.pop(message.offset, None)
            if found is not None:
                self.count -= 1
                self.size -= found.body_size
        first = self.first_offset
        return self._next_offset if first is None else first

    # Taking, in order

    def take(self, count_max: int, now_s: float) -> list[P]:
        """The first messages, to be committed or put back before others are taken."""
        self.consumed_at_s = now_s
        found: list[P] = []
        order, cached = self._order, self._cached
        while order and len(found) < count_max:
            message = cached.pop(order.popleft(), None)
            if message is not None:
                self._taken[message.offset] = message
                found.append(message)
        return found

    def commit(self) -> int | None:
        """Finish the taken messages; return the offset behind them, None if there were none."""
        taken = self._taken
        if not taken:
            return None
        offset = max(taken) + 1
        self.count -= len(taken)
        self.size -= sum(message.body_size for message in taken.values())
        taken.clear()
        return offset

    def put_back(self, messages: Sequence[P] | None = None) -> None:
        """Put the taken messages back, all or these, to be taken again."""
        offsets = list(self._taken) if messages is None else [each.offset for each in messages]
        for offset in sorted(offsets, reverse=True):
            message = self._taken.pop(offset, None)
            if message is None:
                continue
            self._cached[offset] = message
            if self._order and offset > self._order[0]:
                self._insert(offset)
            else:
                self._order.appendleft(offset)

    # Asking

    @property
    def first_offset(self) -> int | None:
        """The first offset that is cached."""
        order, cached = self._order, self._cached
        while order and order[0] not in cached:
            order.popleft()
        return order[0] if order else None

    @property
    def first(self) -> P | None:
        """The first message that is cached."""
        offset = self.first_offset
        return None if offset is None else self._cached[offset]

    @property
    def span(self) -> int:
        """From the first offset that is cached to the last."""
        first = self.first_offset
        if first is None:
            return 0
        order, cached = self._order, self._cached
        while order[-1] not in cached:
            order.pop()
        return order[-1] - first

    @property
    def bounds(self) -> tuple[int, int]:
        """The first offset that is cached and the last; 0 and 0 if none is."""
        first = self.first_offset
        return (0, 0) if first is None else (first, first + self.span)

    @property
    def taken_bounds(self) -> tuple[int, int]:
        """The same of the taken messages."""
        return (min(self._taken), max(self._taken)) if self._taken else (0, 0)

    @property
    def taken_count(self) -> int:
        """How many messages were taken."""
        return len(self._taken)

    @property
    def has_taken(self) -> bool:
        """Whether something was taken and is neither committed nor put back."""
        return bool(self._taken)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be consumed."""
        return not self._cached

    def is_pull_expired(self, now_s: float) -> bool:
        """Whether its last pull is too long ago."""
        return now_s - self.pulled_at_s > self.pull_idle_s_max

    def is_locked(self, now_s: float) -> bool:
        """Whether a broker has locked it for this client, not too long ago."""
        return self.locked_at_s is not None and now_s - self.locked_at_s <= self.lock_s_max

    def is_lock_outlasted(self, now_s: float) -> bool:
        """Whether messages were taken longer ago than a lock is valid without renewal."""
        return self.has_taken and now_s - self.consumed_at_s > self.lock_s_max

    def limit(self, limits: FlowLimits, *, is_orderly: bool) -> Limit | None:
        """The limit that it exceeds, if any; in order the span is not limited."""
        if self.count > limits.count_max:
            return Limit.COUNT
        if self.size > limits.size_max:
            return Limit.SIZE
        if not is_orderly and self.span > limits.span_max:
            return Limit.SPAN
        return None

    # Private

    def _insert(self, offset: int) -> None:
        """An offset in the middle: a broker has sent us back, or parts of a batch were returned."""
        offsets = sorted({*self._order, offset} & self._cached.keys())
        self._order.clear()
        self._order.extend(offsets)
