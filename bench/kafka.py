"""How does rockgate's Kafka listener compare with Apache Kafka, under the same clients in one run?

Defends, as medians of three: producing 1 KB messages at 1.2 times Kafka's rate with at most 0.6 of
its CPU time per gigabyte; consuming them at least as fast with at most 0.8; 20,000 requests per
second of one message each over 16 connections with 5 in flight, idempotent; 32 of them per fsync if
every response waits for one; ready in 1.0 s when empty and in 3 s with 10,000 partitions; at most
100 MB of anonymous memory when idle.

    python -m bench.kafka              everything; the results are written to bench/results/
    python -m bench.kafka --quick      a smoke test of a minute, not written unless --write says so
    python -m bench.kafka --only throughput --write     a part, in a file of its own
    python -m bench.kafka --profile    where our server's time goes while 1 KB messages come in

Both servers run all the time and take turns, one idle while the other works; each case is a module
function named in CASES. The client is librdkafka (acks=all, linger 5 ms, one partition unless the
case says otherwise), or, for single-message requests, prebuilt frames.
"""

import contextlib
import importlib.metadata
import pstats
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.load import kafka_frames, rdkafka
from bench.measure import pagecache, results
from bench.measure.procfs import anonymous_bytes, cpu_seconds
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling, command_line
from bench.peers import KafkaPeer, jars
from bench.peers.rockgate import RockgateServer

OURS, THEIRS = "rockgate", "kafka"
CONNECTIONS, IN_FLIGHT = 16, 5
SMALL_SIZE = 100
SIZES = {"100 B": 100, "1 KB": 1024, "10 KB": 10 * 1024}
NUM_PARTITIONS = "num.partitions=1"
PROFILE_LINES = 40
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The amount of work: enough for reliable results, or just enough for a smoke test."""

    rounds: int
    megabytes: dict[str, int]
    latency_seconds: float
    storm_seconds: float
    partition_counts: tuple[int, ...]
    partition_seconds: float
    idle_seconds: float
    fills_memory: bool


FULL = Plan(
    rounds=3,
    megabytes={"100 B": 200, "1 KB": 1000, "10 KB": 2000},
    latency_seconds=5.0,
    storm_seconds=5.0,
    partition_counts=(5_000, 10_000),
    partition_seconds=10.0,
    idle_seconds=2.0,
    fills_memory=True,
)
QUICK = Plan(
    rounds=1,
    megabytes={"100 B": 10, "1 KB": 50, "10 KB": 100},
    latency_seconds=0.5,
    storm_seconds=1.0,
    partition_counts=(500,),
    partition_seconds=1.0,
    idle_seconds=0.5,
    fills_memory=False,
)


class Contender(Protocol):
    """A server under test."""

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for a client."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def ready_seconds(self) -> float:
        """The duration of its last start."""

    def start(self, seconds_max: float = ...) -> object:
        """Start it, on the same directory if it ran before."""

    def stop(self) -> None:
        """Stop it cleanly."""


class Run(Sampling):
    """One run: its plan, its servers, and the results so far."""

    def __init__(self, plan: Plan, report: Report, servers: dict[str, Contender]) -> None:
        super().__init__(report)
        self.plan = plan
        self.servers = servers

    def turns(self) -> Iterator[tuple[int, str, Contender]]:
        """Every server once per round; the first one alternates."""
        for index in range(self.plan.rounds):
            order = list(self.servers.items())
            for name, server in order if index % 2 == 0 else reversed(order):
                yield index, name, server

    def bar(
        self,
        name: str,
        measured: float,
        unit: str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        """Add a bar for a measured number."""
        bar = Bar(
            name=name,
            measured=round(measured, 3),
            at_least=at_least,
            at_most=at_most,
            unit=unit,
        )
        self.report.bars.append(bar)

    def ratio(
        self, case: str, *, at_least: float | None = None, at_most: float | None = None
    ) -> None:
        """Add a bar for our median relative to Kafka's."""
        share = self.median(case, OURS) / self.median(case, THEIRS)
        self.bar(case, share, "times Kafka's", at_least=at_least, at_most=at_most)


# Produce and consume


