"""Gateways over a real RocketMQ cluster, while gateways and brokers are killed and stopped.

Idempotent Kafka producers write through the gateways, and RocketMQ's side writes the same queues.
Nothing that was acknowledged may be lost or overtaken, and no key may change its partition. What is
stored twice in a window that docs/internals/rocketmq-cluster.md names is counted, and elsewhere
nothing may be.
"""

from __future__ import annotations

import signal
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from bench.peers.daemon import Daemon
from confluent_kafka.admin import AdminClient, NewTopic
from tests.budget import budget, chosen_table
from tests.chaos.cutting import cut
from tests.chaos.fleet import GatewayProcess, fleet
from tests.chaos.writers import KafkaWriter, SdkWriter, Window, judge, read_all
from tests.gateway.rocketmq.cluster import TwoMasters, two_masters
from tests.seeds import seeded
from tests.waiting import wait_until

pytestmark = pytest.mark.java

TOPIC = "chaos"
PARTITIONS = 8
GATEWAYS = (2, 3)
WRITERS = 3
END_S = 60.0
"""How long the threads of a test that has failed may take to end."""
OPENING = frozenset(("stop_gateway", "cut_gateway", "stop_broker", "kill_broker"))
"""Faults that open a window: a gateway that is killed or ends serves nothing more."""
GO_ON_S = 5.0
"""Clients continue this long after the kill of a gateway, in the median."""


@pytest.fixture(scope="module")
def masters() -> Iterator[TwoMasters]:
    with two_masters() as cluster:
        yield cluster


class Chaos:
    """Faults, one after another, each waited out until all writers continue."""

    def __init__(
        self,
        masters: TwoMasters,
        gateways: list[GatewayProcess],
        writers: list[KafkaWriter],
        random: Random,
    ) -> None:
        self._masters = masters
        self._gateways = gateways
        self._writers = writers
        self._random = random
        self.counts: Counter[str] = Counter()
        self.windows: list[Window] = []
        """Faults in which something may be stored twice."""
        self.gaps: list[float] = []
        """How long writers waited for their next confirmation after the kill of a gateway."""

    def happen(self) -> None:
        """One fault, and the time until every writer continues."""
        faults: list[Callable[[], None]] = [
            self._kill_gateway,
            self._kill_gateway,
            self._stop_gateway,
            self._stop_gateway,
            self._end_gateway,
            self._cut_gateway,
            self._cut_gateway,
            self._stop_broker,
            self._kill_broker,
        ]
        fault = self._random.choice(faults)
        name, begin = fault.__name__.strip("_"), time.monotonic()
        self.counts[name] += 1
        fault()
        if name in OPENING:
            self.windows.append(Window(name, begin, time.monotonic()))
        self._go_on(time.monotonic())

    def _go_on(self, since: float) -> float:
        """Wait until all writers have new confirmations in every partition that they write."""

        def went_on() -> bool:
            _check(self._writers)
            return all(times[-1] > since for each in self._writers for times in _times(each))

        try:
            wait_until(went_on, "all writers continue")
        except AssertionError as late:
            raise AssertionError(f"{late}; {self._why(since)}") from None
        firsts = [
            min(at for at in times if at > since)
            for each in self._writers
            for times in _times(each)
        ]
        return max(firsts) - since

    def _why(self, since: float) -> str:
        """What is known of those who do not continue."""
        lagging = [
            (each, partition)
            for each in self._writers
            for partition, times in list(each.known.times.items())
            if times[-1] <= since
        ]
        names = [f"writer {each.number} partition {partition}" for each, partition in lagging]
        states = [writer.state_of(partition) for writer, partition in lagging[:3]]
        logs = [each.log[-3000:] for each in self._gateways]
        counted = [
            f"{each.address}\n{each.metrics('rockgate_kafka_errors', 'rockgate_cluster_errors')}"
            for each in self._gateways
        ]
        return "\n".join([f"{dict(self.counts)}; {names}", *states, *counted, *logs])

    def _gateway(self) -> GatewayProcess:
        return self._random.choice(self._gateways)

    def _kill_gateway(self) -> None:
        gateway = self._gateway()
        gateway.kill()
        self.gaps.append(self._go_on(time.monotonic()))
        gateway.start()
        gateway.await_ready()

    def _end_gateway(self) -> None:
        gateway = self._gateway()
        gateway.stop()
        gateway.start()
        gateway.await_ready()

    def _stop_gateway(self) -> None:
        gateway = self._gateway()
        gateway.signal(signal.SIGSTOP)
        _pass(self._random.choice((0.5, 1.5, 4.0, 15.0)))
        gateway.signal(signal.SIGCONT)

    def _cut_gateway(self) -> None:
        """One gateway and one broker hear nothing of each other: their views differ."""
        gateway, broker = self._gateway(), self._broker()
        port = next(port for each, port in self._ports() if each is broker)
        assert broker.pid is not None
        with cut(gateway.pid, broker.pid, port) as count:
            assert count, f"{gateway.address} is connected to {broker.name}"
            _pass(self._random.choice((2.0, 5.0, 12.0)))

    def _ports(self) -> list[tuple[Daemon, int]]:
        peer, second = self._masters.peer, self._masters.second
        return [(peer.broker_daemon, peer.broker[1]), (second.daemon, second.broker[1])]

    def _broker(self) -> Daemon:
        return self._random.choice([self._masters.peer.broker_daemon, self._masters.second.daemon])

    def _stop_broker(self) -> None:
        with self._broker().held():
            _pass(self._random.choice((0.5, 2.0, 6.0)))

    def _kill_broker(self) -> None:
        self._masters.second.daemon.kill()
        self._masters.second.start()


