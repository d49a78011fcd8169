"""Retention: which segments may be deleted, and in which order.

docs/internals/retention.md specifies this module, `expiry`, `usage`, `relocation` and `disk`. One
round reads from top to bottom in `_round`; it pauses after every slice of work and continues with
the next tick. Whatever stops a round (a full disk, a damaged entry, a failed fsync) is logged and
stored as the reason, and the next one starts over: each step leaves a log that a start accepts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from rockgate.store.clock import Clock
from rockgate.store.config import StoreConfig
from rockgate.store.errors import DiskFailed, StoreError
from rockgate.store.files.interface import Directory
from rockgate.store.log.commit import Commit
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.log.segments import Segment, Segments
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.state.epochs import Epochs
from rockgate.store.state.snapshots import Snapshots
from rockgate.store.state.topic import Topic
from rockgate.store.state.topics import Topics
from rockgate.store.upkeep.checkpointer import Checkpointer
from rockgate.store.upkeep.disk import DiskWatch
from rockgate.store.upkeep.expiry import Expiry
from rockgate.store.upkeep.relocation import Keys, Mover
from rockgate.store.upkeep.reserve import Reserve
from rockgate.store.upkeep.usage import Retainer, Usage, prefix_to_empty
from rockgate.store.workers import Jobs, run_job
from rockgate.store.write.append import Appender

_log = logging.getLogger(__name__)

PRESSED_MS: Final = 5_000
"""Time until the next round while disk usage is above its limit."""
FIRST_MS: Final = 10_000
"""Time from a start to the first round, unless rounds are more frequent."""
_FORCE_COUNT: Final = 500
_EVERYTHING: Final = 1 << 62


class KeyFiles(Keys, Protocol):
    """The key index, as retention uses it."""

    def expire(self, below: int) -> None:
        """Drop the files that only point below a position."""


class SegmentUse(NamedTuple):
    """Statistics of one segment."""

    start: int
    size: int
    live: int | None
    """Live bytes; None if not accounted since something changed."""
    reason: str
    """Why the segment is retained."""

    @property
    def dead(self) -> int | None:
        """Dead bytes."""
        return None if self.live is None else self.size - self.live


class Retention:
    """Frees expired segments. Owned by the store; `step` is called from its tick."""

    def __init__(
        self,
        *,
        directory: Directory,
        log: CommitLog,
        segments: Segments,
        topics: Topics,
        queues: QueueTable,
        epochs: Epochs,
        snapshots: Snapshots,
        checkpointer: Checkpointer,
        commit: Commit,
        appender: Appender,
        reserve: Reserve,
        keys: KeyFiles | None,
        jobs: Callable[[], Jobs],
        clock: Clock,
        config: StoreConfig,
    ) -> None:
        self._log = log
        self._segments = segments
        self._topics = topics
        self._queues = queues
        self._snapshots = snapshots
        self._checkpointer = checkpointer
        self._commit = commit
        self._keys = keys
        self._jobs = jobs
        self._clock = clock
        self._config = config
        self.disk = DiskWatch(
            directory=directory,
            appender=appender,
            reserve=reserve,
            jobs=jobs,
            clock=clock,
            config=config,
        )
        self.expiry = Expiry(topics=topics, queues=queues, clock=clock, config=config)
        self.usage = Usage(queues)
        self.mover = Mover(
            queues=queues,
            usage=self.usage,
            epochs=epochs,
            keys=keys,
            jobs=jobs,
            path=segments.path,
            append=lambda draft: appender.within_reserve(lambda: log.append(draft)),
        )
        self._work: Iterator[bool] | None = None
        self._altered: dict[Topic, None] = {}
        self._begun_ms = clock.monotonic_ms() - max(0, config.retention_interval_ms - FIRST_MS)
        self._snapshot_for = 0
        self._emptying: Segment | None = None
        self._emptied_at: dict[int, int] = {}
        """Where the log ended when a segment, by its start, had nothing live left."""
        self._commit_for = 0
        self.pinned: Callable[[], int] = lambda: _EVERYTHING
        """Returns a position from which on others read: segments from there on stay."""
        self.removed_count = 0
        self.failure: Exception | None = None
        """What stopped the last round; None if nothing did."""
        # First in the list: a queue's old start is only known before its log start advances.
        topics.on_log_starts.insert(0, self._on_log_starts)
        topics.on_deleted.insert(0, self._on_deleted)
        topics.on_altered.append(self._on_altered)

    def keep(self, retainer: Retainer) -> None:
        """Add a keeper: what it needs is never deleted, whatever its age."""
        if retainer not in self.usage.retainers:
            self.usage.retainers.append(retainer)

    # Listening

    def _on_log_starts(self, topic: Topic, starts: Mapping[int, int]) -> None:
        queues = self._queues.of(topic.id)
        for queue_id in starts:
            self.usage.touch(queues[queue_id])

    def _on_deleted(self, topic: Topic) -> None:
        for queue in self._queues.of(topic.id):
            self.usage.touch(queue)
            self.expiry.forget(queue)
        self._altered.pop(topic, None)

    def _on_altered(self, topic: Topic) -> None:
        # A shorter retention takes effect at once, not with the next round.
        self._altered[topic] = None

    # Status

    @property
    def wants_snapshot(self) -> bool:
        """Whether a segment could be deleted if there were newer snapshots."""
        return self._snapshots.oldest_needed() < self._snapshot_for

    @property
    def is_emptying(self) -> bool:
        """Whether entries are being relocated: what replaces entries meanwhile must wait."""
        return self._emptying is not None

    @property
    def segments(self) -> list[SegmentUse]:
        """Every segment with its live bytes and the reason why it is retained."""
        return [
            SegmentUse(each.start, each.size, self.usage.live_bytes(each), self._reason(each))
            for each in self._segments.row
        ]

    def _reason(self, segment: Segment) -> str:
        live = self.usage.live_bytes(segment)
        if segment is self._segments.active:
            return "active"
        if segment.end > self._queues.sealed:
            return "its index is not written yet"
        if segment is self._emptying:
            return "being relocated"
        if self.failure is not None and segment.start == self._segments.start:
            return str(self.failure)
        if live is None:
            return "not accounted yet"
        if live * 2 > segment.size:
            return "mostly live"
        if self.wants_snapshot:
            return "waiting for a snapshot"
        if self._commit.position < self._commit_for:
            return "waiting for replicas"
        return "waiting for earlier segments"

    # Working

    def step(self, *, may_append: bool = True) -> bool:
        """Do a little; say whether to be called again soon."""
        self.disk.step()
        if self._work is None:
            if not self._is_due():
                return False
            self._work = self._round() if may_append else self._local_round()
        try:
            return next(self._work)
        except StopIteration:
            self.failure = None
        except (StoreError, OSError) as error:
            # Above the disk limit rounds are frequent, and often fail for the same reason.
            if not isinstance(error, DiskFailed) and str(error) != str(self.failure):
                _log.error("Retention failed and will retry: %s", error)
            self.failure = error
        self._work = self._emptying = None
        return False

    def stop(self) -> None:
        """Leave everything as it is: the next start continues."""
        self._work = self._emptying = None

    def _is_due(self) -> bool:
        if self._altered or self._is_time():
            return True
        if self._snapshot_for > 0 and not self.wants_snapshot:
            return True
        return 0 < self._commit_for <= self._commit.position

    def _is_time(self) -> bool:
        wait_ms = self._config.retention_interval_ms
        if self.disk.is_over:
            wait_ms = min(wait_ms, PRESSED_MS)
        return self._clock.monotonic_ms() - self._begun_ms >= wait_ms

    def _round(self) -> Iterator[bool]:
        """Expire entries; then free the oldest segments as long as that is worthwhile."""
        yield from self._expire()
        self._snapshot_for = self._commit_for = 0
        while row := self.sealed():
            oldest = row[0]
            yield from self.usage.weigh(row)
            sizes = [(each.size, self.usage.live_bytes(each) or 0) for each in row]
            is_worth_it = prefix_to_empty(sizes) > 0
            if not is_worth_it and not (self._config.disk_forced_cleanup and self.disk.is_over):
                return
            if self.pinned() < oldest.end:
                return
            if self._snapshots.oldest_needed() < oldest.end:
                self._snapshot_for = oldest.end
                return
            if not is_worth_it:
                yield from self._force(oldest)
            self._emptying = oldest
            yield from self._empty(oldest)
            if not self._is_emptied(oldest):
                self._emptying = None
                return
            yield from self._remove(oldest)
            self._emptying = None
            if self._is_time():
                # There may be much to free, and entries that expire meanwhile must not wait for it.
                return

    def _local_round(self) -> Iterator[bool]:
        """Free the oldest segments as long as nothing in them is live: nothing is relocated."""
        self._begun_ms = self._clock.monotonic_ms()
        self._altered = {}
        self._snapshot_for = self._commit_for = 0
        while row := self.sealed():
            oldest = row[0]
            yield from self.usage.weigh(row[:1])
            if self.usage.live_bytes(oldest) != 0 or self.pinned() < oldest.end:
                return
            self._emptied_at.setdefault(oldest.start, self._log.end)
            if not self._is_emptied(oldest):
                return
            if self._snapshots.oldest_needed() < oldest.end:
                self._snapshot_for = oldest.end
                return
            yield from self._remove(oldest)

    def _expire(self) -> Iterator[bool]:
        altered, self._altered = self._altered, {}
        if not self._is_time():
            return self.expiry.run(altered)
        self._begun_ms = self._clock.monotonic_ms()
        return self.expiry.run(self._topics)

    def sealed(self) -> list[Segment]:
        """Return the segments that may be deleted if nothing in them is live."""
        return [each for each in self._segments.row[:-1] if each.end <= self._queues.sealed]

    def _force(self, segment: Segment) -> Iterator[bool]:
        """Advance the log starts of queues past a segment that has not expired."""
        _log.warning(
            "Deleting unexpired segment %s: the disk is full.", self._segments.path(segment)
        )
        starts: dict[Topic, dict[int, int]] = {}
        for count, run in enumerate(self._queues.index(segment.start).runs(), 1):
            topic = self._topics.find_id(run.topic_id)
            if topic is not None and run.queue_id < topic.queue_count and topic.policy.expires:
                offsets = starts.setdefault(topic, {})
                offsets[run.queue_id] = max(run.end, offsets.get(run.queue_id, 0))
            if count % _FORCE_COUNT == 0:
                self._topics.advance_log_starts(starts)
                starts = {}
                yield True
        self._topics.advance_log_starts(starts)

    def _empty(self, segment: Segment) -> Iterator[bool]:
        """Relocate what is live in a segment, and note where the log then ends."""
        moved_count = self.mover.moved_count
        yield from self.mover.empty(segment)
        if self.mover.moved_count > moved_count:
            self._emptied_at.pop(segment.start, None)
        self._emptied_at.setdefault(segment.start, self._log.end)

    def _is_emptied(self, segment: Segment) -> bool:
        """Say whether it is committed that nothing in a segment is live.

        A log that is cut back below the relocated entries needs the originals.
        """
        position = self._emptied_at[segment.start]
        # While the position is the flusher's, the checkpoint of the removal brings it there.
        if self._commit.is_replicated and self._commit.position < position:
            self._commit_for = position
            return False
        return True

    def _remove(self, segment: Segment) -> Iterator[bool]:
        """Remove an emptied segment, once everything that replaces it is on disk."""
        yield from self._checkpoint(self._log.end)
        # The file is removed first, alone and durably, so that there is never a gap on disk.
        yield from run_job(self._jobs(), self._segments.unlink_first)
        self._segments.forget_first()
        self._queues.drop_segment(segment.start)
        self.usage.forget(segment)
        self._emptied_at.pop(segment.start, None)
        if self._keys is not None:
            self._keys.expire(self._segments.start)
        self.removed_count += 1
        _log.info("segment deleted start=%d", segment.start)
        yield from run_job(self._jobs(), lambda: self._release(segment))
        self.disk.look()
        while self.disk.is_looking:
            yield True

    def _release(self, segment: Segment) -> None:
        self._queues.clean()
        segment.mapping.close()

    def _checkpoint(self, position: int) -> Iterator[bool]:
        """Flush the log up to a position, and take a checkpoint that covers it.

        Log starts and relocated entries must be durable before the originals are deleted, and a
        checkpoint must never contain a position before the log's start.
        """
        taken: list[bool] = []
        self._checkpointer.take(lambda: taken.append(True))
        while not taken:
            yield True
        if isinstance(self._checkpointer.failure, DiskFailed):
            raise self._checkpointer.failure
        if self._checkpointer.position < position:
            raise StoreError(f"The checkpoint did not reach position {position}.")