def throughput(run: Run) -> None:
    """Throughput and its CPU cost on the server, in and out at three sizes."""
    for label in SIZES:
        for index, name, server in run.turns():
            topic = f"in-{SIZES[label]}-{index}"
            count = int(run.plan.megabytes[label] * MEGABYTE) // SIZES[label]
            for verb, load in (("produce", rdkafka.produce), ("consume", rdkafka.consume)):
                before = cpu_seconds(server.pid)
                done = load(server.bootstrap, topic, SIZES[label], count)
                spent = cpu_seconds(server.pid) - before
                run.add(f"{verb} {label}, MB/s", name, done.megabytes_per_second)
                gigabytes = done.payload_bytes / 1e9
                run.add(f"{verb} {label}, server CPU s/GB", name, spent / gigabytes)
            rdkafka.delete_topic(server.bootstrap, topic)
    run.ratio("produce 1 KB, MB/s", at_least=1.2)
    run.ratio("produce 1 KB, server CPU s/GB", at_most=0.6)
    run.ratio("consume 1 KB, MB/s", at_least=1.0)
    run.ratio("consume 1 KB, server CPU s/GB", at_most=0.8)


# Requests of one message


def latency(run: Run) -> None:
    """Latency of a producer with a single 1 KB message in flight, in milliseconds."""
    for index, name, server in run.turns():
        topic = f"one-{index}"
        rdkafka.produce(server.bootstrap, topic, SIZES["1 KB"], 1)
        taken = kafka_frames.one_in_flight(
            server.address, topic, SIZES["1 KB"], run.plan.latency_seconds
        )
        hundredths = statistics.quantiles(taken, n=100)
        run.add("one in flight, p50 ms", name, hundredths[49] * 1e3)
        run.add("one in flight, p99 ms", name, hundredths[98] * 1e3)


def storm(run: Run) -> None:
    """Requests per second of one message each, over many connections."""
    case = "single-message requests, /s"
    for index, name, server in run.turns():
        before = cpu_seconds(server.pid)
        done = _storm(run, server, f"storm-{index}")
        run.add(case, name, done.per_second)
        spent = cpu_seconds(server.pid) - before
        run.add("single-message requests, server CPU us", name, spent / done.total_count * 1e6)
    run.bar(case, run.median(case, OURS), "/s", at_least=20_000)


def sync(run: Run) -> None:
    """The number of such requests per fsync if every response waits for one."""
    case = "single-message requests per fsync"
    for _ in range(run.plan.rounds):
        with RockgateServer(settings=[NUM_PARTITIONS, "store.flush=sync"]) as server:
            done = _storm(run, server, "storm")
            server.stop()
            run.add(case, OURS, done.total_count / server.fsync_count())
            run.add("single-message requests under sync, /s", OURS, done.per_second)
    run.bar(case, run.median(case, OURS), "requests", at_least=32)


def _storm(run: Run, server: Contender, topic: str) -> kafka_frames.Storm:
    rdkafka.produce(server.bootstrap, topic, SMALL_SIZE, 1)
    return kafka_frames.storm(
        server.address,
        topic,
        size=SMALL_SIZE,
        connections=CONNECTIONS,
        in_flight=IN_FLIGHT,
        warm_up_seconds=run.plan.storm_seconds / 5,
        seconds=run.plan.storm_seconds,
    )


# Starting, and many partitions


def start(run: Run) -> None:
    """Time until an empty server responds, and its anonymous memory when idle."""
    for _ in range(run.plan.rounds):
        for name in (OURS, THEIRS):
            with _fresh(name) as server:
                run.add("start empty, s", name, server.ready_seconds)
                time.sleep(run.plan.idle_seconds)
                run.add("idle, RssAnon MB", name, anonymous_bytes(server.pid) / MEGABYTE)
    run.bar("start empty, s", run.median("start empty, s", OURS), "s", at_most=1.0)
    run.bar("idle, RssAnon MB", run.median("idle, RssAnon MB", OURS), "MB", at_most=100)


def partitions(run: Run) -> None:
    """Many partitions: messages to each in turn, a restart with all of them, and the memory.

    Kafka restarts once, which takes most of a minute; rockgate restarts in every round.
    """
    _partitions(run, run.plan.partition_counts[0])


def more_partitions(run: Run) -> None:
    """The same with more partitions."""
    for count in run.plan.partition_counts[1:]:
        _partitions(run, count)


def _partitions(run: Run, count: int) -> None:
    for name, restarts in ((OURS, run.plan.rounds), (THEIRS, 1)):
        with _fresh(name) as server:
            _fill_partitions(run, name, server, count, restarts)
    case = f"{count} partitions, restart, s"
    run.bar(case, run.median(case, OURS), "s", at_most=3.0)


