"""How much do two gateways carry beside one, over RocketMQ and over rockgate?

Defends, over RocketMQ with messages of 1 KB over 8 partitions: two gateways take at least
1.7 times the rate of one where there are cores for them, and never more than 1.15 times the
processor time for a message.

    python -m bench gateways              everything; the results are written to bench/results/
    python -m bench.gateways --quick      a smoke test of a minute, not written

librdkafka produces (acks=all) to all partitions in turn, in as many processes as there are
gateways, so that the client is not what is measured. One gateway and two take turns over the
same brokers, on a topic of their own; those that are not measured have left the cluster. RocketMQ
has two masters with default settings. Rockgate is one process and has one core: gateways over
it move the work of Kafka's wire to other cores, and its own work for a message is what is left.
Processor time is that of the gateways, and of the servers behind them.
"""

import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.load import rdkafka
from bench.measure import results
from bench.measure.procfs import cpu_seconds
from bench.measure.results import Bar, Report
from bench.measure.run import Sampling, command_line
from bench.peers import RocketMQPeer, jars
from bench.peers.daemon import Daemon
from bench.peers.ports import HOST, free_ports
from bench.peers.rocketmq import RocketMQMaster
from bench.peers.rockgate import RockgateServer

PARTITIONS = 8
SIZES = (100, 1024)
BARRED = 1024
RATE_AT_LEAST = 1.7
CPU_AT_MOST = 1.15
CORES_MIN = 6
"""Two gateways, two clients and two brokers: with fewer cores the rate says nothing."""
BEHIND = ("rocketmq", "rockgate")


class Plan(NamedTuple):
    """The amount of work."""

    rounds: int
    messages: int
    directory: Path = Path()
    """Where gateways log."""


FULL = Plan(rounds=5, messages=400_000)
QUICK = Plan(rounds=1, messages=20_000)


@dataclass(frozen=True, slots=True)
class Behind:
    """The brokers behind the gateways."""

    name_server: str
    pids: list[int]


class Gateway:
    """A gateway process."""

    def __init__(self, behind: Behind, directory: Path) -> None:
        [port] = free_ports(1)
        self.address = f"{HOST}:{port}"
        self._daemon = Daemon(f"gateway-{port}", directory)
        command = [sys.executable, "-m", "rockgate.cli", "gateway", "--kafka", self.address]
        log = self._daemon.log_path
        self._daemon.start(
            [*command, "--name-servers", behind.name_server],
            is_ready=lambda: log.exists() and "ready kafka=" in log.read_text(),
        )

    @property
    def pid(self) -> int:
        """Its pid."""
        pid = self._daemon.pid
        assert pid is not None, self._daemon.log_tail()
        return pid

    def stop(self) -> None:
        """Have it hand over and end."""
        self._daemon.stop()

    def kill(self) -> None:
        """End it at once."""
        self._daemon.kill()

    def end(self) -> None:
        """End it, if it runs."""
        if self._daemon.pid is not None:
            self._daemon.kill()


@contextlib.contextmanager
def behind(name: str) -> Iterator[Behind]:
    """The brokers of one kind."""
    if name == "rockgate":
        with RockgateServer(rocketmq=True) as server:
            pid = server.daemon.pid
            assert pid is not None
            yield Behind(server.namesrv, [pid])
        return
    with RocketMQPeer() as peer, RocketMQMaster(peer, "broker-b") as second:
        other = second.daemon.pid
        assert other is not None
        yield Behind("{}:{}".format(*peer.namesrv), [peer.pid, other])