@pytest.mark.timeout(300 + 60 * budget("gateway_faults"))
def test_nothing_acknowledged_is_lost_or_overtaken(masters: TwoMasters, tmp_path: Path) -> None:
    random = seeded()
    gateways = fleet(masters.name_server, tmp_path, random.choice(GATEWAYS))
    everybody: list[KafkaWriter | SdkWriter] = []
    try:
        bootstrap = ",".join(each.address for each in gateways)
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(60)
        writers = [KafkaWriter(bootstrap, TOPIC, number) for number in range(WRITERS)]
        sdk = SdkWriter(masters.name_server, TOPIC)
        everybody += [*writers, sdk]
        for writer in everybody:
            writer.start()
        wait_until(lambda: _have_begun(writers), "all writers have begun")
        chaos = Chaos(masters, gateways, writers, random)
        for _ in range(budget("gateway_faults")):
            chaos.happen()
        for writer in everybody:
            writer.is_over.set()
        for writer in everybody:
            writer.join(300)
        _check(writers)
        found = read_all(bootstrap, TOPIC, PARTITIONS)
        verdict = judge(found, writers, sdk.acknowledged, chaos.windows)
        gaps = sorted(chaos.gaps)
        went_on = f"p50 {statistics.median(gaps):.1f} s, max {gaps[-1]:.1f} s" if gaps else "none"
        sys.stdout.write(
            f"{len(gateways)} gateways; faults {dict(chaos.counts)};"
            f" {verdict.acknowledged:,} acknowledged,"
            f" {len(verdict.lost)} lost, {len(verdict.overtaken)} overtaken,"
            f" {len(verdict.moved)} keys moved, {len(verdict.twice)} twice, and in"
            f" {len(chaos.windows)} windows {dict(verdict.in_windows)}"
            f" ({verdict.twice_sdk} of RocketMQ's side); failed sends"
            f" {sum(len(each.known.failed) for each in writers)};"
            f" after kill -9 of a gateway clients went on: {went_on}\n"
        )
        assert not verdict.lost, verdict.lost[:5]
        assert not verdict.overtaken, verdict.overtaken[:5]
        assert not verdict.moved, verdict.moved[:5]
        assert not verdict.twice, verdict.twice[:5]
        if gaps and chosen_table() == "long":
            assert statistics.median(gaps) < GO_ON_S
        for each in gateways:
            assert "Traceback" not in each.log
    finally:
        try:
            _end(everybody)
        finally:
            for each in gateways:
                each.end()


def _times(writer: KafkaWriter) -> list[list[float]]:
    return [list(times) for times in list(writer.known.times.values())]


def _have_begun(writers: Sequence[KafkaWriter]) -> bool:
    _check(writers)
    return all(len(_times(each)) > 1 for each in writers)


def _check(writers: Sequence[KafkaWriter]) -> None:
    """Fail at once if a writer cannot continue."""
    for each in writers:
        assert not each.known.fatal, f"writer {each.number} cannot continue: {each.known.fatal}"
        assert each.is_alive() or each.is_over.is_set(), f"writer {each.number} has ended"


def _end(everybody: Sequence[KafkaWriter | SdkWriter]) -> None:
    """Have no thread outlive the test."""
    for writer in everybody:
        writer.abandon()
    for writer in everybody:
        if writer.ident is not None:
            writer.join(END_S)
            assert not writer.is_alive(), writer


def _pass(seconds: float) -> None:
    threading.Event().wait(seconds)
