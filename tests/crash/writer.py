"""A process that appends as fast as it can and prints what was acknowledged; to be killed.

    python -m tests.crash.writer DIRECTORY async|sync

Lines on standard output: `a QUEUE OFFSET SERIAL` once a message is acknowledged, `+PHASE` and
`-PHASE` around a roll, a checkpoint, a snapshot, a relocated entry or a deletion of log. A line is
one write, so that none is torn when the process dies. The last queue belongs to a topic with
unlimited retention.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from rockgate.gateway.topics.policy import queue_policy
from rockgate.store.clock import SystemClock
from rockgate.store.config import StoreConfig
from rockgate.store.files.interface import DiskDirectory
from rockgate.store.log.commitlog import Draft
from rockgate.store.state.topic import Topic
from rockgate.store.state.topicchanges import NewTopic
from rockgate.store.store import Store

QUEUES = 3
KEPT_EVERY = 40


def config(flush: str) -> StoreConfig:
    """Small segments and frequent upkeep, so that a kill often hits some of it."""
    return StoreConfig(
        segment_bytes=256 << 10,
        populate_ahead_bytes=64 << 10,
        flush="sync" if flush == "sync" else "async",
        flush_interval_ms=5,
        checkpoint_bytes=96 << 10,
        checkpoint_interval_ms=50,
        upkeep_gap_ms=0,
        snapshot_bytes=128 << 10,
        snapshot_interval_ms=80,
        retention_bytes=400 << 10,
        retention_interval_ms=60,
        key_index_slots=1_000,
        key_index_entries=2_000,
    )


def topics(store: Store) -> list[Topic]:
    """The topic that expires soon, and the one that never does."""
    kept = NewTopic(name="kept", queue_count=1, config={"retention.bytes": "-1"})
    news = (NewTopic(name="t", queue_count=QUEUES), kept)
    return [store.topics.find(new.name) or store.topics.create(new) for new in news]


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def marked(owner: Any, name: str, phase: str) -> None:
    """Print when a method begins and ends."""
    method: Callable[..., Any] = getattr(owner, name)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        say(f"+{phase}")
        try:
            return method(*args, **kwargs)
        finally:
            say(f"-{phase}")

    setattr(owner, name, wrapper)


def main() -> None:
    directory, flush = sys.argv[1:3]
    store = Store(
        DiskDirectory(directory), config(flush), SystemClock(), policy_of=queue_policy
    ).begin_epoch()
    marked(store.log.segments, "_make", "roll")
    marked(store.checkpointer, "_write", "checkpoint")
    marked(store.snapshotter.writer, "step", "snapshot")
    marked(store.log.segments, "unlink_first", "retention")
    marked(store.retention.mover, "move_entry", "move")
    posts: deque[Callable[[], None]] = deque()
    store.start(posts.append)
    queues = [queue for topic in topics(store) for queue in store.queues.of(topic.id)]
    serial = 0
    say("ready")
    while True:
        for _ in range(20):
            number = serial % QUEUES if serial % KEPT_EVERY else QUEUES
            queue = queues[number]
            body = b"%012d" % serial * (1 + serial % 50)
            if serial % 3:
                appended = store.appender.batch(queue, body, count=2, record_ms=serial)
            else:
                appended = store.appender.message(queue, Draft(b"", 0, 0, body, born_ms=serial))
            line = f"a {number} {appended.offset} {serial}"
            if flush == "sync":
                store.flusher.when_flushed(appended.end, lambda error, line=line: say(line))  # type: ignore[misc]
            else:
                say(line)
            serial += 1
        while posts:
            posts.popleft()()
        store.tick()


if __name__ == "__main__":
    main()
