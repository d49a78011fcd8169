"""How long do a thousand groups, and one group of a thousand members, take to rebalance?

A thousand groups of two members and one group of a thousand form at once; then one more member
joins each of them, one leaves the large group, and all groups rebalance. Meanwhile a producer
writes at a steady rate and every member sends heartbeats. It defends: a rebalance of all of them
within 10 seconds, and a response to every heartbeat within one.

Members learn of a rebalance by their next heartbeat, which they send every three seconds, as
clients do by default; and a new group waits three seconds for more members. The times include both.
"""

import argparse
import asyncio
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

import uvloop

from bench.load.members import TOPIC, Ledger, Member, Wire
from bench.measure import results
from bench.measure.procfs import cpu_seconds
from bench.measure.results import Bar, Report
from bench.peers import KafkaPeer
from bench.peers.rockgate import RockgateServer
from rockgate.protocol.kafka.keys import ApiKey
from rockgate.protocol.kafka.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rockgate.protocol.kafka.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from rockgate.protocol.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rockgate.protocol.kafka.records.record import Record, build_batch

DELAY = "group.initial.rebalance.delay.ms=3000"
BATCH_RECORDS = 16
RECORD_SIZE = 1_000
PRODUCE_EACH_SECONDS = 0.005
SECONDS_MAX = 120.0
DIAL_AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The number of groups and of their members."""

    groups: int = 1_000
    members: int = 2
    large: int = 1_000


FULL, QUICK = Size(), Size(groups=50, large=50)


class Contender(Protocol):
    """A server, ours or Kafka."""

    @property
    def address(self) -> tuple[str, int]:
        """The address of its listener."""
        ...

    @property
    def pid(self) -> int:
        """Its process id."""
        ...


@dataclass(slots=True)
class Outcome:
    """The results of one contender."""

    form_seconds: float = 0.0
    rebalance_seconds: float = 0.0
    heartbeats: list[float] = field(default_factory=list)
    produces: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0
    own_lag: float = 0.0
    largest_join: int = 0

    def figures(self) -> dict[str, list[float]]:
        """The samples for the report; the case's name contains the unit."""
        return {
            "form, seconds": [round(self.form_seconds, 3)],
            "rebalance, seconds": [round(self.rebalance_seconds, 3)],
            "heartbeat p50 and p99 and max, milliseconds": _percentiles(self.heartbeats),
            "produce p50 and p99 and max, milliseconds": _percentiles(self.produces),
            "server CPU, seconds": [round(self.cpu_seconds, 2)],
        }


class Load:
    """All members, and which of them have joined."""

    def __init__(self, address: tuple[str, int], size: Size) -> None:
        self._address = address
        self._size = size
        self.ledger = Ledger()
        self.members: list[Member] = []
        self._tasks: dict[Member, asyncio.Task[None]] = {}
        self._least: dict[str, int] = {}
        self._changed = asyncio.Event()

    async def add(self, groups: list[str]) -> list[Member]:
        """Connect one more member for each of these groups, without joining."""
        made: list[Member] = []
        for at in range(0, len(groups), DIAL_AT_ONCE):
            some = groups[at : at + DIAL_AT_ONCE]
            wires = await asyncio.gather(*(Wire.dial(self._address, "load") for _ in some))
            made += [
                Member(wire, group, self.ledger, self._stable)
                for wire, group in zip(wires, some, strict=True)
            ]
        return made

    def start(self, members: list[Member]) -> None:
        """Have members join."""
        for member in members:
            self.members.append(member)
            self._tasks[member] = asyncio.ensure_future(member.live())

    async def remove(self, member: Member) -> None:
        """Have a member leave its group."""
        self._tasks.pop(member).cancel()
        self.members.remove(member)
        await asyncio.sleep(0)
        await member.leave()

    def next_generation(self) -> None:
        """Consider a group stable only in a later generation from now on."""
        for member in self.members:
            self._least[member.group] = max(self._least.get(member.group, 0), member.generation + 1)

    async def settled(self) -> None:
        """Wait until every member has its assignment, and all members of a group the same
        generation."""
        async with asyncio.timeout(SECONDS_MAX):
            while not self._is_settled():
                self._changed.clear()
                await self._changed.wait()

    def _stable(self, member: Member) -> None:
        self._changed.set()

    def _is_settled(self) -> bool:
        generations: dict[str, int] = {}
        for member in self.members:
            if not member.assigned or member.generation < self._least.get(member.group, 0):
                return False
            if generations.setdefault(member.group, member.generation) != member.generation:
                return False
        return True

    async def stop(self) -> None:
        """Stop everything."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


async def _prepare(wire: Wire) -> None:
    """Create the topic, and wait until groups can be coordinated."""
    topic = CreatableTopic(name=TOPIC, num_partitions=4, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    await wire.call(ApiKey.CREATE_TOPICS, 7, request, CreateTopicsResponse)
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        asked = FindCoordinatorRequest(key_type=0, coordinator_keys=["g-0"])
        found = await wire.call(ApiKey.FIND_COORDINATOR, 4, asked, FindCoordinatorResponse)
        if not found.coordinators[0].error_code:
            return
        await asyncio.sleep(0.2)
    raise TimeoutError("groups are not coordinated")


async def _produce(wire: Wire, latencies: list[float]) -> None:
    """Write at a steady rate until cancelled."""
    records = [Record(index, 0, b"key", b"x" * RECORD_SIZE) for index in range(BATCH_RECORDS)]
    data = PartitionProduceData(index=0, records=bytes(build_batch(records, base_offset=0)))
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
    )
    due = time.perf_counter()
    while True:
        answer = await wire.call(ApiKey.PRODUCE, 9, request, ProduceResponse)
        code = answer.responses[0].partition_responses[0].error_code
        # From the scheduled time, so that a blocked producer does not hide the delay.
        if not code:
            latencies.append(time.perf_counter() - due)
        due = max(due + PRODUCE_EACH_SECONDS, time.perf_counter() - 1.0)
        await asyncio.sleep(max(0.0, due - time.perf_counter()))


async def _measure(server: Contender, size: Size) -> Outcome:
    outcome = Outcome()
    admin = await Wire.dial(server.address, "admin")
    await _prepare(admin)
    load = Load(server.address, size)
    names = [f"g-{number}" for number in range(size.groups)]
    first = await load.add([*names * size.members, *["large"] * size.large])
    more = await load.add([*names, "large"])
    producing = asyncio.ensure_future(
        _produce(await Wire.dial(server.address, "producer"), outcome.produces)
    )
    cpu = cpu_seconds(server.pid)
    began = time.perf_counter()
    load.start(first)
    await load.settled()
    outcome.form_seconds = time.perf_counter() - began
    # Spread the heartbeats of members over their interval, as in production.
    await asyncio.sleep(4)
    began = time.perf_counter()
    load.next_generation()
    leaver = next(member for member in load.members if member.group == "large")
    load.start(more)
    await load.remove(leaver)
    await load.settled()
    outcome.rebalance_seconds = time.perf_counter() - began
    await asyncio.sleep(4)
    outcome.cpu_seconds = cpu_seconds(server.pid) - cpu
    producing.cancel()
    await load.stop()
    outcome.heartbeats = load.ledger.heartbeats
    outcome.own_lag = max(load.ledger.lags, default=0.0)
    outcome.largest_join = load.ledger.largest_join
    return outcome


def measure(server: Contender, size: Size) -> Outcome:
    """Load one server."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(server, size))


