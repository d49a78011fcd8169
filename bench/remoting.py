"""How does our RocketMQ listener compare with Apache RocketMQ, under the same client in one run?

Defends, as medians of three, with messages of 1 KB: sync sends of 32 threads at 1.2 times
RocketMQ's rate; one thread's median latency at most 0.9 of its; async sends with 1,000 in flight at
1.5 times; batches of 100 at 1.2 times; consuming at 0.8 of its rate. RocketMQ's client reads
records of a Kafka client, and a Kafka client reads RocketMQ's messages, at 0.3 of the rate of their
own kind.

    python -m bench.remoting           everything; the results are written to bench/results/
    python -m bench.remoting --quick   a smoke test of a minute, not written
    python -m bench.remoting --only batches     a part, or several: the file is named after them
    python -m bench.remoting --profile where our server's time goes, without a peer

The servers take turns in each case; the first one alternates from round to round, and while one is
measured the other is paused (SIGSTOP), so that its background work does not count. First each gets
the load of every kind of send that is measured for a time, uncounted, so that the JIT compiler of
RocketMQ's broker has warmed up. The client is RocketMQ's Java client 5.5.0
(load/RocketMQLoad.java), a new process for each measurement, warmed up for a third of it; Kafka's
is librdkafka. Messages that are read with the other protocol are in one queue, so that both kinds
are read in the same way, and in equal numbers.
"""

import pstats
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from bench.load import rdkafka
from bench.load.java import JavaLoad
from bench.measure import results
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling, command_line
from bench.peers import RocketMQPeer, jars
from bench.peers.rockgate import RockgateServer

OURS, THEIRS = "rockgate", "rocketmq"
SIZE = 1024
SECONDS_MAX = 180
PROFILE_LINES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The amount of work."""

    rounds: int
    seconds: float
    warm_up_seconds: float
    messages: int


FULL = Plan(rounds=3, seconds=4.0, warm_up_seconds=6.0, messages=100_000)
QUICK = Plan(rounds=1, seconds=1.0, warm_up_seconds=1.0, messages=5_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One way of sending: the client's arguments, and the meaning of its results."""

    mode: str
    number: int
    is_median: bool = False
    at_least: float | None = None
    at_most: float | None = None


SENDS = {
    "sync, 32 threads [1/s]": Send(mode="sync", number=32, at_least=1.2),
    "sync, 1 thread, median [us]": Send(mode="sync", number=1, is_median=True, at_most=0.9),
    "async, 1000 in flight [1/s]": Send(mode="async", number=1000, at_least=1.5),
    "batches of 100 [1/s]": Send(mode="batch", number=100, at_least=1.2),
}
OWN = "consume own kind [1/s]"
OWN_AT_LEAST = 0.8
CROSSED_AT_LEAST = 0.3


class Loading(Protocol):
    """A client that generates load."""

    def run(
        self, namesrv: str, mode: str, topic: str, seconds: float, number: int
    ) -> tuple[float, float]:
        """Operations per second, and the median in microseconds for modes that have one."""


class Client:
    """RocketMQ's client, compiled once."""

    def __init__(self, folder: Path) -> None:
        self._load = JavaLoad(folder, "RocketMQLoad")

    def run(
        self, namesrv: str, mode: str, topic: str, seconds: float, number: int
    ) -> tuple[float, float]:
        """Operations per second, and the median in microseconds for modes that have one."""
        rate, micros = self._load.run(namesrv, mode, topic, seconds, number)
        return rate, micros


class Holding(Protocol):
    """A server that can be paused."""

    def held(self) -> AbstractContextManager[None]:
        """Pause the server meanwhile."""


