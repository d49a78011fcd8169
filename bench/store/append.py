"""Appends, compared with plain writes and with each other.

The store runs with its threads, as in the server. Contenders take turns in chunks, so that other
load affects them alike. The result of a chunk is microseconds per append; the bars compare whole
runs, because a roll or an fsync affects few chunks and would disappear in a median.
"""

from __future__ import annotations

import gc
import os
import struct
import time
from collections import deque
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

from bench.measure.results import Bar, Report
from bench.store.sizes import scratch, sizes
from rockgate.store.clock import SystemClock
from rockgate.store.config import StoreConfig
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.queues.consumequeue import Queue
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store

CHUNK = 2_000
TICK_EVERY = 64
FEW, MANY = 10, 10_000
RATIO_16K_MAX = 0.5
SMALL_US_MAX = 10.0
MANY_RATIO_MAX = round(1 / 0.7, 3)
_BASE_OFFSET = struct.Struct(">q")


def measure(report: Report) -> None:
    """Add the results on appends."""
    _batches_of_16k(report)
    _entries_of_1k(report)


class Running:
    """A store with its threads; this thread is its event loop."""

    def __init__(self, path: Path, **settings: object) -> None:
        config = StoreConfig(segment_bytes=sizes().segment_bytes, **settings)  # type: ignore[arg-type]  # its fields
        self.store = Store(DiskDirectory(path), config, SystemClock()).begin_epoch()
        self._posts: deque[Callable[[], None]] = deque()
        self.store.start(self._posts.append)

    def queues(self, name: str, count: int) -> list[Queue]:
        """Create a topic and return its queues."""
        topic = self.store.topics.create(NewTopic(name=name, queue_count=count))
        return self.store.queues.of(topic.id)

    def turn(self) -> None:
        """Do the loop's work between requests, once per TICK_EVERY of them."""
        while self._posts:
            self._posts.popleft()()
        self.store.tick()

    def close(self) -> None:
        """Stop the store."""
        self.store.close()


def stamp(view: memoryview, offset: int) -> None:
    """Write the base offset into a batch, as the gateway does."""
    _BASE_OFFSET.pack_into(view, 0, offset)


class Spent(NamedTuple):
    """Seconds that a chunk took, and the CPU time of this thread."""

    wall: float
    cpu: float

    @classmethod
    def by(cls, work: Callable[[], None]) -> Spent:
        """Measure some work."""
        wall, cpu = time.perf_counter(), time.thread_time()
        work()
        return cls(time.perf_counter() - wall, time.thread_time() - cpu)


def _append(running: Running, queues: list[Queue], body: bytes, count: int) -> Spent:
    batch = running.store.appender.batch
    row = cycle(queues)

    def work() -> None:
        for done in range(0, count, TICK_EVERY):
            for queue in islice(row, min(TICK_EVERY, count - done)):
                batch(queue, body, count=16, record_ms=1, stamp=stamp)
            running.turn()

    return Spent.by(work)


class _Plain:
    """A file that grows by `pwritev` of a head and a body, a new one where the store rolls."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._at = 0
        self._number = 0
        self._roll()

    def _roll(self) -> None:
        self.close()
        self._number += 1
        name = self._path / f"plain-{self._number}"
        self._file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self._at = 0

    def write(self, head: bytes, body: bytes, count: int) -> Spent:
        limit = sizes().segment_bytes

        def work() -> None:
            for _ in range(count):
                if self._at >= limit:
                    self._roll()
                self._at += os.pwritev(self._file, (head, body), self._at)

        return Spent.by(work)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)


def _batches_of_16k(report: Report) -> None:
    body = os.urandom(16_384)
    with scratch() as path:
        running, plain = Running(path / "store"), _Plain(path)
        queues = running.queues("orders", FEW)
        before = running.store.log.end
        _append(running, queues, body, 1)
        head = bytes(running.store.log.end - before - len(body))
        chunk = CHUNK // 4
        ours, theirs = [], []
        gc.collect()
        gc.freeze()
        for _ in range(sizes().append_bytes // (chunk * len(body))):
            ours.append(_append(running, queues, body, chunk))
            theirs.append(plain.write(head, body, chunk))
        rolls = len(running.store.retention.segments) - 1
        running.close()
        plain.close()
        gc.unfreeze()
    both = {"store": ours, "pwritev": theirs}
    report.samples["append of 16 KB, microseconds"] = {
        name: _us(spent, chunk) for name, spent in both.items()
    }
    report.notes["rolls"] = rolls
    megabytes = len(ours) * chunk * len(body) / 1e6
    report.notes["append of 16 KB"] = {
        name: {
            "MB/s": round(megabytes / _wall(spent)),
            "CPU, us": round(sum(each.cpu for each in spent) / len(spent) / chunk * 1e6, 2),
        }
        for name, spent in both.items()
    }
    assert rolls >= 4, f"only {rolls} rolls"
    report.bars.append(
        Bar(
            name="a 16 KB batch beside pwritev",
            measured=round(_wall(ours) / _wall(theirs), 3),
            at_most=RATIO_16K_MAX,
            unit="of its time",
        )
    )


def _entries_of_1k(report: Report) -> None:
    body = os.urandom(1024)
    with scratch() as path:
        running = Running(path)
        few, many = running.queues("few", FEW), running.queues("many", MANY)
        times: dict[str, list[Spent]] = {"10 queues": [], "10,000 queues": []}
        # Every queue gets an entry first: the bar is about steady appends, not about the first one.
        _append(running, many, body, MANY)
        gc.collect()
        gc.freeze()
        for _ in range(sizes().small_count // MANY):
            times["10 queues"].append(_append(running, few, body, MANY))
            times["10,000 queues"].append(_append(running, many, body, MANY))
        running.close()
        gc.unfreeze()
    report.samples["append of 1 KB, microseconds"] = {
        name: _us(spent, MANY) for name, spent in times.items()
    }
    few_s, many_s = (_wall(spent) for spent in times.values())
    each_us = few_s / len(times["10 queues"]) / MANY * 1e6
    cpu_us = sum(spent.cpu for spent in times["10 queues"]) / len(times["10 queues"]) / MANY * 1e6
    report.notes["entries of 1 KB"] = {
        "a second": round(1e6 / each_us),
        "CPU, us": round(cpu_us, 2),
    }
    report.bars.append(
        Bar(name="a 1 KB entry", measured=round(each_us, 2), at_most=SMALL_US_MAX, unit="us")
    )
    report.bars.append(
        Bar(
            name="10,000 queues beside 10",
            measured=round(many_s / few_s, 3),
            at_most=MANY_RATIO_MAX,
            unit="of their time",
        )
    )


def _us(spent: list[Spent], count: int) -> list[float]:
    return [round(each.wall / count * 1e6, 3) for each in spent]


def _wall(spent: list[Spent]) -> float:
    return sum(each.wall for each in spent)
