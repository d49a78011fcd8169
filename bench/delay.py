"""How late are delayed messages delivered, and what do pending ones cost?

Beside Apache RocketMQ with its own Java client (load/RocketMQTimes.java), as medians of three: the
lateness of messages of level 1, whose 99th percentile must be at most half of RocketMQ's; and the
lateness of messages with arbitrary times at 5,000 per second, at most 50 ms. For rockgate alone,
because these are absolute bars: anonymous memory with one million and with ten million pending
messages, at most 150 and 200 MB more than before; a start after kill -9 with a million, at most 5
s; and a million that became due during a downtime, at least 20,000 per second, while the 99th
percentile of sends stays below 50 ms.

    python -m bench.delay            everything; the results are written to bench/results/
    python -m bench.delay --quick    a smoke test of two minutes, not written
    python -m bench.delay --only memory
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.load.java import JavaLoad, finish
from bench.measure import results
from bench.measure.procfs import anonymous_bytes
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling, command_line
from bench.peers import RocketMQPeer, jars
from bench.peers.rockgate import RockgateServer

OURS, THEIRS = "rockgate", "rocketmq"
PROGRAM = "RocketMQTimes"
TOPIC = "later"
TARGETS = 8
HOUR_MS = 3_600_000
LEVEL_RATE = 300
POLL_SECONDS = 0.1
SETTLE_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The amount of work."""

    rounds: int
    level_seconds: float
    timer_seconds: float
    timer_rate: int
    waiting: int
    waiting_most: int
    sends_seconds: float
    sends_rate: int = 200


FULL = Plan(
    rounds=3,
    level_seconds=6,
    timer_seconds=6,
    timer_rate=5_000,
    waiting=1_000_000,
    waiting_most=10_000_000,
    sends_seconds=15,
)
QUICK = Plan(
    rounds=1,
    level_seconds=2,
    timer_seconds=2,
    timer_rate=1_000,
    waiting=20_000,
    waiting_most=100_000,
    sends_seconds=1,
)


class Run(Sampling):
    """One run: its plan, its client, and the results so far."""

    def __init__(self, plan: Plan, report: Report, client: JavaLoad) -> None:
        super().__init__(report)
        self.plan = plan
        self.client = client

    def bar(
        self, name: str, measured: float, unit: str, limits: Mapping[str, float | None]
    ) -> None:
        """Add a bar for a measured number."""
        bar = Bar(name=name, measured=round(measured, 2), unit=unit, **limits)
        self.report.bars.append(bar)


def order(servers: Mapping[str, str], turn: int) -> Iterator[tuple[str, str]]:
    """Every server once; the first one alternates from round to round."""
    both = list(servers.items())
    yield from both if turn % 2 == 0 else reversed(both)


# Lateness

LEVEL, ANY_TIME = "level 1, late, p99 [ms]", "any time, late, p99 [ms]"


def lateness(run: Run) -> None:
    """Measure the lateness of messages, beside RocketMQ."""
    plan = run.plan
    with RockgateServer(rocketmq=True) as ours, RocketMQPeer() as theirs:
        servers = {OURS: ours.namesrv, THEIRS: "{}:{}".format(*theirs.namesrv)}
        cases = (
            (LEVEL, "level", plan.level_seconds, LEVEL_RATE),
            (ANY_TIME, "timer", plan.timer_seconds, plan.timer_rate),
        )
        for case, mode, seconds, rate in cases:
            for turn in range(plan.rounds):
                for name, namesrv in order(servers, turn):
                    words = (namesrv, mode, f"{mode}-{turn}", seconds, rate)
                    middle, worst, least = run.client.run(*words)
                    run.add(case.replace("p99", "median"), name, middle)
                    run.add(case.replace("p99", "earliest"), name, least)
                    run.add(case, name, worst)
                    if name == OURS and least < 0:
                        raise AssertionError(f"a message came {-least} ms early")
    ratio = run.median(LEVEL, OURS) / max(1e-9, run.median(LEVEL, THEIRS))
    run.bar("level 1, late, p99, of RocketMQ's", ratio, "x", {"at_most": 0.5})
    run.bar(
        f"any time, late, p99 at {plan.timer_rate:,}/s",
        run.median(ANY_TIME, OURS),
        "ms",
        {"at_most": 50},
    )


# Pending messages


def memory(run: Run) -> None:
    """Measure the memory of a million messages sent by clients, and a start after kill -9."""
    count = run.plan.waiting
    with RockgateServer(rocketmq=True) as ours:
        run.client.run(ours.namesrv, "waiting", TOPIC, 1, 1_000)
        before = anonymous_bytes(ours.pid)
        [rate] = run.client.run(ours.namesrv, "waiting", TOPIC, 1, count, seconds_max=500)
        run.add("sent to wait [1/s]", OURS, rate)
        grown = (anonymous_bytes(ours.pid) - before) / 1e6
        run.add(f"RssAnon, {count:,} waiting [MB]", OURS, grown)
        run.bar(f"memory of {count:,} waiting", grown, "MB", {"at_most": 150})
        ours.daemon.kill()
        ours.start()
        run.add(f"ready after kill -9, {count:,} waiting [s]", OURS, ours.ready_seconds)
        run.bar(
            f"ready after kill -9 with {count:,} waiting", ours.ready_seconds, "s", {"at_most": 5}
        )


