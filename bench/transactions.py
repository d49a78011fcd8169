"""What do RocketMQ transactions cost a producer, on rockgate and on Apache RocketMQ?

A client based on RocketMQ's Java client 5.5.0 (load/RocketMQTimes.java) sends a half message of 1
KB, runs its local transaction and commits with a one-way request; then it sends the next. One
client alone, and eight, each with its own producer and connection, as medians of three. The servers
take turns; the first one alternates. While one is measured the other is paused (SIGSTOP): for a
minute after its turn RocketMQ's broker uses up to nine tenths of a processor, which must not count
for the other. The bars: 1.2 times RocketMQ's rate, for one client and for eight.

    python -m bench.transactions           the results are written to bench/results/
    python -m bench.transactions --quick   a smoke test of half a minute, not written
"""

import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from bench.delay import OURS, PROGRAM, THEIRS, order
from bench.load.java import JavaLoad
from bench.measure import results
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling, command_line
from bench.peers import RocketMQPeer, jars
from bench.peers.rockgate import RockgateServer

CLIENTS = (1, 8)
MANY = 8
AT_LEAST = 1.2
SIZE = 1024


class Plan(NamedTuple):
    """The amount of work."""

    rounds: int
    seconds: float
    warm_up_seconds: float


FULL = Plan(rounds=3, seconds=6.0, warm_up_seconds=15.0)
QUICK = Plan(rounds=1, seconds=1.0, warm_up_seconds=1.0)


def case(clients: int) -> str:
    """The name of a case."""
    return f"half and commit, {clients} client{'s' if clients > 1 else ''} [1/s]"


def run(plan: Plan = FULL) -> Report:
    """Measure both servers in turns."""
    report = Report(
        name="transactions",
        command="python -m bench.transactions",
        question="What do RocketMQ's transactions cost a producer, beside Apache RocketMQ?",
        peers={"rocketmq": jars.version("rocketmq")},
        notes={"plan": "full" if plan is FULL else "quick", "message bytes": SIZE},
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        RockgateServer(rocketmq=True) as ours,
        RocketMQPeer() as theirs,
    ):
        sampling = Sampling(report)
        client = JavaLoad(Path(folder), PROGRAM)
        servers = {OURS: ours.namesrv, THEIRS: "{}:{}".format(*theirs.namesrv)}
        others = {OURS: theirs.broker_daemon, THEIRS: ours.daemon}
        for name, namesrv in servers.items():
            # A broker is slower until its JIT compiler has warmed up.
            with others[name].held():
                client.run(namesrv, "half", "warm-up", plan.warm_up_seconds, MANY)
        for clients in CLIENTS:
            for turn in range(plan.rounds):
                for name, namesrv in order(servers, turn):
                    words = (namesrv, "half", f"half-{clients}-{turn}", plan.seconds, clients)
                    with others[name].held():
                        rate, middle, worst = client.run(*words)
                    sampling.add(case(clients), name, rate)
                    sampling.add(case(clients).replace("[1/s]", "median [ms]"), name, middle)
                    sampling.add(case(clients).replace("[1/s]", "p99 [ms]"), name, worst)
        report.notes["committed messages in the log"] = _committed(ours.bootstrap, plan.rounds)
    report.bars = [bar(report, clients) for clients in CLIENTS]
    return report


def _committed(bootstrap: str, rounds: int) -> int:
    """Count what a Kafka client sees: only committed messages."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    topics = {f"half-{clients}-{turn}" for clients in CLIENTS for turn in range(rounds)}
    found = consumer.list_topics(timeout=30).topics
    count: int = sum(
        consumer.get_watermark_offsets(TopicPartition(name, queue), timeout=30, cached=False)[1]
        for name in topics
        for queue in found[name].partitions
    )
    consumer.close()
    return count


def bar(report: Report, clients: int) -> Bar:
    """The bar of a case, by the medians."""
    samples = report.samples[case(clients)]
    ratio = statistics.median(samples[OURS]) / max(1e-9, statistics.median(samples[THEIRS]))
    return Bar(
        name=f"{case(clients).removesuffix(' [1/s]')}, of RocketMQ's",
        measured=round(ratio, 2),
        at_least=AT_LEAST,
        unit="x",
    )


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    arguments = command_line(
        "transactions", __doc__, quick="a smoke test of half a minute"
    ).parse_args()
    report = run(QUICK if arguments.quick else FULL)
    return results.conclude(report, is_saved=not arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
