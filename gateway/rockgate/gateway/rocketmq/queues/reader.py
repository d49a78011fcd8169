"""Reads one queue ahead of its clients: pulls in flight side by side, record batches cached.

An offset is a message, so pulls at o, o+32, o+64 … can run at the same time, although brokers
return at most 32 messages for each. What an answer leaves of its stride is asked for again. At the
end of the queue one pull is held by the broker for all clients that wait; how long those wait is
the handler's own timer, for brokers check the end of a held pull every five seconds only.

`read` never waits: it returns what is cached, and begins to pull what is not.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right, insort
from collections.abc import Callable
from typing import Final, NamedTuple

from rockgate.gateway.rocketmq.cluster.brokers import PullAnswer, QueueName, ReadingBrokers, read
from rockgate.gateway.rocketmq.cluster.errors import BrokerError
from rockgate.gateway.runtime.bounded_cache import BoundedCache
from rockgate.gateway.transcode.remote.pulled_messages import PulledBatch, PulledMessages
from rockgate.protocol.entry import EntryError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.protocol.remoting.codes import ResponseCode
from rockgate.protocol.remoting.headers.pull import (
    SUBSCRIPTION,
    SUSPEND,
    PulledHeader,
    PullHeader,
)

STRIDE: Final = 32
"""Messages of one pull: brokers return no more, as they are installed."""
AHEAD_COUNT: Final = 16
"""Pulls in flight, at most."""
PULL_BYTES_MAX: Final = 256 << 10
"""What a broker returns for a pull, at most."""
WIDE_STRIDE_MAX: Final = 4_096
WIDE_AHEAD_COUNT: Final = 4
"""Messages and number of pulls where a broker's limit of messages was lifted."""
HOLD_MS: Final = 15_000
PULL_S: Final = 5.0
HELD_PULL_S: Final = 30.0
"""How long an answer may take; brokers end a held pull up to five seconds late."""
LAG_S: Final = 0.005
"""When to look again for what was confirmed and is not visible yet."""
FAILED_S: Final = 0.5
"""How long a broker that failed is left alone."""
REFUSED_S: Final = 1.0
"""How long it is known that an offset is behind the end."""
UNKNOWN: Final = -1

Cache = BoundedCache[tuple[QueueName, int], PulledBatch]
"""Batches of all queues, by the queue and their first offset."""
Watcher = Callable[[], None]

log = logging.getLogger(__name__)


class QueueReading(NamedTuple):
    """What there is of a queue from an offset on, and its bounds; UNKNOWN before the first pull."""

    batches: list[bytearray]
    start: int
    end: int
    error: ErrorCode = ErrorCode.NONE
    is_cut: bool = False
    """Whether the size did not allow for all that is cached."""