def filled(
    ours: RockgateServer, count: int, first_ms: int, step_ms: float, topic: str = TOPIC
) -> int:
    """Stop a server, add messages to its log, and return its memory before that."""
    admin = AdminClient({"bootstrap.servers": ours.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, TARGETS, 1)])[topic].result(30)
    time.sleep(SETTLE_SECONDS)
    before = anonymous_bytes(ours.pid)
    ours.stop()
    data = ours.directory / "data"
    arguments = map(str, (data, topic, count, first_ms, step_ms))
    subprocess.run([sys.executable, "-m", "bench.load.delayed", *arguments], check=True)
    return before


def memory_most(run: Run) -> None:
    """Measure the memory of ten million messages."""
    count = run.plan.waiting_most
    with RockgateServer(rocketmq=True) as ours:
        first_ms = int(time.time() * 1_000) + HOUR_MS
        before = filled(ours, count, first_ms, HOUR_MS / count)
        ours.start(seconds_max=300)
        run.add(f"ready, {count:,} waiting [s]", OURS, ours.ready_seconds)
        time.sleep(SETTLE_SECONDS)
        grown = (anonymous_bytes(ours.pid) - before) / 1e6
        run.add(f"RssAnon, {count:,} waiting [MB]", OURS, grown)
        run.bar(f"memory of {count:,} waiting", grown, "MB", {"at_most": 200})


# Overdue


def overdue(run: Run) -> None:
    """Deliver what became due in the ten minutes before the start, with sends at the same time."""
    plan, count = run.plan, run.plan.waiting
    with RockgateServer(rocketmq=True) as ours:
        first_ms = int(time.time() * 1_000) - 600_000
        filled(ours, count, first_ms, 600_000 / count)
        ours.start()
        began = time.monotonic()
        words = (ours.namesrv, "paced", "beside", plan.sends_seconds, plan.sends_rate)
        sends = run.client.start(*words)
        sends_ended = None
        consumer = Consumer({"bootstrap.servers": ours.bootstrap, "group.id": "bench"})
        while (there := delivered(consumer)) < count:
            if sends_ended is None and sends.poll() is not None:
                sends_ended = there
            if time.monotonic() - began > 300:
                raise AssertionError(f"only {there:,} of {count:,} were delivered")
            time.sleep(POLL_SECONDS)
        rate = count / (time.monotonic() - began)
        middle, worst = finish(sends)
        consumer.close()
    run.report.notes["delivered when the sends beside it had ended"] = sends_ended
    run.add("overdue, delivered [1/s]", OURS, rate)
    run.add("overdue, sends beside it, median [ms]", OURS, middle)
    run.add("overdue, sends beside it, p99 [ms]", OURS, worst)
    run.bar(f"{count:,} overdue delivered", rate, "1/s", {"at_least": 20_000})
    run.bar("sends beside them, p99", worst, "ms", {"at_most": 50})


def delivered(consumer: Consumer) -> int:
    """The number of messages in the destination topic."""
    return sum(
        consumer.get_watermark_offsets(TopicPartition(TOPIC, queue), timeout=30, cached=False)[1]
        for queue in range(TARGETS)
    )


CASES: dict[str, Callable[[Run], None]] = {
    "lateness": lateness,
    "memory": memory,
    "overdue": overdue,
    "memory-most": memory_most,
}


def run(plan: Plan = FULL, only: str | None = None) -> Report:
    """Measure, and report which bars hold."""
    report = Report(
        name="delay" if only is None else f"delay-{only}",
        command="python -m bench.delay" + (f" --only {only}" if only else ""),
        question="How late do delayed messages come, and what do those cost that wait?",
        peers={"rocketmq": jars.version("rocketmq")},
        notes={"plan": "full" if plan is FULL else "quick", "message bytes": 100},
    )
    with tempfile.TemporaryDirectory() as folder:
        running = Run(plan, report, JavaLoad(Path(folder), PROGRAM))
        for name, case in CASES.items():
            if only in (None, name):
                case(running)
    return report


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    parser = command_line("delay", __doc__, quick="a smoke test of two minutes")
    parser.add_argument("--only", choices=list(CASES), help="one part")
    arguments = parser.parse_args()
    report = run(QUICK if arguments.quick else FULL, arguments.only)
    return results.conclude(report, is_saved=not arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
