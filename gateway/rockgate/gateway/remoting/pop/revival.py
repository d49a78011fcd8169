"""What happens to messages in flight without anyone asking: expiry and progress.

docs/internals/pop.md specifies it. A message whose invisible time is over becomes a copy in the
retry topic of its group and topic, in one atomic group with its end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from rockgate.gateway.remoting.messages.delay import PRESERVED_FLAGS
from rockgate.gateway.remoting.messages.puller import Pulled, Puller
from rockgate.gateway.remoting.messages.retry import OF_THE_LOG, TIMES_MAX
from rockgate.gateway.remoting.messages.subscriptions import EVERYTHING
from rockgate.gateway.remoting.server.errors import Refused
from rockgate.gateway.remoting.topics.topic_registry import TopicRegistry
from rockgate.gateway.transcode import names
from rockgate.protocol import entry as envelope
from rockgate.protocol.entry import pack_properties, parse_properties
from rockgate.protocol.remoting import properties as named
from rockgate.protocol.remoting.pop import retry_topic
from rockgate.protocol.remoting.system_topics import RETRY_PREFIX
from rockgate.store.api.append import Draft, Intake, StateAppender
from rockgate.store.api.clock import Clock
from rockgate.store.api.inflight import (
    INFLIGHT_TOPIC,
    Acquire,
    End,
    EndReason,
    Forget,
    InFlight,
    MessagesInFlight,
    Window,
    encode,
    runs_of,
)
from rockgate.store.api.problems import DeferralLog
from rockgate.store.api.progress import Commit, Progress
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic, TopicLookup
from rockgate.store.errors import StoreError

log = logging.getLogger(__name__)

WINDOWS_AT_ONCE: Final = 32
MESSAGES_AT_ONCE: Final = 64
BYTES_AT_ONCE: Final = 256 << 10
AGAIN_MS: Final = 1_000
REFUSED_MS: Final = 10_000
COMMIT_MS: Final = 5_000
COMMITS_AT_ONCE: Final = 500
QUIET_ROUNDS: Final = 12
"""Rounds of commits after which a window without messages in flight is removed."""


class Revival:
    """Expires what is in flight, and commits how far groups are."""

    def __init__(
        self,
        *,
        in_flight: MessagesInFlight,
        journal: StateAppender,
        puller: Puller,
        queues: Queues,
        lookup: TopicLookup,
        topics: TopicRegistry,
        progress: Progress,
        clock: Clock,
        wake: Callable[[Queue], None],
    ) -> None:
        self._in_flight = in_flight
        self._journal = journal
        self._puller = puller
        self._queues = queues
        self._lookup = lookup
        self._topics = topics
        self._progress = progress
        self._clock = clock
        self._wake = wake
        self._deferrals = DeferralLog(log, "cannot move expired messages to their retry topics")
        self._reading: set[asyncio.Future[Pulled]] = set()
        self._walk: Iterator[Window | None] | None = None
        self._commit_ms = 0
        self.moved_count = 0
        self.lost_count = 0

    @property
    def is_reading(self) -> bool:
        """Whether something is being loaded."""
        return bool(self._reading)

    # Expiry

    def expire(self) -> bool:
        """Make some expired messages available again; return whether there are more."""
        now_ms = self._clock.now_ms()
        due_ms = self._in_flight.next_due_ms
        if due_ms is None or due_ms > now_ms:
            return False
        left = MESSAGES_AT_ONCE
        for window in self._in_flight.due(now_ms, WINDOWS_AT_ONCE):
            if left <= 0:
                self._in_flight.look_at(window, now_ms)
                continue
            left -= self._expire_window(window, now_ms, left)
        due_ms = self._in_flight.next_due_ms
        return due_ms is not None and due_ms <= now_ms

    def _expire_window(self, window: Window, now_ms: int, count_max: int) -> int:
        topic = self._lookup.find_id(window.key[1])
        if topic is None:
            return 0
        queue = self._queues.of(topic.id)[window.key[2]]
        expired = window.expired(now_ms, is_in_place=False)
        part = expired[:count_max]
        try:
            if window.has_in_place:
                self._wake_again(window, queue, now_ms)
            if not part:
                return 0
            done = self._move(window, topic, queue, part)
        except (StoreError, Refused) as error:
            self._deferrals.report(error)
            self._in_flight.look_at(window, now_ms + REFUSED_MS)
            return len(part)
        self._deferrals.end()
        if done < len(part):
            # The rest is being loaded.
            self._in_flight.look_at(window, now_ms + AGAIN_MS)
        elif len(part) < len(expired):
            self._in_flight.look_at(window, now_ms)
        return len(part)

    def _wake_again(self, window: Window, queue: Queue, now_ms: int) -> None:
        """Let pops have what comes again in place, but for what retention took."""
        expired = [each.offset for each in window.expired(now_ms, is_in_place=True)]
        lost = [offset for offset in expired if offset < queue.log_start]
        if lost:
            change = End(*window.key, EndReason.LOST, runs_of(lost))
            self._journal.append_state(INFLIGHT_TOPIC, encode(change))
            self.lost_count += len(lost)
        if expired:
            self._wake(queue)

    def _move(self, window: Window, topic: Topic, queue: Queue, expired: list[InFlight]) -> int:
        """Append copies with their end, as one group; return how many are settled."""
        target = self._target(topic, window.key[0])
        intakes: list[Intake] = []
        moved: list[int] = []
        lost: list[int] = []
        size = 0
        for item in expired:
            if size >= BYTES_AT_ONCE:
                break
            found = self._puller.pull(queue, item.offset, EVERYTHING, 1, BYTES_AT_ONCE)
            if not isinstance(found, Pulled):
                self._load(found)
                break
            draft = _copy(found, item)
            if draft is None:
                lost.append(item.offset)
                continue
            size += len(draft.body)
            moved.append(item.offset)
            intakes.append(Intake(target, draft))
        ends = [
            End(*window.key, reason, runs_of(offsets))
            for reason, offsets in ((EndReason.MOVED, moved), (EndReason.LOST, lost))
            if offsets
        ]
        if ends:
            group = [
                Draft(topic=INFLIGHT_TOPIC, queue_id=0, offset=-1, body=encode(end)) for end in ends
            ]
            self._journal.group([*intakes, *(Intake(None, draft) for draft in group)])
            self.moved_count += len(moved)
            self.lost_count += len(lost)
            for offset in lost:
                log.warning("expired message is missing queue=%d offset=%d", queue.queue_id, offset)
            self._wake(queue)
        return len(moved) + len(lost)

    def _target(self, topic: Topic, group: str) -> Queue:
        """Return the queue in which a group gets messages of a topic again."""
        name = names.to_rocketmq(topic.name)
        if not name.startswith(f"{RETRY_PREFIX}{names.to_rocketmq(group)}_"):
            name = retry_topic(name, names.to_rocketmq(group))
        return self._queues.of(self._topics.ensure_queues(name, 1).id)[0]

    def _load(self, later: Awaitable[Pulled]) -> None:
        reading = asyncio.ensure_future(later)
        self._reading.add(reading)
        reading.add_done_callback(self._brought_in)

    def _brought_in(self, reading: asyncio.Future[Pulled]) -> None:
        self._reading.discard(reading)
        if not reading.cancelled() and (error := reading.exception()) is not None:
            log.warning("cannot read an expired message: %s", error)

    # Progress

    def commit(self) -> bool:
        """Commit how far groups are, some windows at a time; return whether there is more."""
        if self._walk is None:
            now_ms = self._clock.monotonic_ms()
            if now_ms < self._commit_ms:
                return False
            self._commit_ms = now_ms + COMMIT_MS
            self._walk = self._in_flight.walk()
        for _ in range(COMMITS_AT_ONCE):
            try:
                window = next(self._walk)
            except StopIteration:
                self._walk = None
                return False
            if window is not None:
                self._commit_window(window)
        return True

    def _commit_window(self, window: Window) -> None:
        group, topic_id, queue_id = window.key
        if window.scanned > window.end:
            change = Acquire(*window.key, window.end, window.scanned, 0, False, [])
            self._journal.append_state(INFLIGHT_TOPIC, encode(change))
        start = window.start
        known = self._progress.fetch(group, topic_id, queue_id)
        offset = None if known is None else known.offset
        # If another client has committed, the next pop continues there.
        if window.committed is None or offset == window.committed:
            if offset != start:
                commit = Commit(topic_id, queue_id, start)
                self._progress.commit(group, (commit,), acknowledged=False)
            window.committed = start
        if not len(window):
            window.quiet_rounds += 1
            if window.quiet_rounds > QUIET_ROUNDS:
                self._forget(window)

    def _forget(self, window: Window) -> None:
        """Remove a window that says no more than the committed offset."""
        group, topic_id, queue_id = window.key
        # The offset has to be in the log before: a crash between the two must not lose it.
        self._progress.settle(group, [(topic_id, queue_id)])
        self._journal.append_state(INFLIGHT_TOPIC, encode(Forget(*window.key)))


def _copy(found: Pulled, item: InFlight) -> Draft | None:
    """Return an expired message for another try; None if there is none at its offset."""
    if not found.buffers:
        return None
    view = memoryview(found.buffers[0])
    entry = envelope.read(view)
    if entry.queue_offset != item.offset:
        return None
    own = parse_properties(envelope.properties_of(view, entry))
    properties = {name: value for name, value in own.items() if name not in OF_THE_LOG}
    properties.pop(named.POP_CHECKPOINT, None)
    properties.setdefault(named.FIRST_POP_TIME, str(item.deadline_ms))
    return Draft(
        topic=b"",
        queue_id=0,
        offset=0,
        body=bytes(view[entry.body_at : entry.body_at + entry.body_size]),
        properties=pack_properties(properties.items()),
        batch_count=0,
        born_ms=entry.born_ms,
        born_host=entry.born_host,
        flag=entry.flag,
        sys_flag=entry.sys_flag & PRESERVED_FLAGS,
        reconsume_times=min(entry.reconsume_times + 1, TIMES_MAX),
    )