def run(size: Size = FULL) -> Report:
    """Load our server and Kafka, one after the other."""
    with RockgateServer(settings=[DELAY, "groups.members_max=2000"]) as ours:
        rockgate = measure(ours, size)
    name, _, value = DELAY.partition("=")
    with KafkaPeer(settings={name: value}) as peer:
        version = peer.version
        kafka = measure(peer, size)
    report = Report(
        name="groups",
        question="how long do many groups and one large one take to rebalance?",
        peers={"Apache Kafka": version},
        notes={
            "groups": size.groups,
            "members of each": f"{size.members} and one more",
            "members of the large one": size.large,
            "members told to its leader": rockgate.largest_join,
            "the load's own lateness, milliseconds": {
                "rockgate": round(rockgate.own_lag * 1000, 1),
                "kafka": round(kafka.own_lag * 1000, 1),
            },
            "heartbeats": {"rockgate": len(rockgate.heartbeats), "kafka": len(kafka.heartbeats)},
            "batches of 16 KB": {
                "rockgate": len(rockgate.produces),
                "kafka": len(kafka.produces),
            },
        },
    )
    theirs = kafka.figures()
    for case, samples in rockgate.figures().items():
        report.samples[case] = {"rockgate": samples, "kafka": theirs[case]}
    report.bars = [
        Bar(
            name="all groups form",
            measured=round(rockgate.form_seconds, 2),
            at_most=10.0,
            unit="s",
        ),
        Bar(
            name="all groups rebalance",
            measured=round(rockgate.rebalance_seconds, 2),
            at_most=10.0,
            unit="s",
        ),
        Bar(
            name="slowest heartbeat",
            measured=round(max(rockgate.heartbeats), 3),
            at_most=1.0,
            unit="s",
        ),
    ]
    return report


def _percentiles(seconds: list[float]) -> list[float]:
    ordered = sorted(seconds)
    p99 = statistics.quantiles(ordered, n=100)[98] if len(ordered) > 1 else ordered[0]
    return [round(x * 1000, 2) for x in (statistics.median(ordered), p99, ordered[-1])]


def main() -> int:
    """Run it alone; `--quick` is a smoke test."""
    parser = argparse.ArgumentParser(prog="python -m bench.groups", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fifty groups; nothing is written")
    parser.add_argument("--ours", action="store_true", help="without Kafka; nothing is written")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else FULL
    if arguments.ours:
        with RockgateServer(settings=[DELAY, "groups.members_max=2000"]) as server:
            _show(measure(server, size))
        return 0
    report = run(size)
    for case, contenders in report.samples.items():
        print(f"{case}: {contenders}")
    if not arguments.quick:
        print(f"written to bench/results/{results.write(report).name}")
    for bar in report.bars:
        print(bar.line())
    return 0 if report.holds else 1


def _show(outcome: Outcome) -> None:
    figures: dict[str, Any] = {**outcome.figures(), "own lateness": outcome.own_lag}
    for case, samples in figures.items():
        print(f"{case}: {samples}")


if __name__ == "__main__":
    sys.exit(main())
