"""How fast does Spark read and write rockgate, beside Apache Kafka in the same session?

Defends, as medians of the rounds: at least 0.9 of Kafka's rows per second when Spark writes
1,000,000 records of 100 bytes, reads them back in a batch, and reads a gigabyte of 1 KB records.

    python -m bench.spark            everything; the results are written to bench/results/
    python -m bench.spark --quick    a smoke test of a minute, not written

One session (`local[2]`) and its connector serve both; topics have four partitions. Both servers run
all the time and take turns. A read is one job that sums the lengths of all values, so that every
record is fetched and decoded; its count and sum are verified. librdkafka writes the gigabyte, which
is not measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.load import rdkafka
from bench.measure import pagecache, results
from bench.measure.procfs import cpu_seconds
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling, command_line
from bench.peers import KafkaPeer, jars
from bench.peers.rockgate import RockgateServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS, THEIRS = "rockgate", "kafka"
PARTITIONS = 4
SMALL, LARGE = 100, 1024
SHARE_MIN = 0.9
WRITE = "write 100 B, rows/s"
READ_SMALL = "read 100 B, rows/s"
READ_LARGE = "read 1 KB, rows/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The amount of work."""

    rounds: int
    small_count: int
    large_count: int
    fills_memory: bool


FULL = Plan(rounds=3, small_count=1_000_000, large_count=1_000_000_000 // LARGE, fills_memory=True)
QUICK = Plan(rounds=1, small_count=50_000, large_count=50_000, fills_memory=False)

Server = RockgateServer | KafkaPeer


class ReadFailed(Exception):
    """A read did not return what was written."""


class Run(Sampling):
    """One run: its session, its servers, and the results so far."""

    def __init__(self, plan: Plan, spark: SparkSession, servers: dict[str, Server]) -> None:
        super().__init__(
            Report(
                name="spark",
                question="How fast does Spark read and write rockgate, beside Apache Kafka?",
                peers={"kafka": jars.version("kafka"), "pyspark": spark.version},
                notes={"plan": "full" if plan is FULL else "quick"},
            )
        )
        self.plan = plan
        self._spark = spark
        self._servers = servers

    def turns(self) -> Iterator[tuple[int, str, Server]]:
        """Every server once per round; the first one alternates."""
        for number in range(self.plan.rounds):
            order = list(self._servers.items())
            for name, server in order if number % 2 == 0 else reversed(order):
                yield number, name, server

    def measure(self) -> None:
        """Every case on every server."""
        for name, server in self._servers.items():
            self.tell(f"warming up {name}, and putting {self.plan.large_count:,} records there")
            self._write(server, "warm-up")
            self._read(server, "warm-up", self.plan.small_count, SMALL)
            _load(server.bootstrap, "large", self.plan.large_count)
            self._read(server, "large", self.plan.large_count, LARGE)
        for number, name, server in self.turns():
            topic = f"small-{number}"
            before = cpu_seconds(server.pid)
            self.add(WRITE, name, self.plan.small_count / self._write(server, topic))
            self.add("write 100 B, server CPU s", name, cpu_seconds(server.pid) - before)
            before = cpu_seconds(server.pid)
            seconds = self._read(server, topic, self.plan.small_count, SMALL)
            self.add(READ_SMALL, name, self.plan.small_count / seconds)
            self.add("read 100 B, server CPU s", name, cpu_seconds(server.pid) - before)
            seconds = self._read(server, "large", self.plan.large_count, LARGE)
            self.add(READ_LARGE, name, self.plan.large_count / seconds)
            rdkafka.delete_topic(server.bootstrap, topic)
        for case in (WRITE, READ_SMALL, READ_LARGE):
            share = round(self.median(case, OURS) / self.median(case, THEIRS), 3)
            bar = Bar(name=case, measured=share, at_least=SHARE_MIN, unit="times Kafka's")
            self.report.bars.append(bar)

    def _write(self, server: Server, topic: str) -> float:
        rdkafka.create_topic(server.bootstrap, topic, PARTITIONS)
        table = self._spark.range(0, self.plan.small_count, 1, PARTITIONS).selectExpr(
            f"int(id % {PARTITIONS}) partition", f"rpad(string(id), {SMALL}, 'x') value"
        )
        options = {"kafka.bootstrap.servers": server.bootstrap, "topic": topic}
        began = time.perf_counter()
        table.write.format("kafka").options(**options).save()
        return time.perf_counter() - began

    def _read(self, server: Server, topic: str, count: int, size: int) -> float:
        options = {"kafka.bootstrap.servers": server.bootstrap, "subscribe": topic}
        began = time.perf_counter()
        table = self._spark.read.format("kafka").options(**options).load()
        row: Any = table.selectExpr("count(*)", "sum(octet_length(value))").first()
        seconds = time.perf_counter() - began
        if tuple(row) != (count, count * size):
            raise ReadFailed(f"{topic}: {tuple(row)} instead of {(count, count * size)}")
        return seconds


def _load(bootstrap: str, topic: str, count: int) -> None:
    """Write records of 1 KB to all partitions of a topic."""
    rdkafka.create_topic(bootstrap, topic, PARTITIONS)
    deadline = time.monotonic() + rdkafka.SECONDS_MAX
    delivery, value = rdkafka.Delivery(bootstrap), bytes(LARGE)
    for number in range(count):
        delivery.send(topic, value, number % PARTITIONS, deadline)
    delivery.finish(deadline)


def run(plan: Plan = FULL) -> Report:
    """Measure everything, and report which bars hold."""
    from rockgate.pipeline.spark.session import open_session

    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "2g"}
    spark = open_session("bench", master="local[2]", extra=settings)
    try:
        with RockgateServer() as ours, KafkaPeer() as theirs:
            measured = Run(plan, spark, {OURS: ours, THEIRS: theirs})
            if plan.fills_memory:
                with pagecache.filled(measured.tell):
                    measured.measure()
            else:
                measured.measure()
            return measured.report
    finally:
        spark.stop()


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    parser = command_line("spark", __doc__, quick="a smoke test of a minute")
    arguments = parser.parse_args()
    report = run(QUICK if arguments.quick else FULL)
    return results.conclude(report, is_saved=not arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
