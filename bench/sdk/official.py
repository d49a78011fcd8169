"""How does the SDK's consumer compare with Apache's own Python client, on the same broker?

Defends that it is at least as fast, and end to end at least as soon. Apache RocketMQ 5.5.0 serves
both: the SDK by remoting, and `rocketmq-python-client` by gRPC through RocketMQ's proxy, which is
the only way that it has. Its push consumer gives a listener one message at a time and the SDK's
32; its simple consumer receives 32 and acknowledges each.

    python -m bench official                everything; the results are written to bench/results/
    python -m bench.sdk.official --quick    a smoke test of a minute, not written

The client is none of our dependencies: it has many of its own. It is looked for in the environment
that $BENCH_ROCKETMQ_PYTHON names (its interpreter), or in this one; without it nothing is measured.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.load.java import read
from bench.measure import results
from bench.measure.results import Bar, LeftOut, Report
from bench.measure.run import Sampling, command_line
from bench.peers.proxy import RocketMQProxy
from bench.peers.rocketmq import RocketMQPeer
from bench.peers.rockgate import ROOT
from bench.sdk.push import PYTHON, case_of, python
from rockgate.sdk import Admin

VARIABLE = "BENCH_ROCKETMQ_PYTHON"
PACKAGE = "rocketmq-python-client"
PUSH, SIMPLE = f"{PACKAGE}, push", f"{PACKAGE}, simple"
PROGRAM = ROOT / "bench" / "load" / "rocketmq_python.py"
VERSION = (
    "import rocketmq, importlib.metadata as m; "
    f"print(rocketmq.PushConsumer and m.version({PACKAGE!r}))"
)
SIZES = (100, 1024)
SECONDS_MAX = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is done."""

    rounds: int
    messages: int
    """That the SDK consumes; the other reads fewer, for it takes much longer."""
    few: int
    seconds: float
    rate: int


FULL = Plan(rounds=5, messages=100_000, few=1000, seconds=6.0, rate=100)
QUICK = Plan(rounds=1, messages=5000, few=500, seconds=2.0, rate=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Official:
    """An interpreter that has Apache's client."""

    python: str
    version: str
    home: Path
    """Where the client writes its log, which it does without being asked."""

    def run(self, proxy: str, *words: str | float) -> list[float]:
        """The numbers of bench/load/rocketmq_python.py."""
        done = subprocess.run(
            [self.python, str(PROGRAM), proxy, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            env={**os.environ, "HOME": str(self.home)},
        )
        return read(done.stdout, done.stderr)


def official(home: Path, environ: Mapping[str, str] = os.environ) -> Official:
    """Apache's client, if it is installed; LeftOut says why not."""
    found = environ.get(VARIABLE) or sys.executable
    try:
        asked = subprocess.run(
            [found, "-c", VERSION],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            env={**os.environ, "HOME": str(home)},
        )
    except OSError as failed:
        raise LeftOut(f"{found} does not run ({failed.strerror}); see ${VARIABLE}.") from None
    if asked.returncode:
        raise LeftOut(
            f"{PACKAGE} is not installed here. Install it into an environment of its own, "
            f"and name that one's interpreter: {VARIABLE}=/path/to/python."
        )
    return Official(python=found, version=asked.stdout.strip(), home=home)


def run(plan: Plan = FULL) -> Report:
    """Measure, and say which bars hold."""
    with tempfile.TemporaryDirectory() as folder:
        client = official(Path(folder))
        with RocketMQPeer() as peer, RocketMQProxy(peer) as proxy:
            return _measured(plan, client, peer, proxy.address)


def _measured(plan: Plan, client: Official, peer: RocketMQPeer, proxy: str) -> Report:
    report = Report(
        name="official",
        question="How does the SDK's consumer compare with Apache's own Python client?",
        peers={"rocketmq": peer.version, PACKAGE: client.version},
        notes={"plan": "full" if plan is FULL else "quick", "messages read by it": plan.few},
    )
    p50, p99 = (f"{plan.rate}/s, {name} [us]" for name in ("p50", "p99"))
    namesrv = "{}:{}".format(*peer.namesrv)
    sampling = Sampling(report)
    for size in SIZES:
        python(namesrv, "fill", f"push-{size}", plan.messages, size)
    for turn in range(plan.rounds):
        for size in SIZES:
            topic, case = f"push-{size}", case_of(size)
            sampling.add(case, PYTHON, python(namesrv, "consume", topic, plan.messages)[0])
            for name, mode in ((PUSH, "push"), (SIMPLE, "simple")):
                group = asyncio.run(a_group(namesrv, topic))
                sampling.add(case, name, client.run(proxy, mode, group, topic, plan.few)[0])
        found = python(namesrv, "latency", f"late-sdk-{turn}", plan.seconds, plan.rate)
        sampling.add(p50, PYTHON, found[0])
        sampling.add(p99, PYTHON, found[1])
        topic = f"late-official-{turn}"
        asyncio.run(a_topic(namesrv, topic))
        group = asyncio.run(a_group(namesrv, topic))
        found = client.run(proxy, "latency", group, topic, plan.seconds, plan.rate)
        sampling.add(p50, PUSH, found[0])
        sampling.add(p99, PUSH, found[1])
    report.bars = bars(sampling, p99)
    return report


def bars(sampling: Sampling, p99: str) -> list[Bar]:
    """Ours over the faster of its consumers, and our p99 over its."""
    found = []
    for case in map(case_of, SIZES):
        theirs = max(sampling.median(case, PUSH), sampling.median(case, SIMPLE))
        ratio = sampling.median(case, PYTHON) / max(1e-9, theirs)
        name = case.removesuffix(" [1/s]")
        found.append(Bar(name=name, measured=round(ratio, 2), at_least=1.0, unit="x"))
    ratio = sampling.median(p99, PYTHON) / max(1e-9, sampling.median(p99, PUSH))
    name = p99.removesuffix(" [us]")
    return [*found, Bar(name=name, measured=round(ratio, 2), at_most=1.0, unit="x")]


async def a_topic(namesrv: str, topic: str) -> None:
    """The proxy's clients ask for a topic without creating it."""
    async with Admin(namesrv) as admin:
        await admin.topics.create(topic)


async def a_group(namesrv: str, topic: str) -> str:
    """A new group at the beginning of a topic; the proxy's would begin at its end."""
    group = f"official-{time.time_ns()}"
    async with Admin(namesrv) as admin:
        await admin.groups.create(group)
        for each in await admin.topics.bounds(topic):
            await admin.offsets.commit(group, each.queue, 0)
    return group


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    parser = command_line("sdk.official", __doc__, quick="a smoke test of a minute")
    arguments = parser.parse_args()
    try:
        report = run(QUICK if arguments.quick else FULL)
    except LeftOut as reason:
        print(f"left out  official: {reason}")
        return 0
    return results.conclude(report, is_saved=not arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
