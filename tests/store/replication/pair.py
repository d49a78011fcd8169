"""A primary and its replica, side by side: bytes are handed over in pieces of any size."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from tests.crash.workload import CONFIG, Model, Workload, open_store

from rockgate.gateway.topics.policy import queue_policy
from rockgate.store.clock import ManualClock
from rockgate.store.log.commitlog import CommitLog
from rockgate.store.replication.copying import Copying, is_unfinished
from rockgate.store.replication.cutting import NOWHERE, cut, find_cut
from rockgate.store.replication.following import Following
from rockgate.store.replication.sending import SentLog
from rockgate.store.store import Store
from rockgate.store.testing.memory_files import MemoryDisk


def open_replica(disk: MemoryDisk, clock: ManualClock) -> Store:
    """Open a directory without an epoch, as a replica does."""
    return Store(disk.root(), CONFIG, clock, policy_of=queue_policy)


def piece(log: CommitLog, position: int, size: int) -> memoryview:
    """Return the bytes that a primary sends next."""
    segment = log.segment_at(position)
    assert segment is not None, "the primary has it"
    at = position - segment.start
    end = min(segment.size, log.end - segment.start, at + size)
    return segment.mapping.view[at:end]


Queues = dict[tuple[bytes, int], tuple[int, int, list[Any]]]


class Replica:
    """A replica that outlives its store: it cuts and copies as the primary's epochs demand."""

    def __init__(self, random: Random, disk: MemoryDisk | None = None) -> None:
        self.random = random
        self.disk = disk or MemoryDisk()
        self.clock = ManualClock()
        self.cut_count = 0
        self.copied_count = 0
        if not is_unfinished(self.disk.root()):
            self.open()

    def open(self) -> None:
        self.store = open_replica(self.disk, self.clock)
        self.following = Following(self.store)

    def close(self) -> None:
        self.following.stop()
        self.store.close()

    def connect(self, primary: Store) -> None:
        """Agree on where to begin: a HELLO and its START."""
        if is_unfinished(self.disk.root()):
            self.copy(primary)
            self.open()
        self.following.begin()
        ours, theirs = primary.epochs.all, self.store.epochs.all
        position = find_cut(ours, primary.log.end, theirs, self.store.log.end)
        if position == NOWHERE or position < primary.log.start:
            self.close()
            self.copy(primary)
            self.open()
        elif position < self.store.log.end:
            self.close()
            cut(self.disk.root(), position, CONFIG.segment_bytes)
            self.cut_count += 1
            self.open()
            self.connect(primary)

    def copy(self, primary: Store) -> None:
        copying = Copying(self.disk.root(), CONFIG.segment_bytes, primary.log.start)
        try:
            sent = SentLog(primary).snapshot()
            assert sent is not None, "a log that does not start at 0 has snapshots"
            data = sent.read(0, sent.size)
            sent.close()
            for place in range(0, len(data), 1000):
                part = memoryview(data)[place : place + 1000]
                copying.file(sent.name, sent.size, place, part)
            while not copying.is_complete:
                size = self.random.randint(1, 3000)
                copying.receive(copying.received, piece(primary.log, copying.received, size))
            copying.finish()
            self.copied_count += 1
        finally:
            copying.close()

    def follow(self, primary: Store, upto: int | None = None) -> None:
        """Receive and apply what the primary has, in pieces."""
        following, random = self.following, self.random
        end = primary.log.end if upto is None else upto
        while following.received < end:
            data = piece(primary.log, following.received, random.choice((1, 7, 90, 2000, 9000)))
            data = data[: end - following.received]
            if not following.receive(following.received, data) or random.random() < 0.5:
                following.apply(random.choice((1, 500, 64 << 10)))
        following.committed(primary.commit.position)
        while following.apply():
            pass

    def tick(self) -> None:
        self.clock.advance(self.random.choice((10, 500, 2_000)))
        for _ in range(10):
            self.store.tick()


class Primary:
    """A primary with a random workload and its model."""

    def __init__(self, random: Random, disk: MemoryDisk | None = None) -> None:
        self.disk = disk or MemoryDisk()
        self.clock = ManualClock()
        self.random = random
        self.model = Model()
        self.open()

    def open(self) -> None:
        self.store = open_store(self.disk.root(), self.clock)
        self.workload = Workload(self.store, self.model, self.clock, self.random)

    def restart_from(self, disk: MemoryDisk) -> None:
        """Start from another state of the disk: a power cut, or an older copy."""
        self.disk = disk
        self.open()


def assert_same(primary: Store, replica: Store, *, has_maxima: bool = False) -> None:
    """The same bytes where both have them, the same folds, the same queues.

    A copy lacks the timestamps of entries that were gone, and so does any rebuilt index: the
    running maximum of a unit may be lower. With `has_maxima` that was not the case.
    """
    assert replica.log.end == primary.log.end
    start = max(primary.log.start, replica.log.start)
    while start < primary.log.end:
        bytes_there = piece(primary.log, start, 1 << 20)
        assert bytes_there == piece(replica.log, start, 1 << 20)
        start += len(bytes_there)
    assert folds_of(primary) == folds_of(replica)
    ours, theirs = queues_of(primary), queues_of(replica)
    if not has_maxima:
        ours, theirs = _without_maxima(ours), _without_maxima(theirs)
    assert ours == theirs


def _without_maxima(queues: Queues) -> Queues:
    return {
        key: (start, end, [(*unit[:5], unit[6]) for unit in units])
        for key, (start, end, units) in queues.items()
    }


def folds_of(store: Store) -> dict[str, Any]:
    """The state of each fold, whatever order it has its items in: a restored one has another."""
    return {
        fold.name: _sorted([_opened(each) for each in fold.snapshot()])
        for fold in store.state.folds
    }


def _opened(piece: bytes) -> Any:
    try:
        return msgspec.msgpack.decode(piece[1:], strict=False)
    except msgspec.MsgspecError:
        return piece


def _sorted(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=repr)
    if isinstance(value, dict):
        return sorted(((key, _sorted(each)) for key, each in value.items()), key=repr)
    return value


def queues_of(store: Store) -> Queues:
    found = {}
    for topic in store.topics:
        for queue in store.queues.of(topic.id):
            units = list(queue.walk(queue.log_start))
            found[topic.id, queue.queue_id] = (queue.log_start, queue.next_offset, units)
    return found