class Run(Sampling):
    """One run: its plan, its client, the servers' name servers, and the results so far."""

    def __init__(
        self,
        plan: Plan,
        report: Report,
        client: Loading,
        servers: Mapping[str, str],
        kafka: str,
        others: Mapping[str, Holding],
    ) -> None:
        super().__init__(report)
        self.plan = plan
        self.client = client
        self.servers = servers
        self.kafka = kafka
        """HOST:PORT of our Kafka listener."""
        self.others = others
        """The servers to pause while one is measured."""

    def order(self, turn: int) -> Iterator[tuple[str, str]]:
        """Every server once, while the other is paused; the first one alternates."""
        order = list(self.servers.items())
        for name, namesrv in order if turn % 2 == 0 else reversed(order):
            with self.alone(name):
                yield name, namesrv

    def alone(self, name: str) -> AbstractContextManager[None]:
        """Pause the other server."""
        return self.others[name].held() if name in self.others else nullcontext()

    def bar(
        self,
        name: str,
        measured: float,
        beside: float,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        """Add a bar for the ratio of two numbers."""
        found = round(measured / max(1e-9, beside), 2)
        bar = Bar(name=name, measured=found, at_least=at_least, at_most=at_most, unit="x")
        self.report.bars.append(bar)


def sends(run: Run, cases: Sequence[str] = tuple(SENDS)) -> None:
    """Kinds of sends, to both servers."""
    plan, wanted = run.plan, {case: SENDS[case] for case in cases}
    for _, namesrv in run.order(0):
        for send in wanted.values():
            run.client.run(namesrv, send.mode, "warm-up", plan.warm_up_seconds, send.number)
    for turn in range(plan.rounds):
        for case, send in wanted.items():
            for name, namesrv in run.order(turn):
                rate, micros = run.client.run(
                    namesrv, send.mode, f"sends-{turn}", plan.seconds, send.number
                )
                run.add(case, name, micros if send.is_median else rate)
    for case, send in wanted.items():
        run.bar(
            case.partition(" [")[0],
            run.median(case, OURS),
            run.median(case, THEIRS) if THEIRS in run.servers else 0.0,
            at_least=send.at_least,
            at_most=send.at_most,
        )


def consumes(run: Run) -> None:
    """Reading what the same client wrote, from both servers."""
    plan = run.plan
    for _, namesrv in run.order(0):
        run.client.run(namesrv, "fill", "own-kind", 1, plan.messages)
    for turn in range(plan.rounds):
        for name, namesrv in run.order(turn):
            rate, _ = run.client.run(namesrv, "consume", "own-kind", 1, plan.messages)
            run.add(OWN, name, rate)
    theirs = run.median(OWN, THEIRS) if THEIRS in run.servers else 0.0
    run.bar("consume own kind", run.median(OWN, OURS), theirs, at_least=OWN_AT_LEAST)


def crossing(run: Run) -> None:
    """Each protocol's client reads its own messages, and those of the other, from rockgate."""
    plan, namesrv, kafka = run.plan, run.servers[OURS], run.kafka
    with run.alone(OURS):
        run.client.run(namesrv, "fill-queue", "by-rocketmq", 1, plan.messages)
        rdkafka.produce(kafka, "by-kafka", SIZE, plan.messages)
        for turn in range(plan.rounds):
            kinds = ("by-rocketmq", "by-kafka")
            for topic in kinds if turn % 2 == 0 else reversed(kinds):
                rate, _ = run.client.run(namesrv, "consume", topic, 1, plan.messages)
                run.add(f"RocketMQ consumes {topic} [1/s]", OURS, rate)
                load = rdkafka.consume(kafka, topic, SIZE, plan.messages)
                run.add(f"Kafka consumes {topic} [1/s]", OURS, load.per_second)
    for reader, own, other in (
        ("RocketMQ", "by-rocketmq", "by-kafka"),
        ("Kafka", "by-kafka", "by-rocketmq"),
    ):
        crossed = run.median(f"{reader} consumes {other} [1/s]", OURS)
        straight = run.median(f"{reader} consumes {own} [1/s]", OURS)
        name = f"{reader} reads the other's, beside its own"
        run.bar(name, crossed, straight, at_least=CROSSED_AT_LEAST)


CASES: dict[str, Callable[[Run], None]] = {
    "sends": sends,
    "consumes": consumes,
    "crossing": crossing,
}
PARTS: dict[str, Callable[[Run], None]] = {
    **CASES,
    "threads": partial(sends, cases=["sync, 32 threads [1/s]"]),
    "latency": partial(sends, cases=["sync, 1 thread, median [us]"]),
    "async": partial(sends, cases=["async, 1000 in flight [1/s]"]),
    "batches": partial(sends, cases=["batches of 100 [1/s]"]),
}
"""What can be measured by itself: the cases, and each kind of send."""


def run(plan: Plan = FULL, only: tuple[str, ...] = tuple(CASES)) -> Report:
    """Measure, and report which bars hold."""
    is_whole = set(only) == set(CASES)
    flags = [] if is_whole else [f"--only {name}" for name in only]
    report = Report(
        name="remoting" if is_whole else f"remoting-{'-'.join(only)}",
        command=" ".join(["python -m bench.remoting", *flags]),
        question="How does rockgate's RocketMQ listener compare with Apache RocketMQ?",
        peers={"rocketmq": jars.version("rocketmq")},
        notes={"plan": "full" if plan is FULL else "quick", "message bytes": SIZE},
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        RockgateServer(rocketmq=True) as ours,
        # With the default of 200 ms, many of a thousand in flight are rejected during its warm-up.
        RocketMQPeer(settings={"waitTimeMillsInSendQueue": "30000"}) as theirs,
    ):
        servers = {OURS: ours.namesrv, THEIRS: "{}:{}".format(*theirs.namesrv)}
        others = {OURS: theirs.broker_daemon, THEIRS: ours.daemon}
        going = Run(plan, report, Client(Path(folder)), servers, ours.bootstrap, others)
        for name in only:
            PARTS[name](going)
    return report


def profile(plan: Plan, only: tuple[str, ...]) -> None:
    """Show where the time of our event loop goes; the numbers beside it mean nothing."""
    report = Report(name="remoting", question="", peers={})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile"
        with RockgateServer(rocketmq=True, profile=path) as ours:
            servers = {OURS: ours.namesrv}
            going = Run(plan, report, Client(Path(folder)), servers, ours.bootstrap, {})
            for name in only:
                PARTS[name](going)
            ours.stop()
        pstats.Stats(str(path)).sort_stats("tottime").print_stats(PROFILE_LINES)


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    parser = command_line("remoting", __doc__, quick="a smoke test of a minute")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="a part, or several")
    parser.add_argument("--profile", action="store_true", help="where our server's time goes")
    arguments = parser.parse_args()
    plan, only = QUICK if arguments.quick else FULL, tuple(arguments.only or CASES)
    if arguments.profile:
        profile(QUICK, only)
        return 0
    report = run(plan, only)
    return results.conclude(report, is_saved=not arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
