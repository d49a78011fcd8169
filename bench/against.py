"""Is this tree as fast as another commit of it?

Defends, for a change that must cost nothing: CPU time per operation at most 1.03 times that of the
other commit, and throughput at least 0.95 times, as medians over rounds.

    make bench-against REV=<commit>                beside that commit; writes bench/results/
    python -m bench.against <commit> --rounds 3    a quick look; nothing is written

The other commit is checked out beside this tree, runs with this tree's environment and gets this
tree's load. Both servers run all the time and take turns on produce and consume (librdkafka, 1 KB),
requests of one message, and RocketMQ sends and pulls. A round runs both in the order ABBABAAB or
its opposite and compares sums: neither a drift of the machine nor a cold first turn affects only
one of them. Turns are short and rounds many: on a shared machine, single turns differ by 20 %.
Starts are timed on a data directory filled by the same load.
"""

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.load import kafka_frames, rdkafka, remoting_frames
from bench.measure import results
from bench.measure.procfs import process_seconds
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling
from bench.peers.rockgate import ROOT, RockgateServer

OURS, THEIRS = "this tree", "the other commit"
ROUNDS = 20
ROUNDS_MIN = 15
SIZE = 1_000
MESSAGES = 50_000
SENDS = 4_000
PULLS = 8
CONSUMES = 3
STORM_SECONDS = 0.3
CPU_MAX = 1.03
RATE_MIN = 0.95
START_MAX = 1.03

Turn = Callable[[RockgateServer, str], tuple[float, float]]
"""One turn of a case on a topic: operations per second, and their number."""


def _produce(server: RockgateServer, topic: str) -> tuple[float, float]:
    load = rdkafka.produce(server.bootstrap, topic, SIZE, MESSAGES)
    return load.per_second, load.count


def _consume(server: RockgateServer, topic: str) -> tuple[float, float]:
    return _together(
        [rdkafka.consume(server.bootstrap, topic, SIZE, MESSAGES) for _ in range(CONSUMES)]
    )


def _single(server: RockgateServer, topic: str) -> tuple[float, float]:
    storm = kafka_frames.storm(
        server.address,
        f"single-{topic}",
        size=SIZE,
        connections=16,
        in_flight=5,
        warm_up_seconds=0.1,
        seconds=STORM_SECONDS,
    )
    return storm.per_second, storm.total_count


def _send(server: RockgateServer, topic: str) -> tuple[float, float]:
    load = remoting_frames.send(server.listeners["remoting"], f"sent-{topic}", SIZE, SENDS)
    return load.per_second, load.count


def _pull(server: RockgateServer, topic: str) -> tuple[float, float]:
    loads = [
        remoting_frames.pull(server.listeners["remoting"], f"sent-{topic}", SIZE, SENDS)
        for _ in range(PULLS)
    ]
    return _together(loads)


def _together(loads: Sequence[rdkafka.Load]) -> tuple[float, float]:
    count = sum(load.count for load in loads)
    return count / sum(load.seconds for load in loads), count


CASES: dict[str, Turn] = {
    "produce": _produce,
    "consume": _consume,
    "single requests": _single,
    "remoting sends": _send,
    "remoting pulls": _pull,
}
"""In this order: cases that read use what the case before them wrote."""


@contextlib.contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Check out another commit into a temporary working tree."""
    with tempfile.TemporaryDirectory(prefix="rockgate-against-") as folder:
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--detach", "--quiet", str(tree), revision)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@dataclass(slots=True)
class _Total:
    """The totals of one server's turns on one case in a round."""

    count: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, count: float, seconds: float, cpu_seconds: float) -> None:
        self.count += count
        self.seconds += seconds
        self.cpu_seconds += cpu_seconds


