"""The store: opens, starts, ticks and stops its parts. It has no logic of its own.

    without threads    Store(...) … begin_epoch() … tick() … close(): tests and tools
    with threads       Store(...) … begin_epoch() … start(post) … tick() … close(): the server

Until `begin_epoch` it is read-only: upkeep runs, but nothing is appended to the log.

All methods must be called on one thread, the store's; `post` runs callbacks of its threads there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Self, Unpack

from rockgate.store.attachments import Attachments, attach
from rockgate.store.clock import Clock, SteadyClock
from rockgate.store.config import StoreConfig
from rockgate.store.delay.delivery import Deliveries
from rockgate.store.delay.early_delivery import EarlyDeliveries
from rockgate.store.delay.fold import Delay
from rockgate.store.errors import DiskFailed, StoreClosed, StoreFull, StoreReadOnly, UnknownQueue
from rockgate.store.files.interface import Directory
from rockgate.store.files.sync import SyncedDirectory, Syncs
from rockgate.store.keys.entrykeys import RecordKeys, no_keys
from rockgate.store.keys.keyfeed import KeyFeed
from rockgate.store.keys.keyindex import KeyIndex
from rockgate.store.log.beginning import Beginning, Found
from rockgate.store.log.commit import Commit
from rockgate.store.log.commitlog import NO_HOST, CommitLog
from rockgate.store.log.flusher import Flusher
from rockgate.store.log.page_allocation import Allocator
from rockgate.store.log.page_residency import PageResidency
from rockgate.store.log.segments import Segments
from rockgate.store.opening import find_log, key_shape, open_keys, replay
from rockgate.store.policy import PolicyOf, default_policy
from rockgate.store.progress.progress import Progress
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.read.lookup import Lookup
from rockgate.store.read.reader import Reader
from rockgate.store.state.epochs import Epochs
from rockgate.store.state.fold import Fold, Journal, LateJournal, State
from rockgate.store.state.snapshots import Snapshots
from rockgate.store.state.snapshotter import make_snapshotter
from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import random_topic_id
from rockgate.store.state.topics import Topics
from rockgate.store.upkeep.checkpoint import CheckpointFile
from rockgate.store.upkeep.checkpointer import Checkpointer
from rockgate.store.upkeep.compaction.cleaned import cleaned_fold
from rockgate.store.upkeep.compaction.cleaner import make_cleaner
from rockgate.store.upkeep.reserve import Reserve
from rockgate.store.upkeep.retention import Retention
from rockgate.store.upkeep.upkeep import begin_epoch, upkeep_steps
from rockgate.store.workers import Post, Threads
from rockgate.store.write.append import Appender
from rockgate.store.write.dispatch import QueueFeed, StateFeed

_log = logging.getLogger(__name__)

MakeFolds = Callable[[Journal, Topics], Sequence[Fold]]
"""Creates the folds of users: they write through the journal and may look up topics."""


class Store:
    """An open data directory."""

    def __init__(
        self,
        directory: Directory,
        config: StoreConfig,
        clock: Clock,
        *,
        folds: MakeFolds = lambda journal, topics: (),
        record_keys: RecordKeys = no_keys,
        policy_of: PolicyOf = default_policy,
        store_host: bytes = NO_HOST,
        new_topic_id: Callable[[], bytes] = random_topic_id,
    ) -> None:
        """Open the directory for reading: recover the log, restore the folds, load the queues."""
        self.config = config
        self.clock = clock
        self.syncs = Syncs(self._fail)
        self._directory = directory = SyncedDirectory(directory, self.syncs)
        self._record_keys = record_keys
        self._is_open = self._is_closed = False
        self.threads = threads = Threads()
        self._jobs = lambda: threads.jobs
        self.on_flushed: Callable[[int], None] = lambda position: None
        self._attached: set[str] = set()
        directory.lock("lock")
        try:
            self._open(folds, policy_of, store_host, new_topic_id)
        except BaseException:
            directory.unlock()
            raise

    def _open(
        self,
        folds: MakeFolds,
        policy_of: PolicyOf,
        store_host: bytes,
        new_topic_id: Callable[[], bytes],
    ) -> None:
        directory, config, clock = self._directory, self.config, self.clock
        self._checkpoint = CheckpointFile(directory, config.segment_bytes)
        self.snapshots = Snapshots(directory.child("snapshots"))
        self._reserve = Reserve(config.segment_bytes, self.snapshots, key_shape(config))
        self._segments = Segments(
            directory.child("commitlog"),
            config.segment_bytes,
            config.populate_ahead_bytes,
            reserved=self._reserve.low,
        )
        self.found: Found = find_log(self._segments, self._checkpoint, directory)
        self.allocator = Allocator(
            self._segments,
            clock,
            end=lambda: self.log.end,
            awaited_count=lambda: self.flusher.awaited_count,
        )
        self.log = CommitLog(
            self._segments,
            clock,
            store_host=store_host,
            wake_allocator=self.allocator.wake,
            end=self.found.end,
            last_store_ms=self.found.last_store_ms,
        )
        journal = LateJournal(lambda: self.appender)
        upkeep = LateJournal(lambda: self.appender.upkeep)
        self.topics = Topics(journal, upkeep=upkeep, new_id=new_topic_id, policy_of=policy_of)
        self.progress = Progress(journal, clock, upkeep=upkeep)
        self.epochs = Epochs()
        self._steady = SteadyClock(clock)
        self.delay = Delay(journal, self.topics, directory.child("delay"), self._steady)
        self._cleaned = cleaned_fold(upkeep)
        builtin: list[Fold] = [self.epochs, self.topics, self.progress, self.delay, self._cleaned]
        self.state = State([*builtin, *folds(journal, self.topics)], self.snapshots)
        self.queues = QueueTable(directory.child("queueindex"), config.segment_bytes)
        self._restore()
        self._make_paths()
        self._make_upkeep()
        self.steps = upkeep_steps(self)
        self._begin()

    def _make_paths(self) -> None:
        """Create the parts that append and read."""
        config, clock = self.config, self.clock
        self.flusher = Flusher(
            sync=self._segments.sync,
            end=lambda: self.log.end,
            clock=clock,
            config=config,
            flushed=self._checkpoint.newest.flushed,
            on_flushed=lambda position: self.commit.flushed(position),
        )
        self.commit = Commit(self.flusher)
        self.appender = Appender(
            log=self.log,
            queues=self.queues,
            state=self.state,
            keys=self.keys,
            reserved=self._reserve.least,
            on_reserve_used=lambda: self.retention.disk.look(),
        )
        self.residency = PageResidency(
            self._segments, clock, cold_bytes=config.cold_bytes, run_start=self.found.end
        )
        self.reader = Reader(self.log, self.commit, self.residency)
        self.deliveries = Deliveries(
            delay=self.delay,
            appender=self.appender,
            queues=self.queues,
            residency=self.residency,
            log=self.log,
            clock=self._steady,
            jobs=self._jobs,
        )
        self.early_deliveries = EarlyDeliveries(
            delay=self.delay, appender=self.appender, deliveries=self.deliveries
        )
        self.lookup = Lookup(
            log=self.log, topics=self.topics, queues=self.queues, reader=self.reader, keys=self.keys
        )

    def _make_upkeep(self) -> None:
        """Create the parts for checkpoints, snapshots and retention."""
        directory, config, clock = self._directory, self.config, self.clock
        self.checkpointer = Checkpointer(
            log=self.log,
            flusher=self.flusher,
            commit=self.commit,
            queues=self.queues,
            keys=self.keys,
            file=self._checkpoint,
            jobs=self._jobs,
            clock=clock,
            config=config,
        )
        self.snapshotter = make_snapshotter(
            directory=directory.child("snapshots"),
            state=self.state,
            snapshots=self.snapshots,
            sync_log=self._sync_log,
            commit=self.commit,
            log=self.log,
            clock=clock,
            jobs=self._jobs,
            config=config,
            taken_at=self._replay_from,
        )
        self.retention = Retention(
            directory=directory,
            log=self.log,
            segments=self._segments,
            topics=self.topics,
            queues=self.queues,
            epochs=self.epochs,
            snapshots=self.snapshots,
            checkpointer=self.checkpointer,
            commit=self.commit,
            appender=self.appender,
            reserve=self._reserve,
            keys=self.keys,
            jobs=self._jobs,
            clock=clock,
            config=config,
        )
        self.cleaner = make_cleaner(
            self, directory, cleaned=self._cleaned, reserve=self._reserve, jobs=self._jobs
        )

    def _restore(self) -> None:
        """Replay the log into folds and queues."""
        log, segments, config = self.log, self._segments, self.config
        flushed = self._checkpoint.newest.flushed
        replay_from = self.state.restore_newest(segments.start, log.end)
        replay(log, segments, replay_from, flushed, [StateFeed(self.state)])
        for topic in self.topics:
            self._make_queues(topic)
        feed = [QueueFeed(self.topics, self.queues)]
        indexed = self.queues.load(
            segments.start, flushed, lambda at, end: replay(log, segments, at, flushed, feed, end)
        )
        replay(log, segments, indexed, flushed, feed)
        for topic in self.topics:
            self.queues.advance(topic.id, topic.log_starts)
        self.keys: KeyIndex | None = open_keys(
            self._directory, config, self._record_keys, log, segments, flushed, self.threads.soon
        )
        self.key_feed = None if self.keys is None else KeyFeed(self.log, self.keys, self._jobs)
        self._replay_from = replay_from
        self.topics.on_created.append(self._make_queues)
        self.topics.on_grown.append(lambda topic, had: self._make_queues(topic))
        self.topics.on_altered.append(self._make_queues)
        self.topics.on_deleted.append(lambda topic: self.queues.remove(topic.id))
        self.topics.on_log_starts.append(
            lambda topic, starts: self.queues.advance(topic.id, starts)
        )

    def _make_queues(self, topic: Topic) -> None:
        is_sync = self.config.flush == "sync" or topic.policy.is_sync
        for queue in self.queues.create(topic.encoded, topic.id, topic.queue_count):
            queue.turn(is_sync=is_sync)

    def _begin(self) -> None:
        """Make the recovered state durable, and reject appends until there is an epoch."""
        self.beginning = Beginning(self._segments, self._directory, self.found)
        self.allocator.step()
        self.appender.fail(StoreReadOnly("The store is read-only until an epoch begins."))
        if self.log.end > self.checkpointer.position:
            self.checkpointer.take()
        self.syncs.check()
        self._is_open = True

    def begin_epoch(self, number: int = 0, nonce: bytes = b"") -> Self:
        """Accept writes, in the next or an assigned epoch, once there is space for its entry."""
        assert self.appender.is_read_only, "one epoch a run"
        try:
            begin_epoch(self, self.epochs.assign(number, nonce))
            self.checkpointer.take()
            self.retention.disk.look()
            self.syncs.check()
        except BaseException:
            self._is_closed = True
            self._directory.unlock()
            raise
        return self

    # Threads

    def start(self, post: Post) -> None:
        """Move allocation, fsyncs and file I/O to threads; `post` runs their callbacks here."""
        flushing = self.flusher.start(lambda: post(self._settle))
        self.threads.start(post, self.allocator.start(post), flushing)

    def _settle(self) -> None:
        if self.syncs.failure is not None:
            # Repeated here: this thread may have lifted the rejection at the same time.
            self.appender.fail(self.syncs.failure)
        self.flusher.settle()
        self.commit.settle()
        self.on_flushed(self.commit.position)

    def _fail(self, failure: DiskFailed) -> None:
        """Stop writing: an fsync failed on some thread. A start in progress fails by itself."""
        if not self._is_open:
            return
        self.flusher.fail(failure)
        self.appender.fail(failure)
        self.threads.soon(self._settle)

    def _sync_log(self, position: int) -> None:
        """Flush the log up to a position, on any thread."""
        while self.flusher.flushed < position:
            self.flusher.step()
            if self.flusher.failure is not None:
                raise self.flusher.failure

    # Lifecycle

    def attach(self, **given: Unpack[Attachments]) -> None:
        """Register callbacks with the store, each once."""
        attach(self, self._attached, given)

    @property
    def segments(self) -> Segments:
        """The log's files, for inspection."""
        return self._segments

    @property
    def disk_used_percent(self) -> float:
        """Disk usage in percent, as of the last check."""
        return self.retention.disk.used_percent

    def queue(self, topic: Topic, queue_id: int) -> Queue:
        """Return one queue of a topic; UnknownQueue if there is no such queue."""
        queues = self.queues.of(topic.id)
        if not 0 <= queue_id < len(queues):
            raise UnknownQueue(topic.name, queue_id)
        return queues[queue_id]

    def tick(self) -> bool:
        """Deliver and do upkeep, for callers without a delivery timer."""
        return self.deliveries.step() | self.upkeep()

    def upkeep(self) -> bool:
        """Do a little of what is due; say whether to be called again soon."""
        self.allocator.look()
        if self.syncs.failure is not None:
            return False
        return self.steps.run(may_append=not self.appender.is_read_only)

    def flush(self) -> None:
        """Flush everything now, and notify the waiters."""
        self.syncs.check()
        self._sync_log(self.log.end)
        self._settle()

    def close(self) -> None:
        """Finish what is in progress, flush everything and mark the stop as clean."""
        if self._is_closed:
            return
        self._is_closed = True
        self.appender.refusal = StoreClosed("The store is closed; the server is stopping.")
        self.retention.stop()
        self.threads.stop()
        self.cleaner.stop()
        try:
            self._leave_clean()
        except DiskFailed as failure:
            # The next start finds that this stop was not clean, and scans the log.
            _log.error("Closed without saving the last changes: %s", failure)
        finally:
            self.queues.close()
            self.delay.units.close()
            if self.keys is not None:
                self.keys.close()
            self._segments.close()
            self._checkpoint.close()
            self._directory.unlock()

    def _leave_clean(self) -> None:
        self.syncs.check()
        lasts = [self.flush, self.checkpointer.take, self.snapshotter.take_last]
        if not self.appender.is_read_only:
            lasts.insert(0, self.progress.flush)
        for last in lasts:
            try:
                last()
            except StoreFull as error:
                # The log has everything already; the next start replays a little more of it.
                _log.error(
                    "Stopped without saving everything; the next start replays more: %s", error
                )
        self.syncs.check()
        self.beginning.end()