def measure(sampling: Sampling, name: str, found: Behind, plan: Plan, turn: int, size: int) -> None:
    """One gateway and two, in turns that alternate."""
    for count in (1, 2) if turn % 2 == 0 else (2, 1):
        gateways = [Gateway(found, plan.directory) for _ in range(count)]
        try:
            bootstrap = ",".join(each.address for each in gateways)
            topic = f"around-{turn}-{size}-{count}"
            rdkafka.create_topic(bootstrap, topic, PARTITIONS)
            produce(bootstrap, topic, size, plan.messages // 20, count)
            before = [cpu_seconds(each.pid) for each in gateways]
            brokers_before = sum(map(cpu_seconds, found.pids))
            began = time.perf_counter()
            produce(bootstrap, topic, size, plan.messages, count)
            seconds = time.perf_counter() - began
            used = sum(cpu_seconds(each.pid) for each in gateways) - sum(before)
            brokers_used = sum(map(cpu_seconds, found.pids)) - brokers_before
            who = f"{count} before {name}"
            sampling.add(rate_case(size), who, plan.messages / seconds)
            sampling.add(cpu_case(size), who, used / plan.messages * 1e6)
            sampling.add(f"brokers, {cpu_case(size)}", who, brokers_used / plan.messages * 1e6)
        finally:
            for each in gateways:
                each.stop()


def rate_case(size: int) -> str:
    """The name of a case."""
    return f"produce {size} B [1/s]"


def cpu_case(size: int) -> str:
    """The name of a case."""
    return f"processor time, {size} B [µs]"


def produce(bootstrap: str, topic: str, size: int, count: int, processes: int) -> None:
    """Produce from some processes, each to all partitions."""
    context = multiprocessing.get_context("spawn")
    share = count // processes
    workers = [
        context.Process(target=_produce, args=(bootstrap, topic, size, share))
        for _ in range(processes)
    ]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
        if each.exitcode:
            raise rdkafka.LoadFailed(f"a producer ended with status {each.exitcode}")


def _produce(bootstrap: str, topic: str, size: int, count: int) -> None:
    deadline = time.monotonic() + rdkafka.SECONDS_MAX
    delivery, value = rdkafka.Delivery(bootstrap), os.urandom(size)
    chunk = 200
    for at in range(0, count, chunk):
        partition = at // chunk % PARTITIONS
        delivery.send_many(topic, value, partition, min(chunk, count - at), deadline)
    delivery.finish(deadline)


def run(plan: Plan = FULL) -> Report:
    """Measure over both."""
    report = Report(
        name="gateways",
        command="python -m bench gateways",
        question="How much do two gateways carry beside one?",
        peers={"rocketmq": jars.version("rocketmq")},
        notes={
            "plan": "full" if plan == FULL else "quick",
            "partitions": PARTITIONS,
            "cores": os.cpu_count() or 0,
        },
    )
    sampling = Sampling(report)
    for name in BEHIND:
        with tempfile.TemporaryDirectory() as folder, behind(name) as found:
            plan = plan._replace(directory=Path(folder))
            for turn in range(plan.rounds):
                for size in SIZES:
                    measure(sampling, name, found, plan, turn, size)
    report.bars = bars(sampling, os.cpu_count() or 1)
    return report


def bars(sampling: Sampling, cores: int) -> list[Bar]:
    """The bars, by the medians; that of the rate only where there are cores for it."""

    def ratio(case: str) -> float:
        one, two = (sampling.median(case, f"{count} before rocketmq") for count in (1, 2))
        return round(two / max(1e-9, one), 2)

    found = [
        Bar(
            name=f"two gateways: one, processor time for a message, {BARRED} B",
            measured=ratio(cpu_case(BARRED)),
            at_most=CPU_AT_MOST,
            unit="x",
        )
    ]
    if cores >= CORES_MIN:
        found.append(
            Bar(
                name=f"two gateways: one, rate, {BARRED} B",
                measured=ratio(rate_case(BARRED)),
                at_least=RATE_AT_LEAST,
                unit="x",
            )
        )
    return found


def main() -> int:
    """Run from the command line; 1 if a bar fails."""
    arguments = command_line("gateways", __doc__, quick="a smoke test of a minute").parse_args()
    report = run(QUICK if arguments.quick else FULL)
    return results.conclude(report, is_saved=not arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