def _fill_partitions(run: Run, name: str, server: Contender, count: int, restarts: int) -> None:
    began = time.perf_counter()
    places = rdkafka.create_partitions(server.bootstrap, count)
    run.add(f"{count} partitions, create, s", name, time.perf_counter() - began)
    done = rdkafka.produce_around(server.bootstrap, places, SMALL_SIZE, run.plan.partition_seconds)
    run.add(f"{count} partitions in turn, messages/s", name, done.per_second)
    for _ in range(restarts):
        server.stop()
        server.start(seconds_max=300.0)
        run.add(f"{count} partitions, restart, s", name, server.ready_seconds)
        time.sleep(run.plan.idle_seconds)
        run.add(f"{count} partitions, RssAnon MB", name, anonymous_bytes(server.pid) / MEGABYTE)


def _fresh(name: str) -> RockgateServer | KafkaPeer:
    """A new server for one case."""
    return RockgateServer(settings=[NUM_PARTITIONS]) if name == OURS else KafkaPeer()


# All cases

CASES: dict[str, Callable[[Run], None]] = {
    "throughput": throughput,
    "latency": latency,
    "storm": storm,
    "sync": sync,
    "start": start,
    "partitions": partitions,
    "more-partitions": more_partitions,
}
TOGETHER = ("throughput", "latency", "storm")
"""The cases in which both servers run side by side."""


def run(plan: Plan = FULL, only: list[str] | None = None) -> Report:
    """Measure the selected cases, and report which bars hold."""
    report = Report(
        name="kafka" if only is None else f"kafka-{'-'.join(only)}",
        command=f"python -m bench.kafka{''.join(f' --only {name}' for name in only or ())}",
        question="How does rockgate's Kafka listener compare with Apache Kafka?",
        peers={
            "kafka": jars.version("kafka"),
            "confluent-kafka": importlib.metadata.version("confluent-kafka"),
        },
        notes={"plan": "full" if plan is FULL else "quick", "cases": list(only or CASES)},
    )
    chosen = [name for name in CASES if not only or name in only]
    together = [name for name in chosen if name in TOGETHER]
    measured = Run(plan, report, {})
    with contextlib.ExitStack() as whole:
        if plan.fills_memory:
            whole.enter_context(pagecache.filled(measured.tell))
        if together:
            with RockgateServer(settings=[NUM_PARTITIONS]) as ours, KafkaPeer() as theirs:
                measured.servers = {OURS: ours, THEIRS: theirs}
                _warm_up(measured)
                for name in together:
                    CASES[name](measured)
        for name in chosen:
            if name not in TOGETHER:
                CASES[name](measured)
    return report


def _warm_up(run: Run) -> None:
    """Let the JVM compile its hot code, and warm up rockgate in the same way."""
    count = int(run.plan.megabytes["1 KB"] * MEGABYTE) // SIZES["1 KB"]
    for name, server in run.servers.items():
        run.tell(f"warming up {name}")
        rdkafka.produce(server.bootstrap, "warm-up", SIZES["1 KB"], count)
        rdkafka.consume(server.bootstrap, "warm-up", SIZES["1 KB"], count)


def profile(plan: Plan) -> None:
    """Show where the time of our event loop goes while 1 KB messages are produced."""
    out = Path("rockgate.prof")
    with RockgateServer(settings=[NUM_PARTITIONS], profile=out.absolute()) as server:
        count = int(plan.megabytes["1 KB"] * MEGABYTE) // SIZES["1 KB"]
        done = rdkafka.produce(server.bootstrap, "profiled", SIZES["1 KB"], count)
        print(f"{done.megabytes_per_second:.0f} MB/s under the profiler")
    pstats.Stats(str(out)).sort_stats("tottime").print_stats(PROFILE_LINES)
    print(f"written to {out}")


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    parser = command_line("kafka", __doc__, quick="a smoke test of a minute")
    parser.add_argument("--only", action="append", choices=CASES, help="this case; repeatable")
    parser.add_argument("--write", action="store_true", help="write the results of a partial run")
    parser.add_argument("--profile", action="store_true", help="profile our server and stop")
    arguments = parser.parse_args()
    plan = QUICK if arguments.quick else FULL
    if arguments.profile:
        profile(plan)
        return 0
    report = run(plan, arguments.only)
    return results.conclude(
        report, is_saved=arguments.write or not (arguments.quick or arguments.only)
    )


if __name__ == "__main__":
    sys.exit(main())
