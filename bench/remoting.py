"""How does rockgate's RocketMQ door compare with Apache RocketMQ, under the same client in one run?

Defends, as medians of three, with messages of 1 KB: sync sends of 32 threads at 1.2 times
RocketMQ's rate; one thread's median at most 0.9 of its; async sends with 1,000 in flight at 1.5
times; batches of 100 at its rate; consuming at 0.8 of its rate. RocketMQ's client reads what a
Kafka client wrote, and a Kafka client what RocketMQ's wrote, at 0.3 of the rate of their own kind.

    python -m bench.remoting           everything; the results are written to bench/results/
    python -m bench.remoting --quick   a smoke test of a minute, not written

Both servers run all the time and take turns. The client is RocketMQ's Java client 5.5.0
(load/RocketMQLoad.java), a process of its own for each measurement, warmed up for a third of it.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import rdkafka, results
from bench.peers import RocketMQPeer, jars
from bench.peers.tools import find_java
from bench.results import Bar, Report
from bench.rockgate import RockgateServer

OURS, THEIRS = "rockgate", "rocketmq"
SOURCE = Path(__file__).parent / "load" / "RocketMQLoad.java"
SIZE = 1024
SECONDS_MAX = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is done."""

    rounds: int
    seconds: float
    messages: int


FULL = Plan(rounds=3, seconds=4.0, messages=100_000)
QUICK = Plan(rounds=1, seconds=1.0, messages=5_000)


class Client:
    """RocketMQ's client, compiled once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = f"{folder}:{jars.fetch('rocketmq')}/*"
        compiler = str(find_java().with_name("javac"))
        subprocess.run([compiler, "-d", str(folder), "-cp", self._path, str(SOURCE)], check=True)

    def run(
        self, namesrv: str, mode: str, topic: str, seconds: float, number: int
    ) -> tuple[float, float]:
        """Operations a second, and the median in microseconds where a mode has one."""
        command = [
            *(str(find_java()), "-Xmx512m", f"-Duser.home={self._folder}"),
            *("-Drocketmq.client.logUseSlf4j=true", "-cp", self._path, "RocketMQLoad"),
            *(namesrv, mode, topic, str(seconds), str(number)),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
        found = re.search(r"@@ ([\d.]+) ([\d.]+)", done.stdout)
        if done.returncode or found is None:
            raise RuntimeError(f"{mode}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
        return float(found[1]), float(found[2])


def run(plan: Plan = FULL) -> Report:
    """Measure, and say which bars hold."""
    report = Report(
        name="remoting",
        command="python -m bench.remoting",
        question="How does rockgate's RocketMQ door compare with Apache RocketMQ?",
        peers={"rocketmq": jars.version("rocketmq")},
        notes={"plan": "full" if plan is FULL else "quick", "message bytes": SIZE},
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        RockgateServer(rocketmq=True) as ours,
        RocketMQPeer() as theirs,
    ):
        client = Client(Path(folder))
        servers = {OURS: ours.namesrv, THEIRS: "{}:{}".format(*theirs.namesrv)}
        _sends(client, servers, plan, report)
        _consumes(client, servers, plan, report)
        _crossing(client, ours, plan, report)
    _set_bars(report)
    return report


def _keep(report: Report, case: str, name: str, value: float) -> None:
    report.samples.setdefault(case, {}).setdefault(name, []).append(value)
    print(f"{case}: {name} {value:,.0f}", flush=True)


def _sends(client: Client, servers: dict[str, str], plan: Plan, report: Report) -> None:
    for turn in range(plan.rounds):
        for name, namesrv in servers.items():
            topic, seconds = f"sends-{turn}", plan.seconds
            rate, _ = client.run(namesrv, "sync", topic, seconds, 32)
            _keep(report, "sync, 32 threads [1/s]", name, rate)
            _, micros = client.run(namesrv, "sync", topic, seconds, 1)
            _keep(report, "sync, 1 thread, median [us]", name, micros)
            rate, _ = client.run(namesrv, "async", topic, seconds, 1000)
            _keep(report, "async, 1000 in flight [1/s]", name, rate)
            rate, _ = client.run(namesrv, "batch", topic, seconds, 100)
            _keep(report, "batches of 100 [1/s]", name, rate)


def _consumes(client: Client, servers: dict[str, str], plan: Plan, report: Report) -> None:
    for namesrv in servers.values():
        client.run(namesrv, "fill", "own-kind", 1, plan.messages)
    for _ in range(plan.rounds):
        for name, namesrv in servers.items():
            rate, _ = client.run(namesrv, "consume", "own-kind", 1, plan.messages)
            _keep(report, "consume own kind [1/s]", name, rate)


def _crossing(client: Client, ours: RockgateServer, plan: Plan, report: Report) -> None:
    rdkafka.produce(ours.bootstrap, "by-kafka", SIZE, plan.messages)
    for _ in range(plan.rounds):
        rate, _ = client.run(ours.namesrv, "consume", "by-kafka", 1, plan.messages)
        _keep(report, "RocketMQ consumes what Kafka wrote [1/s]", OURS, rate)
        load = rdkafka.consume(ours.bootstrap, "by-kafka", SIZE, plan.messages)
        _keep(report, "Kafka consumes what Kafka wrote [1/s]", OURS, load.per_second)
        # A quarter of them lies in each of four queues; librdkafka reads the first.
        load = rdkafka.consume(ours.bootstrap, "own-kind", SIZE, plan.messages // 5)
        _keep(report, "Kafka consumes what RocketMQ wrote [1/s]", OURS, load.per_second)


def _set_bars(report: Report) -> None:
    def median(case: str, name: str = OURS) -> float:
        return statistics.median(report.samples[case][name])

    def ratio(case: str) -> float:
        return round(median(case) / max(1e-9, median(case, THEIRS)), 2)

    own = "consume own kind [1/s]"
    report.bars = [
        Bar(
            name="sync, 32 threads",
            measured=ratio("sync, 32 threads [1/s]"),
            at_least=1.2,
            unit="x",
        ),
        Bar(
            name="sync, 1 thread, median",
            measured=ratio("sync, 1 thread, median [us]"),
            at_most=0.9,
            unit="x",
        ),
        Bar(
            name="async, 1000 in flight",
            measured=ratio("async, 1000 in flight [1/s]"),
            at_least=1.5,
            unit="x",
        ),
        Bar(name="batches of 100", measured=ratio("batches of 100 [1/s]"), at_least=1.0, unit="x"),
        Bar(name="consume own kind", measured=ratio(own), at_least=0.8, unit="x"),
        Bar(
            name="RocketMQ reads Kafka's, beside its own",
            measured=round(median("RocketMQ consumes what Kafka wrote [1/s]") / median(own), 2),
            at_least=0.3,
            unit="x",
        ),
        Bar(
            name="Kafka reads RocketMQ's, beside its own",
            measured=round(
                median("Kafka consumes what RocketMQ wrote [1/s]")
                / median("Kafka consumes what Kafka wrote [1/s]"),
                2,
            ),
            at_least=0.3,
            unit="x",
        ),
    ]


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.remoting",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test of a minute")
    arguments = parser.parse_args()
    report = run(QUICK if arguments.quick else FULL)
    for bar in report.bars:
        print(bar.line())
    if not arguments.quick:
        print(f"written to bench/results/{results.write(report).name}")
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
