"""How does the SDK's push consumer compare with RocketMQ's Java client, on the same server?

Defends, as medians of five, with listeners that take 32 messages at once as Java's do: at least 0.5
of the Java client's rate with messages of 100 bytes and 0.8 with 1 KB; end to end at 1,000 per
second a p99 of at most 1.2 times Java's; and 100,000 cached messages of 100 bytes in at most 120
MB.

    python -m bench push                everything; the results are written to bench/results/
    python -m bench.sdk.push --quick    a smoke test of half a minute, not written

One rockgate server runs all the time and the clients take turns. Each measurement is a new process
(load/push.py, load/RocketMQPush.java).
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.load.java import JavaLoad, read
from bench.measure import results
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling, command_line
from bench.peers import jars
from bench.peers.rockgate import ROOMS, ROOT, RockgateServer

PYTHON, JAVA = "rockgate.sdk", "rocketmq-client"
SIZES = {100: 0.5, 1024: 0.8}
"""Message size in bytes, and the minimum relative to Java's rate."""
RATE = 1000
P50, P99 = f"{RATE}/s, p50 [us]", f"{RATE}/s, p99 [us]"
P99_MAX = 1.2
CACHED_BYTES_MAX = 1200.0
SECONDS_MAX = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The amount of work."""

    rounds: int
    messages: int
    seconds: float
    cached: int


FULL = Plan(rounds=5, messages=200_000, seconds=6.0, cached=100_000)
QUICK = Plan(rounds=1, messages=10_000, seconds=1.5, cached=10_000)


def run(plan: Plan = FULL) -> Report:
    """Measure, and report which bars hold."""
    report = Report(
        name="push",
        command="python -m bench push",
        question="How does the SDK's push consumer compare with RocketMQ's Java client?",
        peers={JAVA: jars.version("rocketmq")},
        notes={"plan": "full" if plan is FULL else "quick", "listener batch": 32},
    )
    with tempfile.TemporaryDirectory() as folder, RockgateServer(rocketmq=True) as server:
        sampling = Sampling(report)
        java = JavaLoad(Path(folder), "RocketMQPush")
        for size in SIZES:
            python(server.namesrv, "fill", f"push-{size}", plan.messages, size)
        for turn in range(plan.rounds):
            for size in SIZES:
                words = (server.namesrv, "consume", f"push-{size}", plan.messages)
                sampling.add(case_of(size), PYTHON, python(*words)[0])
                sampling.add(case_of(size), JAVA, java.run(*words)[0])
            for name, load in ((PYTHON, python), (JAVA, java.run)):
                topic = f"late-{name}-{turn}".replace(".", "-")
                p50, p99 = load(server.namesrv, "latency", topic, plan.seconds, RATE)
                sampling.add(P50, name, p50)
                sampling.add(P99, name, p99)
        each = python(server.namesrv, "cached", "push-100", plan.cached)[0]
    report.bars = [
        *(
            Bar(
                name=case_of(size).removesuffix(" [1/s]"),
                measured=ratio(sampling, case_of(size)),
                at_least=least,
                unit="x",
            )
            for size, least in SIZES.items()
        ),
        Bar(
            name=P99.removesuffix(" [us]"), measured=ratio(sampling, P99), at_most=P99_MAX, unit="x"
        ),
        Bar(
            name="a cached message of 100 bytes",
            measured=round(each, 1),
            at_most=CACHED_BYTES_MAX,
            unit="B",
        ),
    ]
    return report


def case_of(size: int) -> str:
    """The case of a rate."""
    return f"{size} bytes [1/s]"


def ratio(sampling: Sampling, case: str) -> float:
    """Our rate relative to Java's, as medians."""
    return round(sampling.median(case, PYTHON) / max(1e-9, sampling.median(case, JAVA)), 2)


def python(*words: str | float) -> list[float]:
    """Run bench/load/push.py, and return its results."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.load.push", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in ROOMS)},
    )
    return read(done.stdout, done.stderr)


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    parser = command_line("push", __doc__, quick="a smoke test of half a minute")
    arguments = parser.parse_args()
    report = run(QUICK if arguments.quick else FULL)
    return results.conclude(report, is_saved=not arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