class QueueReader:
    """One queue that is fetched, from any number of offsets."""

    def __init__(
        self,
        queue: QueueName,
        brokers: ReadingBrokers,
        *,
        group: str,
        messages: PulledMessages,
        cache: Cache,
        pull_count: Callable[[str], int] = lambda broker: STRIDE,
    ) -> None:
        """`pull_count` says how many messages a broker returns for a pull."""
        self.queue = self._queue = queue
        self._pull_count = pull_count
        self._stride = STRIDE
        self._brokers = brokers
        self._group = group
        self._messages = messages
        self._cache = cache
        self._bases: list[int] = []
        """First offsets of batches that were cached; a few may have been evicted since."""
        self._pulls: dict[int, tuple[asyncio.Task[None], int]] = {}
        """Pulls under way by their offsets, and how many messages each asks for."""
        self._watchers: set[Watcher] = set()
        self._later: asyncio.TimerHandle | None = None
        self._failed_until = 0.0
        self._start = self._end = UNKNOWN
        self._ahead_count = AHEAD_COUNT
        self._held = UNKNOWN
        """Where the last held pull waits, or waited."""
        self._confirmed = 0
        self._refused = (UNKNOWN, 0.0)
        """The offset that the broker last refused, and when."""
        self.read_at = 0.0
        """When it was last read, in the loop's time."""

    # Reading

    def read(self, offset: int, size_max: int, *, at_least_one: bool) -> QueueReading:
        """What is cached from an offset on, up to a size; what is not is pulled from now on."""
        now = self.read_at = asyncio.get_running_loop().time()
        found: list[bytearray] = []
        size, at, is_cut = 0, offset, False
        while (batch := self._cached(at)) is not None:
            length = len(batch.data)
            if size + length > size_max and not (at_least_one and not found):
                is_cut = True
                break
            found.append(batch.data)
            size += length
            at = batch.end
        end = max(self._end, self._confirmed)
        refused_offset, refused_at = self._refused
        is_refused = refused_offset == offset and now - refused_at < REFUSED_S
        if not found and (offset < self._start or (offset > end and is_refused)):
            return QueueReading([], self._start, end, ErrorCode.OFFSET_OUT_OF_RANGE)
        if now < self._failed_until:
            if not found:
                return QueueReading([], self._start, end, ErrorCode.LEADER_NOT_AVAILABLE)
        elif offset > end:
            # Others may have written since the last pull: only the broker can refuse it.
            if offset not in self._pulls:
                self._pull(offset, self._stride)
        else:
            self._pull_from(at)
        return QueueReading(found, self._start, end, is_cut=is_cut)

    def confirmed(self, offset: int) -> None:
        """What this gateway has stored ends at an offset, though it may not be visible yet."""
        self._confirmed = max(self._confirmed, offset)

    def watch(self, watcher: Watcher) -> None:
        """Call back whenever `read` may say something else; until `unwatch`."""
        self._watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        """Call back no longer."""
        self._watchers.discard(watcher)

    def close(self) -> None:
        """End all pulls."""
        if self._later is not None:
            self._later.cancel()
        for task, _ in list(self._pulls.values()):
            task.cancel()
        # Who watches finds another reader of the queue, or none.
        self._notify()

    def drop(self) -> None:
        """Drop what is cached of the queue."""
        for base in self._bases:
            self._cache.remove((self._queue, base))
        self._bases.clear()

    # Private

    def _cached(self, offset: int) -> PulledBatch | None:
        """The batch with an offset, if it is cached."""
        at = bisect_right(self._bases, offset) - 1
        if at < 0:
            return None
        batch = self._cache.get((self._queue, self._bases[at]))
        if batch is None:
            # Evicted, perhaps before it was read: the cache has no room for this much ahead.
            del self._bases[at]
            self._ahead_count = max(1, self._ahead_count // 2)
            return None
        return batch if offset < batch.end else None

    def _pull_from(self, offset: int) -> None:
        """Keep pulls in flight for what follows an offset; a held one at the end."""
        if self._end == UNKNOWN:
            if not self._pulls:
                self._pull(offset, self._stride)
            return
        while offset < self._end and self._in_flight < self._ahead_count:
            cached = self._cached(offset)
            if cached is not None:
                offset = cached.end
                continue
            covering = next(
                (at + n for at, (_, n) in self._pulls.items() if at <= offset < at + n), None
            )
            if covering is None:
                self._pull(offset, self._stride)
                offset += self._stride
            else:
                offset = covering
        if offset >= self._end and self._end not in self._pulls:
            self._pull(self._end, self._stride, hold=True)

    @property
    def _in_flight(self) -> int:
        """Pulls in flight but for the one that is held."""
        return len(self._pulls) - (self._held in self._pulls)

    def _pull(self, offset: int, count: int, *, hold: bool = False) -> None:
        if hold:
            self._held = offset
        task = asyncio.get_running_loop().create_task(self._pulled(offset, count, hold))
        self._pulls[offset] = (task, count)
        task.add_done_callback(lambda done: self._done(offset, done))

    def _done(self, offset: int, task: asyncio.Task[None]) -> None:
        known = self._pulls.get(offset)
        if known is not None and known[0] is task:
            del self._pulls[offset]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("pulling %s failed", self._queue, exc_info=error)
            self._fail("The gateway failed.")
        self._notify()

    async def _pulled(self, offset: int, count: int, hold: bool) -> None:
        header = PullHeader(
            consumer_group=self._group,
            topic=self._queue.topic,
            queue_id=self._queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count,
            sys_flag=SUBSCRIPTION | (SUSPEND if hold else 0),
            suspend_timeout_millis=HOLD_MS if hold else 0,
            subscription="*",
            expression_type="TAG",
            bname=self._queue.broker,
        )
        timeout_s = HELD_PULL_S if hold else PULL_S
        try:
            pulled = await self._brokers.pull(self._queue.broker, header, timeout_s=timeout_s)
            self._take(offset, count, pulled)
        except (BrokerError, EntryError) as failed:
            self._fail(str(failed))

    def _take(self, offset: int, count: int, pulled: PullAnswer) -> None:
        answer = pulled.answer
        code = answer.code
        if code not in (
            ResponseCode.SUCCESS,
            ResponseCode.PULL_NOT_FOUND,
            ResponseCode.PULL_RETRY_IMMEDIATELY,
            ResponseCode.PULL_OFFSET_MOVED,
        ):
            self._fail(f"broker answered {code}: {answer.remark}")
            return
        found = read(answer, PulledHeader)
        if pulled.is_slaves and offset > found.max_offset:
            self._fail("the slave does not have it yet")
            return
        self._start, self._end = found.min_offset, max(self._end, found.max_offset)
        if code != ResponseCode.SUCCESS:
            if code == ResponseCode.PULL_OFFSET_MOVED:
                self._moved(offset, found.max_offset)
            return
        end = offset
        for batch in self._messages.batches(answer.body, offset):
            self._keep(batch)
            end = batch.end
            if batch.is_inner:
                # An offset is no message here: pulls side by side would have the same batches.
                self._ahead_count = 1
        self._widen(len(answer.body), end - offset)
        left = offset + count - end
        if end == offset:
            # Everything that the broker returned was before it.
            self._fail("broker returned no message from the offset on")
        elif left > 0 and end < self._end and end not in self._pulls:
            self._pull(end, left)

    def _widen(self, size: int, count: int) -> None:
        """Ask for as many messages as a broker that was tuned returns, and for fewer pulls."""
        limit = self._pull_count(self._queue.broker)
        if limit > STRIDE and count > 0:
            fitting = PULL_BYTES_MAX // max(1, size // count)
            self._stride = min(max(fitting, STRIDE), limit, WIDE_STRIDE_MAX)
            self._ahead_count = min(self._ahead_count, WIDE_AHEAD_COUNT)

    def _moved(self, offset: int, end: int) -> None:
        """The broker has no such offset: the queue ends or begins elsewhere."""
        self._refused = (offset, asyncio.get_running_loop().time())
        if end < self._end:
            # A broker that lost what it had not flushed: what was cached is gone.
            self._bases.clear()
        self._end = end
        if end < self._confirmed:
            # Or what this gateway confirmed is not visible yet.
            self._look_later()

    def _keep(self, batch: PulledBatch) -> None:
        key = (self._queue, batch.base)
        known = self._cache.get(key)
        if known is not None and known.end >= batch.end:
            return
        if known is None:
            insort(self._bases, batch.base)
        self._cache.put(key, batch, len(batch.data))

    def _fail(self, reason: str) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() >= self._failed_until:
            log.warning("cannot read %s: %s", self._queue, reason)
        self._failed_until = loop.time() + FAILED_S
        loop.call_later(FAILED_S, self._notify)

    def _look_later(self) -> None:
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(LAG_S, self._look_again)

    def _look_again(self) -> None:
        self._later = None
        self._notify()

    def _notify(self) -> None:
        for watcher in list(self._watchers):
            watcher()
