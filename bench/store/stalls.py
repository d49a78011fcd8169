"""How late the event loop is while the store does everything at once, compared with an idle loop.

Two processes run side by side. Both have a timer due every millisecond and record how late it is.
One of them does nothing else: its lateness is the machine's. In the other one the store appends 65
MB/s and rolls, responds after fsyncs, expires, relocates and removes segments, and takes snapshots
of a large fold.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

import uvloop

from bench.measure.results import Bar, Report
from bench.store.append import stamp
from bench.store.children import start, tell
from bench.store.sizes import MIB, scratch, sizes
from rockgate.gateway.compose.storage import BUSY_SECONDS, IDLE_SECONDS, posting
from rockgate.gateway.runtime import tuning
from rockgate.gateway.topics.policy import queue_policy
from rockgate.store.clock import SystemClock
from rockgate.store.config import StoreConfig
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.progress.records import Commit
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store

BEAT_SECONDS = 0.001
P999_MS_MAX = 10.0
ABOVE_IDLE_MS_MAX = 10.0
QUEUES = 10_000
BODY_SIZE = 16_384
BATCHES_A_BEAT = 4
SETTLE_SECONDS = 3.0


def measure(report: Report) -> None:
    """Add the results on stalls."""
    with scratch() as path:
        busy = start("bench.store.stalls", "busy", path)
        assert busy.stdout is not None
        # The idle one starts when the other one is ready, so that both measure the same minute.
        assert busy.stdout.readline() == "ready\n"
        idle = start("bench.store.stalls", "idle")
        found = {name: _result(process) for name, process in (("store", busy), ("idle", idle))}
    report.samples["lateness of the loop: p50, p99, p99.9, maximum; milliseconds"] = {
        name: each["lateness"] for name, each in found.items()
    }
    # On a machine that is not idle this separates our own slices from the load of others.
    report.samples["work of the loop's thread between two beats; milliseconds"] = {
        name: each["work"] for name, each in found.items()
    }
    report.notes["during the stalls"] = found["store"]["done"]
    p999, worst = found["store"]["lateness"][2:]
    report.bars.append(Bar(name="lateness, 99.9 %", measured=p999, at_most=P999_MS_MAX, unit="ms"))
    report.bars.append(
        Bar(
            name="worst lateness above that of an idle loop",
            measured=round(worst - found["idle"]["lateness"][3], 3),
            at_most=ABOVE_IDLE_MS_MAX,
            unit="ms",
        )
    )


def _result(process: Any) -> Any:
    output, _ = process.communicate()
    assert process.returncode == 0, f"the process ended with {process.returncode}"
    return json.loads(output.splitlines()[-1])


# The processes


class Beat:
    """Records how late each of its timers is."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due = time.perf_counter() + BEAT_SECONDS
        self._late: list[float] = []
        self._cpu = time.thread_time()
        self._held: list[float] = []
        loop.call_later(BEAT_SECONDS, self._turn)

    def _turn(self) -> None:
        now = time.perf_counter()
        self._late.append(now - self._due)
        self._due = now + BEAT_SECONDS
        cpu = time.thread_time()
        self._held.append(cpu - self._cpu)
        self._cpu = cpu
        self._loop.call_later(BEAT_SECONDS, self._turn)

    def figures(self) -> dict[str, list[float]]:
        """The lateness of timers, and the CPU time of the thread between two of them."""
        return {"lateness": _places(self._late), "work": _places(self._held)}


def _places(seconds: list[float]) -> list[float]:
    """Milliseconds at the median, at 99 %, at 99.9 %, and the maximum."""
    ordered = sorted(seconds)
    chosen = [ordered[int(place * len(ordered))] for place in (0.5, 0.99, 0.999)]
    return [round(max(0.0, each) * 1e3, 3) for each in (*chosen, ordered[-1])]


async def idle() -> None:
    """Run the timer, and nothing else."""
    beat = Beat(asyncio.get_running_loop())
    await asyncio.sleep(sizes().stall_seconds)
    tell(beat.figures())


