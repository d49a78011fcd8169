"""The cleaner: which queue is compacted next, and how fast.

One queue at a time, the dirtiest first. Whatever stops a cleaning (a full disk, a damaged entry)
is logged, and what it has appended so far remains valid; a queue with a damaged entry is left alone
until the next start. Without `bodies` nothing is compacted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from typing import Final, Protocol

from rockgate.store.clock import Clock
from rockgate.store.config import StoreConfig
from rockgate.store.errors import StoreCorrupt
from rockgate.store.files.interface import Directory
from rockgate.store.keys.keyindex import KeyIndex
from rockgate.store.log.commitlog import CommitLog, Draft, Written
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.queues.queuetable import QueueTable
from rockgate.store.state.epochs import Epochs
from rockgate.store.state.keyed import KeyedFold
from rockgate.store.state.topic import Topic
from rockgate.store.state.topics import Topics
from rockgate.store.upkeep.compaction.bodies import Bodies, Terms
from rockgate.store.upkeep.compaction.cleaned import Place
from rockgate.store.upkeep.compaction.cleaning import Changed, Cleaning, Parts
from rockgate.store.upkeep.compaction.dirt import Dirt, Due
from rockgate.store.upkeep.compaction.keymap import KeyMap
from rockgate.store.upkeep.expiry import TrustedTime
from rockgate.store.upkeep.reserve import Reserve
from rockgate.store.upkeep.retention import Retention
from rockgate.store.workers import Jobs
from rockgate.store.write.append import Appender

_log = logging.getLogger(__name__)

FOLDER: Final = "compaction"
CREDIT_MS: Final = 200
"""How much of the allowed rate may be spent at once after a pause."""
CREDIT_BYTES_MIN: Final = 1 << 20
_TOPICS_PER_SLICE: Final = 200
_FORGET_COUNT: Final = 500


class Cleaner:
    """Compacts queues. Owned by the store; `step` is called from its tick."""

    def __init__(
        self,
        *,
        parts: Callable[[Callable[[], KeyMap]], Parts],
        directory: Directory,
        room: Callable[[], bool],
        topics: Topics,
        cleaned: KeyedFold[Place, int],
        on_cleaned: Callable[[Queue], None],
        clock: Clock,
        config: StoreConfig,
    ) -> None:
        """`room` says whether the disk has space for scratch files."""
        self._directory = directory
        self._room = room
        self._parts = parts(self._key_map)
        self._topics = topics
        self._cleaned = cleaned
        self._on_cleaned = on_cleaned
        self._clock = clock
        self._config = config
        self._time = TrustedTime(clock)
        self.bodies: Bodies | None = None
        """Opens bodies; without it nothing is compacted."""
        self.on_compacted: Callable[[], None] = lambda: None
        """Called after a queue was compacted, even if only in part."""
        self._dirt: dict[Queue, Dirt] = {}
        self._damaged: set[Queue] = set()
        self._work: Generator[bool, None, None] | None = None
        self._cleaning: Cleaning | None = None
        self._searched_ms = clock.monotonic_ms() - config.compaction_interval_ms
        self._credit = 0
        self._credit_ms = clock.monotonic_ms()
        self._spent = 0
        self.cleaned_count = 0
        self.dropped_count = 0
        self.rewritten_count = 0
        self.read_bytes = 0
        self.written_bytes = 0
        self.failure: Exception | None = None
        """What stopped the last cleaning; None if nothing did."""
        if directory.has_child(FOLDER):
            folder = directory.child(FOLDER)
            for name in folder.names():
                folder.remove(name)

    def _key_map(self) -> KeyMap:
        return KeyMap(lambda: self._directory.child(FOLDER), self._room)

    def configure(self, config: StoreConfig) -> None:
        """Use another interval and another rate."""
        self._config = config

    @property
    def damaged_count(self) -> int:
        """Queues that are left alone until the next start, because an entry is damaged."""
        return len(self._damaged)

    # Working

    def step(self) -> bool:
        """Do a little; say whether to be called again soon."""
        if self.bodies is None or not self._config.compaction:
            return False
        if self._work is None:
            if self._clock.monotonic_ms() - self._searched_ms < self._config.compaction_interval_ms:
                return False
            self._work = self._round(self.bodies)
        if not self._may_spend():
            return False
        try:
            return next(self._work)
        except StopIteration:
            self.failure = None
        except BaseException as error:
            if isinstance(error, Exception):
                self.failure = error
            self._stop()
            raise
        self._stop()
        return False

    def stop(self) -> None:
        """Leave everything as it is: a later cleaning starts over."""
        self._stop()

    def _stop(self) -> None:
        work, self._work, self._cleaning = self._work, None, None
        if work is not None:
            work.close()

    def _may_spend(self) -> bool:
        """Say whether what was read and written so far is within the allowed rate."""
        rate = self._config.compaction_bytes_per_second
        now_ms = self._clock.monotonic_ms()
        self._credit += (now_ms - self._credit_ms) * rate // 1_000
        self._credit_ms = now_ms
        self._credit = min(self._credit, max(CREDIT_BYTES_MIN, rate * CREDIT_MS // 1_000))
        cleaning = self._cleaning
        if cleaning is not None:
            spent = cleaning.read_bytes + cleaning.written_bytes
            self._credit -= spent - self._spent
            self._spent = spent
        return self._credit >= 0

    def _round(self, bodies: Bodies) -> Generator[bool, None, None]:
        """Find the dirtiest queue and clean it, until none is dirty enough."""
        yield from self._forget()
        while True:
            self._searched_ms = self._clock.monotonic_ms()
            found: list[Due] = []
            yield from self._search(bodies, found)
            if not found:
                return
            due = max(found, key=lambda each: (each.is_overdue, each.ratio))
            yield from self._clean(bodies, due)

    def _search(self, bodies: Bodies, found: list[Due]) -> Iterator[bool]:
        now_ms = self._time.now_ms()
        for count, topic in enumerate(self._topics, 1):
            if count % _TOPICS_PER_SLICE == 0:
                yield True
            policy = topic.policy
            if not policy.compacts:
                continue
            for queue in list(self._parts.queues.of(topic.id)):
                if queue in self._damaged or queue not in self._parts.queues:
                    continue
                dirt = self._dirt.get(queue)
                if dirt is None:
                    cleaned_to = self._cleaned.find((topic.id, queue.queue_id)) or 0
                    dirt = self._dirt[queue] = Dirt(queue, cleaned_to)
                sealed = self._parts.queues.sealed
                end = dirt.end(bodies.stable_end(queue), sealed, policy, now_ms)
                yield from dirt.measure(end)
                due = dirt.due(end, policy, now_ms)
                if due is not None:
                    found.append(due)

    def _clean(self, bodies: Bodies, due: Due) -> Iterator[bool]:
        queue = due.queue
        topic = self._topics.find_id(queue.topic_id)
        if topic is None:
            return
        place = queue.topic_id, queue.queue_id
        terms = Terms(
            self._time.now_ms(), topic.policy.delete_retention_ms, self._cleaned.find(place) or 0
        )
        cleaning = self._cleaning = Cleaning(self._parts, bodies, queue, due.end, terms)
        self._spent = 0
        try:
            yield from cleaning.run()
            self._cleaned.put({place: due.end})
            self.cleaned_count += 1
            self.dropped_count += cleaning.dropped_count
            self._report(topic, cleaning)
        except Changed:
            pass
        except StoreCorrupt as damage:
            self._damaged.add(queue)
            self.failure = damage
            _log.error("queue is not compacted until the next start: %s", damage)
        finally:
            self._may_spend()
            self._cleaning = None
            self.rewritten_count += cleaning.rewritten_count
            self.read_bytes += cleaning.read_bytes
            self.written_bytes += cleaning.written_bytes
            # The sizes of its entries are others now.
            self._dirt.pop(queue, None)
            self._on_cleaned(queue)
            if cleaning.rewritten_count:
                self.on_compacted()

    def _report(self, topic: Topic, cleaning: Cleaning) -> None:
        _log.info(
            "compacted topic=%s queue=%d end=%d dropped=%d rewritten=%d read_bytes=%d bytes=%d",
            topic.name,
            cleaning.queue.queue_id,
            cleaning.end,
            cleaning.dropped_count,
            cleaning.rewritten_count,
            cleaning.read_bytes,
            cleaning.written_bytes,
        )

    def _forget(self) -> Iterator[bool]:
        """Remove the records of queues whose topic was deleted."""
        gone: list[Place] = []
        for count, (place, _) in enumerate(list(self._cleaned.items()), 1):
            if self._parts.queues.find(*place) is None:
                gone.append(place)
            if count % _TOPICS_PER_SLICE == 0:
                yield True
        for at in range(0, len(gone), _FORGET_COUNT):
            self._cleaned.put(dict.fromkeys(gone[at : at + _FORGET_COUNT]))
            yield True
        for queue in [each for each in self._dirt if each not in self._parts.queues]:
            del self._dirt[queue]
        self._damaged = {each for each in self._damaged if each in self._parts.queues}


class Owner(Protocol):
    """The parts of a store that compaction works with."""

    log: CommitLog
    topics: Topics
    queues: QueueTable
    epochs: Epochs
    appender: Appender
    retention: Retention
    keys: KeyIndex | None
    clock: Clock
    config: StoreConfig


def make_cleaner(
    owner: Owner,
    directory: Directory,
    *,
    cleaned: KeyedFold[Place, int],
    reserve: Reserve,
    jobs: Callable[[], Jobs],
) -> Cleaner:
    """Create the cleaner of a store. Its appends leave the space that upkeep needs to free some."""
    log, appender, retention = owner.log, owner.appender, owner.retention

    def append(draft: Draft) -> Written:
        if appender.failure is not None:
            raise appender.failure.with_traceback(None)
        return appender.within_reserve(lambda: log.append(draft), reserve.least)

    def has_room() -> bool:
        free, total = directory.space()
        return free > reserve.low(total)

    def parts(key_map: Callable[[], KeyMap]) -> Parts:
        return Parts(
            log=log,
            queues=owner.queues,
            usage=retention.usage,
            epochs=owner.epochs,
            keys=owner.keys,
            jobs=jobs,
            append=append,
            may_append=lambda: not retention.is_emptying,
            key_map=key_map,
        )

    return Cleaner(
        parts=parts,
        directory=directory,
        room=has_room,
        topics=owner.topics,
        cleaned=cleaned,
        on_cleaned=retention.expiry.forget,
        clock=owner.clock,
        config=owner.config,
    )