class Against(Sampling):
    """One run: two servers, and the results of each turn."""

    def __init__(self, report: Report, servers: dict[str, RockgateServer]) -> None:
        super().__init__(report)
        self._servers = servers

    def _order(self, index: int) -> list[tuple[str, RockgateServer]]:
        """Both start equally often, and a drift over the eight turns affects both alike."""
        pair = list(self._servers.items())
        first, second = pair if index % 2 == 0 else pair[::-1]
        return [first, second, second, first, second, first, first, second]

    def load(self, rounds: int) -> None:
        """Run every case in turns; the first round is a warm-up and does not count."""
        for index in range(-1, rounds):
            topic = f"round-{index + 1}"
            for server in self._servers.values():
                for each in (topic, f"single-{topic}", f"sent-{topic}"):
                    rdkafka.create_topic(server.bootstrap, each, 1)
            for case, turn in CASES.items():
                self._case(case, turn, topic, index)
            for server in self._servers.values():
                for each in (topic, f"single-{topic}", f"sent-{topic}"):
                    rdkafka.delete_topic(server.bootstrap, each)
            self.tell(f"round {index + 1} of {rounds}")

    def _case(self, case: str, turn: Turn, topic: str, index: int) -> None:
        totals = {name: _Total() for name in self._servers}
        for name, server in self._order(index):
            before = process_seconds(server.pid)
            per_second, count = turn(server, topic)
            totals[name].add(count, count / per_second, process_seconds(server.pid) - before)
        if index >= 0:
            for name, total in totals.items():
                self.note(f"{case} [1/s]", name, total.count / total.seconds)
                self.note(f"{case} [CPU µs]", name, total.cpu_seconds / total.count * 1e6)

    def starts(self, rounds: int) -> None:
        """Stop and start each server on its data."""
        for index in range(rounds):
            totals = dict.fromkeys(self._servers, 0.0)
            for name, server in self._order(index)[:4]:
                server.stop()
                server.start()
                totals[name] += server.ready_seconds
            for name, seconds in totals.items():
                self.note("start [s]", name, seconds / 2)
            self.tell(f"start {index + 1} of {rounds}")

    def conclude(self) -> None:
        """Add the bars, and the spread of the pairs."""
        for case in CASES:
            self._bar(f"{case} [CPU µs]", at_most=CPU_MAX)
            self._bar(f"{case} [1/s]", at_least=RATE_MIN)
        self._bar("start [s]", at_most=START_MAX)

    def _bar(
        self, case: str, *, at_most: float | None = None, at_least: float | None = None
    ) -> None:
        ratios = pairs(self.report.samples[case])
        quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        self.report.notes[f"{case}: quartiles"] = [round(each, 3) for each in quartiles]
        measured = round(statistics.median(ratios), 3)
        bar = Bar(
            name=case,
            measured=measured,
            at_most=at_most,
            at_least=at_least,
            unit="of the other's",
        )
        self.report.bars.append(bar)


def pairs(samples: dict[str, list[float]]) -> list[float]:
    """Our results divided by theirs, turn by turn."""
    return [ours / theirs for ours, theirs in zip(samples[OURS], samples[THEIRS], strict=True)]


def run(revision: str, rounds: int = ROUNDS) -> Report:
    """Measure this tree beside another commit."""
    commit = _git("rev-parse", f"{revision}^{{commit}}")
    report = Report(
        name="against",
        question="Is this tree as fast as another commit of it?",
        peers={THEIRS: commit},
        command=f"make bench-against REV={commit[:10]}",
        notes={"rounds": rounds, "message bytes": SIZE},
    )
    with contextlib.ExitStack() as stack:
        tree = stack.enter_context(checked_out(commit))
        servers = {
            OURS: stack.enter_context(RockgateServer(rocketmq=True)),
            THEIRS: stack.enter_context(RockgateServer(rocketmq=True, root=tree)),
        }
        against = Against(report, servers)
        against.load(rounds)
        against.starts(rounds)
        against.conclude()
    return report


def main() -> int:
    """Run it; 1 if a bar fails. Results of fewer rounds than the bars require are not written."""
    parser = argparse.ArgumentParser(prog="python -m bench.against", description=__doc__)
    parser.add_argument("revision", metavar="COMMIT", help="what to compare this tree with")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"pairs of turns ({ROUNDS})")
    arguments = parser.parse_args()
    report = run(arguments.revision, arguments.rounds)
    return results.conclude(report, is_saved=arguments.rounds >= ROUNDS_MIN)


if __name__ == "__main__":
    sys.exit(main())
