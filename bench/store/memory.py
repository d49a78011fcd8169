"""Anonymous memory of 10,000 empty queues, in a process that does nothing else.

Anonymous memory belongs to the process itself; pages of mapped files belong to the kernel.
"""

import gc
import sys
from pathlib import Path

from bench.measure.results import Bar, Report
from bench.store.children import ask, tell
from bench.store.sizes import MIB, scratch
from rockgate.store.clock import SystemClock
from rockgate.store.config import StoreConfig
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store

COUNT = 10_000
MB_MAX = 64.0


def measure(report: Report) -> None:
    """Add the results on memory."""
    shapes = {"one topic": 1, "a topic each": COUNT}
    grown = {}
    for name, topics in shapes.items():
        with scratch() as path:
            grown[name] = ask("bench.store.memory", path, topics)
    report.notes["anonymous memory of 10,000 empty queues, MB"] = grown
    report.bars.append(
        Bar(name="10,000 empty queues", measured=max(grown.values()), at_most=MB_MAX, unit="MB")
    )


def anonymous_mb() -> float:
    """The anonymous memory of this process."""
    gc.collect()
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError("this kernel does not tell RssAnon")


def main() -> None:
    """Create the queues and print their memory."""
    path, topics = sys.argv[1], int(sys.argv[2])
    config = StoreConfig(segment_bytes=64 * MIB)
    store = Store(DiskDirectory(path), config, SystemClock()).begin_epoch()
    before = anonymous_mb()
    queues = COUNT // topics
    store.topics.create_many(
        [NewTopic(name=f"topic-{number}", queue_count=queues) for number in range(topics)]
    )
    after = anonymous_mb()
    assert sum(1 for _ in store.queues) == COUNT
    store.close()
    tell(round(after - before, 1))


if __name__ == "__main__":
    main()
