"""How does pop consumption compare with Apache RocketMQ's, under the same client in one run?

Defends, as a median of five, with messages of 1 KB and 16 threads: at least RocketMQ's rate. One
thread is measured beside it.

    python -m bench pop               everything; the results are written to bench/results/
    python -m bench.pop --quick       a smoke test of half a minute, not written
    python -m bench.pop --profile     where our server's time goes, without a peer

Each thread of RocketMQ's Java client 5.5.0 (load/RocketMQPop.java) pops up to 32 messages,
acknowledges each by a request of its own, and pops again when all are answered. All share one
connection, as the threads of a push consumer do. The topic was filled before, and each measurement
is a new group and a new process, the first third of which does not count. The servers take turns;
the first one alternates, and while one is measured the other is paused (SIGSTOP). RocketMQ's broker
has its default settings.
"""

import pstats
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.delay import OURS, THEIRS, order
from bench.load.java import JavaLoad
from bench.measure import results
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling, command_line
from bench.peers import RocketMQPeer, jars
from bench.peers.rockgate import RockgateServer

SIZE = 1024
BARRED = 16
THREADS = (1, BARRED)
AT_LEAST = 1.0
TOPIC = "popped"
SPARE = 2_000
"""More messages than are counted, so that no thread waits at the end."""
PROFILE_LINES = 45


class Plan(NamedTuple):
    """The amount of work."""

    rounds: int
    messages: dict[int, int]
    """How many are popped, by the number of threads."""
    warm_ups: int


FULL = Plan(rounds=5, messages={1: 20_000, BARRED: 60_000}, warm_ups=3)
QUICK = Plan(rounds=1, messages={1: 2_000, BARRED: 6_000}, warm_ups=1)


def case(threads: int) -> str:
    """The name of a case."""
    return f"pop and acknowledge, {threads} thread{'s' if threads > 1 else ''} [1/s]"


def run(plan: Plan = FULL) -> Report:
    """Measure both servers in turns."""
    report = Report(
        name="pop",
        command="python -m bench pop",
        question="How does pop consumption compare with Apache RocketMQ's?",
        peers={"rocketmq": jars.version("rocketmq")},
        notes={"plan": "full" if plan is FULL else "quick", "message bytes": SIZE},
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        RockgateServer(rocketmq=True) as ours,
        RocketMQPeer() as theirs,
    ):
        sampling = Sampling(report)
        load, pops = JavaLoad(Path(folder), "RocketMQLoad"), JavaLoad(Path(folder), "RocketMQPop")
        servers = {OURS: ours.namesrv, THEIRS: "{}:{}".format(*theirs.namesrv)}
        others = {OURS: theirs.broker_daemon, THEIRS: ours.daemon}
        most = max(plan.messages.values())
        for name, namesrv in servers.items():
            with others[name].held():
                load.run(namesrv, "fill", TOPIC, 1, most + SPARE)
                # A broker is slower until its JIT compiler has warmed up.
                for _ in range(plan.warm_ups):
                    pops.run(namesrv, TOPIC, most, BARRED)
        for turn in range(plan.rounds):
            for threads in THREADS:
                for name, namesrv in order(servers, turn):
                    with others[name].held():
                        [rate] = pops.run(namesrv, TOPIC, plan.messages[threads], threads)
                    sampling.add(case(threads), name, rate)
    report.bars = [bar(sampling)]
    return report


def bar(sampling: Sampling) -> Bar:
    """The bar, by the medians."""
    ours, theirs = (sampling.median(case(BARRED), name) for name in (OURS, THEIRS))
    return Bar(
        name=case(BARRED).replace(" [1/s]", ", of RocketMQ's"),
        measured=round(ours / max(1e-9, theirs), 2),
        at_least=AT_LEAST,
        unit="x",
    )


def profile(plan: Plan) -> None:
    """Show where the time of our event loop goes; the numbers beside it mean nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile"
        load, pops = JavaLoad(Path(folder), "RocketMQLoad"), JavaLoad(Path(folder), "RocketMQPop")
        with RockgateServer(rocketmq=True, profile=path) as ours:
            count = plan.messages[BARRED]
            load.run(ours.namesrv, "fill", TOPIC, 1, count + SPARE)
            for _ in range(3):
                pops.run(ours.namesrv, TOPIC, count, BARRED)
            ours.stop()
        pstats.Stats(str(path)).sort_stats("tottime").print_stats(PROFILE_LINES)


def main() -> int:
    """Run from the command line; 1 if the bar fails."""
    parser = command_line("pop", __doc__, quick="a smoke test of half a minute")
    parser.add_argument("--profile", action="store_true", help="where our server's time goes")
    arguments = parser.parse_args()
    if arguments.profile:
        profile(QUICK)
        return 0
    report = run(QUICK if arguments.quick else FULL)
    return results.conclude(report, is_saved=not arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
