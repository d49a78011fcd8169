"""Fills a data directory with delayed messages, faster than any client could send them.

A server has created the directory and stopped. Messages are stored like those of RocketMQ clients,
each with its own due time; some hundred at a time share one change that schedules them.

    python -m bench.load.delayed DATA_DIR TOPIC COUNT FIRST_DUE_MS STEP_MS
"""

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

from rockgate.gateway.compose.folds import server_folds
from rockgate.gateway.compose.storage import open_store
from rockgate.gateway.transcode.keys import record_keys
from rockgate.protocol.entry import DELAYED, pack_properties
from rockgate.protocol.remoting.properties import REAL_QUEUE_ID, REAL_TOPIC
from rockgate.protocol.remoting.system_topics import TIMES_TOPIC
from rockgate.store.config import StoreConfig
from rockgate.store.delay.changes import DELAY_TOPIC, encode_schedule
from rockgate.store.log.commitlog import Draft
from rockgate.store.store import Store
from rockgate.store.write.append import Intake

GROUP = 250
BODY = bytes(100)


def fill(store: Store, topic: str, count: int, first_ms: int, step_ms: float) -> None:
    """Append messages to the queues of a topic in turn; due times are `step_ms` apart."""
    queue = store.queue(store.topics.get(TIMES_TOPIC), 0)
    targets = store.topics.get(topic).queue_count
    posts: deque[Callable[[], None]] = deque()
    store.start(posts.append)
    for base in range(0, count, GROUP):
        intakes, waits = [], []
        for number in range(base, min(count, base + GROUP)):
            due_ms = first_ms + int(number * step_ms)
            properties = pack_properties(
                (
                    ("UNIQ_KEY", f"7F00000100010000{number:016X}"),
                    ("WAIT", "true"),
                    ("TIMER_DELIVER_MS", str(due_ms)),
                    (REAL_TOPIC, topic),
                    (REAL_QUEUE_ID, str(number % targets)),
                )
            )
            draft = Draft(b"", 0, 0, BODY, properties, sys_flag=DELAYED)
            intakes.append(Intake(queue, draft))
            waits.append((queue.next_offset + number - base, due_ms))
        changes = encode_schedule(queue.topic_id, queue.queue_id, waits)
        intakes += [Intake(None, Draft(DELAY_TOPIC, 0, -1, body)) for body in changes]
        store.appender.group(intakes)
        while posts:
            posts.popleft()()
        store.tick()
    store.close()


def main() -> None:
    """Fill the directory given on the command line."""
    path, topic, count, first_ms, step_ms = sys.argv[1:]
    store = asyncio.run(open_store(Path(path), StoreConfig(), server_folds, record_keys))
    # `redeliver` is not set, so nothing is delivered.
    fill(store, topic, int(count), int(first_ms), float(step_ms))


if __name__ == "__main__":
    main()
