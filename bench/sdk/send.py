"""How does rockgate's Python client compare with RocketMQ's Java client, on the same server?

Defends, as medians of three, with messages of 1 KB: 64 in flight at 0.7 of the Java client's rate
with as many, and batches of 100 at 0.7 of its rate. One in flight, and everything on uvloop, is
reported without a bar.

    python -m bench sdk            everything; the results are written to bench/results/
    python -m bench.sdk --quick    a smoke test of half a minute, not written

One rockgate server runs all the time and the clients take turns. Each measurement is a new process
(load/sdk.py, load/RocketMQLoad.java), warmed up for a third of it.
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.load.java import read
from bench.measure import results
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling, command_line
from bench.peers import jars
from bench.peers.rockgate import ROOMS, ROOT, RockgateServer
from bench.remoting import SECONDS_MAX, SIZE, Client

PYTHON, UVLOOP, JAVA = "rockgate.sdk", "rockgate.sdk on uvloop", "rocketmq-client"
IN_FLIGHT, BATCH = 64, 100
ONE = "one in flight [1/s]"
ONE_MEDIAN = "one in flight, median [us]"
MANY = f"{IN_FLIGHT} in flight [1/s]"
BATCHES = f"batches of {BATCH} [1/s]"
RATE_MIN = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The amount of work."""

    rounds: int
    seconds: float


FULL = Plan(rounds=3, seconds=4.0)
QUICK = Plan(rounds=1, seconds=0.5)


def run(plan: Plan = FULL) -> Report:
    """Measure, and report which bars hold."""
    report = Report(
        name="sdk",
        command="python -m bench sdk",
        question="How does rockgate's Python client compare with RocketMQ's Java client?",
        peers={JAVA: jars.version("rocketmq")},
        notes={"plan": "full" if plan is FULL else "quick", "message bytes": SIZE},
    )
    with tempfile.TemporaryDirectory() as folder, RockgateServer(rocketmq=True) as server:
        sampling = Sampling(report)
        java = Client(Path(folder))
        for turn in range(plan.rounds):
            topic = f"sdk-{turn}"
            for name, loop in ((PYTHON, "asyncio"), (UVLOOP, "uvloop")):
                words = (server.namesrv, topic, plan.seconds)
                rate, micros = python(*words, "one", 1, loop)
                sampling.add(ONE, name, rate)
                sampling.add(ONE_MEDIAN, name, micros)
                sampling.add(MANY, name, python(*words, "many", IN_FLIGHT, loop)[0])
                sampling.add(BATCHES, name, python(*words, "batch", BATCH, loop)[0])
            rate, micros = java.run(server.namesrv, "sync", topic, plan.seconds, 1)
            sampling.add(ONE, JAVA, rate)
            sampling.add(ONE_MEDIAN, JAVA, micros)
            for case, mode, number in ((MANY, "async", IN_FLIGHT), (BATCHES, "batch", BATCH)):
                rate, _ = java.run(server.namesrv, mode, topic, plan.seconds, number)
                sampling.add(case, JAVA, rate)
    report.bars = [
        Bar(
            name=case.removesuffix(" [1/s]"),
            measured=round(
                sampling.median(case, PYTHON) / max(1e-9, sampling.median(case, JAVA)), 2
            ),
            at_least=RATE_MIN,
            unit="x",
        )
        for case in (MANY, BATCHES)
    ]
    return report


def python(
    namesrv: str, topic: str, seconds: float, mode: str, number: int, loop: str
) -> tuple[float, float]:
    """Messages per second, and the median in microseconds with one in flight."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.load.sdk"),
            *(namesrv, mode, topic, str(seconds), str(number), loop),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in ROOMS)},
    )
    rate, micros = read(done.stdout, done.stderr)
    return rate, micros


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    parser = command_line("sdk", __doc__, quick="a smoke test of half a minute")
    arguments = parser.parse_args()
    report = run(QUICK if arguments.quick else FULL)
    return results.conclude(report, is_saved=not arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
