"""What the broker counts, under the names that RocketMQ's brokers have for it.

docs/internals/statistics.md has the table of sets. Puts are counted by the store, queue by queue,
and collected here; gets, acknowledgements and the like are counted by those who do them. A step of
upkeep takes the snapshots, a little at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from rockgate.gateway.remoting.statistics.mornings import Mornings
from rockgate.gateway.remoting.statistics.rates import Rates
from rockgate.gateway.remoting.statistics.series import STEP_MS, Field, GetSeries, Series, Span
from rockgate.gateway.remoting.statistics.table import SeriesTable
from rockgate.gateway.runtime.time_slice import TimeSlice
from rockgate.store.api.clock import Clock
from rockgate.store.api.log import Log
from rockgate.store.api.queues import Queue, Queues
from rockgate.store.api.topics import Topic, WatchedTopics

SLICE_SECONDS: Final = 0.002
QUEUES_AT_ONCE: Final = 256
"""Queues that are added up before others may get their turn."""
DELIVERED: Final = "TIMER_DELIVERED_NUMS"
"""A set of our own: delayed messages that were delivered."""
Key = TypeVar("Key", bound=Hashable)
GroupKey = tuple[bytes, str]
"""Topic id and group."""


class PutTotals(Protocol):
    """What was appended to all queues since the start."""

    @property
    def put_count(self) -> int:
        """Messages and records."""

    @property
    def put_bytes(self) -> int:
        """Size of their entries."""


class Reads(Protocol):
    """Reads of messages since the start."""

    @property
    def hit_count(self) -> int:
        """Those that found something."""

    @property
    def miss_count(self) -> int:
        """Those that did not."""


class FoundMessages(Protocol):
    """What a pull found."""

    @property
    def message_count(self) -> int:
        """Messages."""

    @property
    def size(self) -> int:
        """Their bytes."""

    @property
    def next_offset(self) -> int:
        """The offset behind them."""


class _Derived(NamedTuple):
    """A series that is read from counters of others."""

    series: Series
    read: Callable[[], tuple[int, int]]
    """Return times and count."""


class BrokerStatistics:
    """The counters of a broker and their history. One per server."""

    def __init__(
        self,
        *,
        topics: WatchedTopics,
        queues: Queues,
        log: Log,
        puts: PutTotals,
        reads: Reads,
        clock: Clock,
        delivered: Callable[[], int],
        cluster_name: str,
        labels_max: int,
    ) -> None:
        """`delivered` tells how many delayed messages were delivered since the start."""
        self._topics = topics
        self._queues = queues
        self._log = log
        self._puts = puts
        self._reads = reads
        self._clock = clock
        now_ms = clock.monotonic_ms
        self.topic_puts = SeriesTable[bytes, Series](Series, labels_max, now_ms)
        self.queue_puts = SeriesTable[tuple[bytes, int], Series](Series, labels_max, now_ms)
        self.gets = SeriesTable[GroupKey, GetSeries](GetSeries, labels_max, now_ms)
        self.acks = SeriesTable[GroupKey, Series](Series, labels_max, now_ms)
        self.checkpoints = SeriesTable[GroupKey, Series](Series, labels_max, now_ms)
        self.send_backs = SeriesTable[GroupKey, Series](Series, labels_max, now_ms)
        self.dead_letters = SeriesTable[GroupKey, Series](Series, labels_max, now_ms)
        self._tables: dict[str, SeriesTable[Any, Any]] = {
            "topic_puts": self.topic_puts,
            "queue_puts": self.queue_puts,
            "gets": self.gets,
            "acks": self.acks,
            "checkpoints": self.checkpoints,
            "send_backs": self.send_backs,
            "dead_letters": self.dead_letters,
        }
        self.get_count = 0
        """Messages that consumers got."""
        self.system_get_count = 0
        """Those among them that are of system topics."""
        self.longest_put_seconds = 0.0
        """The longest put of a millisecond or more."""
        self.ack_count = 0
        self.checkpoint_count = 0
        self.rates = Rates()
        self.mornings = Mornings()
        self.on_second: list[Callable[[int], None]] = []
        """Called about once a second, with the time."""
        self._derived: dict[tuple[str, str], _Derived] = {}
        self._next_ms = [now_ms()] * len(Span)
        self._collected_to = log.end
        self._work: Iterator[None] | None = None
        self._system = {topic.id for topic in topics if topic.is_internal}
        topics.on_created.append(self._created)
        topics.on_deleted.append(self._deleted)
        for name, read in (
            ("BROKER_PUT_NUMS", lambda: puts.put_count),
            ("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", self.user_put_count),
            ("BROKER_GET_NUMS", lambda: self.get_count),
            ("BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC", self.user_get_count),
            ("BROKER_ACK_NUMS", lambda: self.ack_count),
            ("BROKER_CK_NUMS", lambda: self.checkpoint_count),
        ):
            self._derive_count(name, cluster_name, read)
        self._derive_count(DELIVERED, cluster_name, delivered)
        self._cluster_name = cluster_name

    # Counting

    def got(self, queue: Queue, group: str, found: FoundMessages, seconds: float) -> None:
        """Count the messages of one answer to a pull."""
        count = found.message_count
        series = self._got(queue.topic_id, group, count, found.size, seconds)
        series.pulled[queue.queue_id] = found.next_offset

    def popped(
        self,
        topic_id: bytes,
        group: str,
        *,
        count: int,
        size: int,
        checkpoints: int,
        seconds: float,
    ) -> None:
        """Count the messages of one answer to a pop; of each queue they have one checkpoint."""
        self._got(topic_id, group, count, size, seconds)
        self.handed_out(topic_id, group, checkpoints)

    def _got(self, topic_id: bytes, group: str, count: int, size: int, seconds: float) -> GetSeries:
        key = topic_id, group
        series = self.gets.rows.get(key) or self.gets.at(key)
        series.times += 1
        series.count += count
        series.size += size
        if seconds >= 0.001:
            series.ms += int(seconds * 1000)
        self.get_count += count
        if topic_id in self._system:
            self.system_get_count += count
        return series

    def acknowledged(self, topic_id: bytes, group: str, count: int) -> None:
        """Count messages that were acknowledged one by one."""
        _add(self.acks.at((topic_id, group)), count)
        self.ack_count += count

    def handed_out(self, topic_id: bytes, group: str, count: int) -> None:
        """Count checkpoints: the messages that one pop got of one queue are one."""
        _add(self.checkpoints.at((topic_id, group)), count)
        self.checkpoint_count += count

    def sent_back(self, topic_id: bytes, group: str, *, is_dead: bool) -> None:
        """Count a message that a consumer could not consume."""
        _add(self.send_backs.at((topic_id, group)), 1)
        if is_dead:
            self.buried(topic_id, group)

    def buried(self, topic_id: bytes, group: str) -> None:
        """Count a dead letter."""
        _add(self.dead_letters.at((topic_id, group)), 1)

    def put_took(self, queue: Queue, seconds: float) -> None:
        """Count the time of a put; only those that took a millisecond or more are reported."""
        self._collect_queue(queue, self._collected_to)
        series = self.queue_puts.rows.get((queue.topic_id, queue.queue_id))
        if series is not None:
            series.ms += int(seconds * 1000)
        self.longest_put_seconds = max(self.longest_put_seconds, seconds)

    def derive(self, name: str, key: str, read: Callable[[], tuple[int, int]]) -> None:
        """Add a set of one label, whose times and count are read from counters of others."""
        self._derived[name, key] = _Derived(Series(self._clock.monotonic_ms()), read)

    def _derive_count(self, name: str, key: str, read: Callable[[], int]) -> None:
        self.derive(name, key, lambda: (0, read()))

    # Totals

    def put_count(self) -> int:
        """Return how many messages and records were put since the start."""
        return self._puts.put_count

    def put_bytes(self) -> int:
        """Return their size."""
        return self._puts.put_bytes

    def user_put_count(self) -> int:
        """Return how many of them are not of system topics."""
        system = sum(queue.put_count for each in self._system for queue in self._queues.of(each))
        return self._puts.put_count - system

    def user_get_count(self) -> int:
        """Return how many messages of other than system topics consumers got."""
        return self.get_count - self.system_get_count

    def label_counts(self) -> dict[str, tuple[int, int]]:
        """Return by table how many labels there are, and how often there was no room for one."""
        return {name: (len(each), each.refused_count) for name, each in self._tables.items()}

    # Reading

    def derived_names(self) -> list[str]:
        """Return the sets of one label."""
        return [name for name, _ in self._derived]

    def derived(self, name: str, key: str) -> Series | None:
        """Return a series that is read from counters of others, as of now."""
        found = self._derived.get((name, key))
        if found is None:
            return None
        _read(found)
        return found.series

    def topic_series(self, topic: Topic) -> Series | None:
        """Return what was put to a topic, as of now; None if that is nothing."""
        for _ in self._collect_topic(topic, self._collected_to):
            pass
        return self.topic_puts.rows.get(topic.id)

    def queue_series(self, queue: Queue) -> Series | None:
        """Return what was put to a queue, as of now; None if that is nothing."""
        self._collect_queue(queue, self._collected_to)
        return self.queue_puts.rows.get((queue.topic_id, queue.queue_id))

    def put_per_second(self, topic: Topic) -> float:
        """Return how many messages a second were put to a topic, over the last minute."""
        series = self.topic_series(topic)
        return 0.0 if series is None else self._per_second(series)

    def got_per_second(self, topic: Topic, group: str) -> float:
        """Return how many messages a second a group got of a topic, over the last minute."""
        series = self.gets.rows.get((topic.id, group))
        return 0.0 if series is None else self._per_second(series)

    def delivered_per_second(self) -> float:
        """Return how many delayed messages a second were delivered, over the last minute."""
        series = self.derived(DELIVERED, self._cluster_name)
        return 0.0 if series is None else self._per_second(series)

    def _per_second(self, series: Series) -> float:
        return series.window(Span.MINUTE, Field.COUNT, self._clock.monotonic_ms()).per_second

    def pulled_to(self, topic_id: bytes, group: str, queue_id: int) -> int:
        """Return the offset behind what a group last pulled of a queue; 0 if that is not known."""
        series = self.gets.rows.get((topic_id, group))
        return 0 if series is None else series.pulled.get(queue_id, 0)

    def forget_group(self, group: str) -> None:
        """Forget a group that was deleted."""
        self._drop_groups(lambda key: key[1] == group)

    # Sampling

    def step(self) -> bool:
        """Take snapshots that are due, for a moment; say whether there is more to do."""
        now_ms = self._clock.monotonic_ms()
        reads = self._reads
        if self.rates.is_due(now_ms):
            put_count, get_count = self._puts.put_count, self.get_count
            self.rates.note(now_ms, (put_count, reads.hit_count, reads.miss_count, get_count))
            self.mornings.turn(self._clock.now_ms(), self.user_put_count(), self.user_get_count())
            for listener in self.on_second:
                listener(now_ms)
        if self._work is None:
            due = [span for span in Span if now_ms >= self._next_ms[span]]
            if not due:
                return False
            for span in due:
                self._next_ms[span] = now_ms + STEP_MS[span]
            self._work = self._sample(due, now_ms)
        share = TimeSlice(SLICE_SECONDS)
        work, self._work = self._work, None
        for _ in work:
            if share.is_over():
                # Work that raises is not taken up again; the next snapshot begins anew.
                self._work = work
                return True
        return False

    def _sample(self, due: list[Span], now_ms: int) -> Iterator[None]:
        end = self._log.end
        for topic in self._topics:
            yield from self._collect_topic(topic, self._collected_to)
            yield
        # Only now: a walk that failed half-way is to be made again from where it began.
        self._collected_to = end
        for derived in list(self._derived.values()):
            _read(derived)
            for span in due:
                derived.series.sample(span, now_ms)
        for span in due:
            for table in self._tables.values():
                yield from table.sample(span, now_ms)

    def _collect_topic(self, topic: Topic, since: int) -> Iterator[None]:
        """Add up the queues of a topic, if one of them has got something."""
        is_changed = False
        times = count = size = 0
        for index, queue in enumerate(self._queues.of(topic.id)):
            is_changed |= self._collect_queue(queue, since)
            times += queue.put_times
            count += queue.put_count
            size += queue.put_bytes
            if index % QUEUES_AT_ONCE == QUEUES_AT_ONCE - 1:
                yield
        if is_changed:
            _set(self.topic_puts, topic.id, times, count, size)

    def _collect_queue(self, queue: Queue, since: int) -> bool:
        """Take over the counters of a queue, if it has got something since a position."""
        if queue.last_position < since or not queue.put_times:
            return False
        key = queue.topic_id, queue.queue_id
        _set(self.queue_puts, key, queue.put_times, queue.put_count, queue.put_bytes)
        return True

    def _created(self, topic: Topic) -> None:
        if topic.is_internal:
            self._system.add(topic.id)

    def _deleted(self, topic: Topic) -> None:
        self.topic_puts.drop(topic.id)
        self.queue_puts.drop_if(lambda key: key[0] == topic.id)
        self._drop_groups(lambda key: key[0] == topic.id)

    def _drop_groups(self, is_gone: Callable[[GroupKey], bool]) -> None:
        for name, table in self._tables.items():
            if name not in ("topic_puts", "queue_puts"):
                table.drop_if(is_gone)


def _add(series: Series, count: int) -> None:
    series.times += 1
    series.count += count


def _read(derived: _Derived) -> None:
    derived.series.times, derived.series.count = derived.read()


def _set(table: SeriesTable[Key, Series], key: Key, times: int, count: int, size: int) -> None:
    """Set the counters of a label that are counted elsewhere."""
    series = table.rows.get(key)
    if series is None:
        series = table.at(key)
        if series is table.nameless:
            return
        if table.dropped_count:
            # It may have been dropped while it was idle, so what it had before is not new.
            series.begin_at(times, count, size)
            return
    series.times, series.count, series.size = times, count, size
