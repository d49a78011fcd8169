"""Starts after kill -9: a process writes and kills itself, another one opens its log.

The log is in the page cache, as it is after a kill, so that a start measures our code and not the
disk. Without checkpoints the whole log is after the flushed position and is scanned, which gives
the scan rate; with the server's settings, only what follows the last checkpoint.
"""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from bench.measure.results import Bar, Report
from bench.store.children import ask, let_die, tell
from bench.store.sizes import scratch, sizes
from rockgate.store.clock import SystemClock
from rockgate.store.config import StoreConfig
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store

ROUNDS = 3
NEVER = 1 << 60
LARGE, SMALL = 16_384, 1_024
MB_A_SECOND, ENTRIES_A_SECOND = 400, 80_000
BIG_SECONDS_MAX = 3.0


def measure(report: Report) -> None:
    """Add the results on scanning."""
    large_bytes, small_count = sizes().recovery_bytes, sizes().recovery_count
    large = _scans(LARGE, large_bytes // LARGE)
    small = _scans(SMALL, small_count)
    report.samples["scan of the whole log, seconds"] = {"16 KB entries": large, "1 KB": small}
    megabytes = large_bytes / 1e6
    report.notes["scan"] = {
        "16 KB entries, MB/s": round(megabytes / min(large)),
        "1 KB entries, entries/s": round(small_count / min(small)),
    }
    report.bars.append(
        Bar(
            name=f"scanning {MB_A_SECOND} MB of 16 KB entries",
            measured=round(min(large) * MB_A_SECOND / megabytes, 3),
            at_most=1.0,
            unit="s",
        )
    )
    report.bars.append(
        Bar(
            name=f"scanning {ENTRIES_A_SECOND} entries of 1 KB",
            measured=round(min(small) * ENTRIES_A_SECOND / small_count, 3),
            at_most=1.0,
            unit="s",
        )
    )


def _scans(size: int, count: int) -> list[float]:
    times = []
    for _ in range(ROUNDS):
        with scratch() as path:
            let_die("bench.store.recovery", "write", path, size, count, "scanned")
            found = ask("bench.store.recovery", "open", path, "scanned")
            assert found["scanned_bytes"] >= size * count, found
            times.append(found["seconds"])
    return times


def measure_big(report: Report) -> None:
    """Add the results on a start with a large log."""
    count = sizes().big_bytes // LARGE
    with scratch() as path:
        let_die("bench.store.recovery", "write", path, LARGE, count, "server")
        found = ask("bench.store.recovery", "open", path, "server")
    report.samples["start after kill -9, seconds"] = {"store": [found["seconds"]]}
    report.notes["big log"] = found
    report.bars.append(
        Bar(
            name=f"a start after kill -9 with {sizes().big_bytes / 1e9:.1f} GB",
            measured=found["seconds"],
            at_most=BIG_SECONDS_MAX,
            unit="s",
        )
    )


# The processes


def config(kind: str) -> StoreConfig:
    """The server's settings, or settings with which the whole log must be scanned."""
    if kind == "server":
        return StoreConfig(segment_bytes=sizes().segment_bytes)
    return StoreConfig(
        segment_bytes=sizes().segment_bytes,
        checkpoint_bytes=NEVER,
        checkpoint_interval_ms=NEVER,
        snapshot_bytes=NEVER,
        snapshot_interval_ms=NEVER,
    )


def write(path: str, size: int, count: int, kind: str) -> None:
    """Append, and die."""
    store = Store(DiskDirectory(path), config(kind), SystemClock()).begin_epoch()
    posts: deque[Callable[[], None]] = deque()
    store.start(posts.append)
    topic = store.topics.create(NewTopic(name="orders", queue_count=10))
    queues = store.queues.of(topic.id)
    body = os.urandom(size)
    for number in range(count):
        store.appender.batch(queues[number % 10], body, count=16, record_ms=number)
        if number % 64 == 0:
            while posts:
                posts.popleft()()
            store.tick()
    os.kill(os.getpid(), signal.SIGKILL)


def reopen(path: str, kind: str) -> None:
    """Start, and print how long that took."""
    start = time.perf_counter()
    store = Store(DiskDirectory(path), config(kind), SystemClock()).begin_epoch()
    seconds = time.perf_counter() - start
    tell(
        {
            "seconds": round(seconds, 3),
            "log_bytes": store.log.end,
            "scanned_bytes": store.found.scanned_bytes,
            "segments": len(store.retention.segments),
        }
    )
    # A clean stop is not needed.
    os._exit(0)


def main() -> None:
    """Run one of the processes."""
    what, path, *rest = sys.argv[1:]
    assert Path(path).is_dir(), "the parent makes the directory"
    if what == "write":
        write(path, int(rest[0]), int(rest[1]), rest[2])
    else:
        reopen(path, rest[0])


if __name__ == "__main__":
    main()
