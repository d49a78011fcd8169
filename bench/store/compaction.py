"""How small does a compacted topic become, and what does compaction cost producers?

Ten million updates of 100,000 keys. Once nothing changes, the log takes at most twice the
live data (the last record of each key, with its envelope if it were alone) and two segments. While
the server compacts, the 99th percentile of single sends is at most twice that of an idle server.

    python -m bench compaction                  ten million updates; a few gigabytes of disk
    python -m bench.store.compaction --quick    a smoke test of a minute, not written
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import quantiles

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.load.rdkafka import PRODUCER, LoadFailed
from bench.measure.results import Bar, Report
from bench.peers.rockgate import RockgateServer

TOPIC, OTHER = "table", "other"
VALUE_BYTES = 100
SEGMENT_BYTES = 64 << 20
ENVELOPE_BYTES = 300
"""What an entry takes besides its record, at most: envelope, properties and batch header."""
SETTINGS = (
    f"store.segment_bytes={SEGMENT_BYTES}",
    "store.compaction_interval_ms=1000",
    "store.retention_interval_ms=2000",
    "store.snapshot_bytes=8388608",
)
SEED = 24
SENDS_PER_SECOND = 100
SETTLED_SECONDS = 30.0
DISK_AT_MOST = 2.0
P99_AT_MOST = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The amount of work."""

    updates: int
    keys: int
    idle_seconds: float
    seconds_max: float


FULL = Plan(updates=10_000_000, keys=100_000, idle_seconds=30, seconds_max=3_600)
QUICK = Plan(updates=1_500_000, keys=10_000, idle_seconds=5, seconds_max=600)


def run(plan: Plan = FULL) -> Report:
    """Measure one server."""
    report = Report(
        name="compaction",
        question="how small does a compacted topic become, and what does that cost producers?",
        peers={},
        notes={"updates": plan.updates, "keys": plan.keys, "value_bytes": VALUE_BYTES},
    )
    with RockgateServer(settings=SETTINGS) as server:
        _create(server)
        idle = list(_sends(server, plan.idle_seconds))
        began = time.perf_counter()
        _update(server, plan)
        report.notes["seconds of updates"] = round(time.perf_counter() - began, 1)
        compacting: list[float] = []
        size = _settle(server, plan, compacting)
        report.notes["seconds until settled"] = round(time.perf_counter() - began, 1)
    live = plan.keys * (VALUE_BYTES + ENVELOPE_BYTES)
    report.samples = {
        "send, ms": {"idle": idle, "compacting": compacting},
        "log, MB": {"rockgate": [size / 1e6]},
    }
    report.bars = [
        Bar(
            name="log beyond two segments, of the live data",
            measured=round(max(0, size - 2 * SEGMENT_BYTES) / live, 3),
            at_most=DISK_AT_MOST,
            unit="of the live data",
        ),
        Bar(
            name="99th percentile of sends while compacting",
            measured=round(_p99(compacting) / _p99(idle), 3),
            at_most=P99_AT_MOST,
            unit="of idle",
        ),
    ]
    return report


def _create(server: RockgateServer) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    topics = [
        NewTopic(TOPIC, 1, config={"cleanup.policy": "compact"}),
        NewTopic(OTHER, 1, config={"retention.ms": "1000"}),
    ]
    for done in admin.create_topics(topics).values():
        done.result()


def _update(server: RockgateServer, plan: Plan) -> None:
    """Update keys at random, then fill the active segment, which is never compacted."""
    random, value = Random(SEED), bytes(VALUE_BYTES)
    producer = Producer({"bootstrap.servers": server.bootstrap, **PRODUCER})
    keys = (b"key-%08d" % random.randrange(plan.keys) for _ in range(plan.updates))
    for key in keys:
        _send(producer, TOPIC, key, value)
    filling = bytes(10_000)
    for _ in range(SEGMENT_BYTES // len(filling) + 1):
        _send(producer, OTHER, None, filling)
    if producer.flush(plan.seconds_max):
        raise LoadFailed("producing took too long")


def _send(producer: Producer, topic: str, key: bytes | None, value: bytes) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition=0)
        except BufferError:
            producer.poll(0.01)
        else:
            return


def _sends(server: RockgateServer, seconds: float) -> Iterator[float]:
    """Send single messages at a fixed rate, and yield how long each took, in milliseconds."""
    producer = Producer({"bootstrap.servers": server.bootstrap, "acks": "all", "linger.ms": 0})
    began = time.perf_counter()
    for number in range(int(seconds * SENDS_PER_SECOND)):
        ahead = began + number / SENDS_PER_SECOND - time.perf_counter()
        if ahead > 0:
            time.sleep(ahead)
        at = time.perf_counter()
        producer.produce(OTHER, b"x", partition=0)
        if producer.flush(60):
            raise LoadFailed("a message was not delivered")
        yield (time.perf_counter() - at) * 1_000


def _settle(server: RockgateServer, plan: Plan, times: list[float]) -> int:
    """Send until the size of the log stays the same, and return it."""
    deadline = time.monotonic() + plan.seconds_max
    size, since = _log_bytes(server), time.monotonic()
    while time.monotonic() - since < SETTLED_SECONDS:
        if time.monotonic() > deadline:
            raise LoadFailed("the log does not settle")
        times += _sends(server, 1)
        if (now := _log_bytes(server)) != size:
            size, since = now, time.monotonic()
    return size


def _log_bytes(server: RockgateServer) -> int:
    folder = Path(server.directory) / "data" / "commitlog"
    return sum(each.stat().st_size for each in folder.iterdir() if each.name.isdigit())


def _p99(times: list[float]) -> float:
    return quantiles(times, n=100)[98]


if __name__ == "__main__":
    found = run(QUICK if "--quick" in sys.argv[1:] else FULL)
    for bar in found.bars:
        print(bar.line())
    print(found.notes)