async def busy(path: str) -> None:
    """Run the timer while the store works."""
    loop = asyncio.get_running_loop()
    load = Load(path, loop)
    tuning.tune_allocator()
    tuning.tune_threads()
    tuning.tune_collector()
    # A server populates the first segment's pages while it starts; on memory that the hypervisor
    # has yet to provide, that takes a second, and the load would overtake it.
    await asyncio.sleep(SETTLE_SECONDS)
    print("ready", flush=True)
    load.begin()
    beat = Beat(loop)
    await asyncio.sleep(sizes().stall_seconds)
    tell({**beat.figures(), "done": load.done()})
    sys.stdout.flush()
    os._exit(0)


class Load:
    """A store, and everything that happens to it."""

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        config = StoreConfig(
            segment_bytes=sizes().segment_bytes,
            retention_interval_ms=2_000,
            snapshot_interval_ms=8_000,
        )
        store = self.store = Store(
            DiskDirectory(path), config, SystemClock(), policy_of=queue_policy
        ).begin_epoch()
        self._short = self._make("short", 10, {"retention.bytes": str(16 * MIB)})
        self._long = self._make("long", 10, {"retention.bytes": "-1"})
        self._sync = self._make("sync", 1, {"flush.messages": "1", "retention.bytes": str(MIB)})
        many = store.topics.create(NewTopic(name="many", queue_count=QUEUES))
        groups = sizes().fold_count // QUEUES
        for group in range(groups):
            commits = [Commit(many.id, queue_id, group) for queue_id in range(QUEUES)]
            store.progress.commit(f"group-{group}", commits)
        self._many_id = many.id
        self._groups = groups
        self._body = os.urandom(BODY_SIZE)
        self._beats = 0
        self._answers = 0
        store.start(posting(loop))

    def _make(self, name: str, count: int, config: dict[str, str]) -> list[Any]:
        topic = self.store.topics.create(NewTopic(name=name, queue_count=count, config=config))
        return self.store.queues.of(topic.id)

    def begin(self) -> None:
        """Start everything."""
        self._loop.call_later(BEAT_SECONDS, self._produce)
        self._loop.call_later(IDLE_SECONDS, self._tick)

    def _produce(self) -> None:
        append = self.store.appender
        self._beats += 1
        for number in range(BATCHES_A_BEAT):
            queues = self._long if self._beats % 10 == 0 and number == 0 else self._short
            queue = queues[self._beats % 10]
            append.batch(queue, self._body, count=16, record_ms=1, stamp=stamp)
        done = append.batch(self._sync[0], b"small", count=1, record_ms=1)
        self.store.flusher.when_flushed(done.end, self._answer)
        commit = Commit(self._many_id, self._beats % QUEUES, self._beats)
        self.store.progress.commit(f"group-{self._beats % self._groups}", [commit])
        self._loop.call_later(BEAT_SECONDS, self._produce)

    def _answer(self, failure: Exception | None) -> None:
        assert failure is None, failure
        self._answers += 1

    def _tick(self) -> None:
        again = BUSY_SECONDS if self.store.tick() else IDLE_SECONDS
        self._loop.call_later(again, self._tick)

    def done(self) -> dict[str, int]:
        """What happened meanwhile."""
        store = self.store
        return {
            "megabytes": round(store.log.end / 1e6),
            "rolls": store.log.end // sizes().segment_bytes,
            "fsyncs": store.flusher.fsync_count,
            "answers after fsync": self._answers,
            "checkpoints": store.checkpointer.taken_count,
            "snapshots": store.snapshotter.writer.finished_count,
            "entries in the fold": sizes().fold_count,
            "segments removed": store.retention.removed_count,
            "entries moved": store.retention.mover.moved_count,
        }


def main() -> None:
    """Run one of the processes."""
    work = idle() if sys.argv[1] == "idle" else busy(sys.argv[2])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


if __name__ == "__main__":
    main()
