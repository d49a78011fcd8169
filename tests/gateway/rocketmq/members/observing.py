"""What must hold while gateways come, go, stop and lose their brokers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

from tests.gateway.rocketmq.members.simulated import (
    Cluster,
    SimBroker,
    SimGateway,
    now,
    sleep,
)

from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.members.gateways import GROUP
from rockgate.gateway.rocketmq.members.terms import FENCE_S, LINGER_S

LOOK_S = 0.05
QUEUES = [QueueName("orders", broker, at) for broker in "ab" for at in range(6)]
SLOTS = [QueueName(GROUP, "a" if slot % 2 == 0 else "b", slot) for slot in range(16)]
"""Slots alternate over brokers: so tables are spread."""
ROUND_S = 0.2
"""From the moment in which a broker lists gateways to the end of the round that asked it."""


@dataclass
class Seen:
    """What an observer has seen of one run."""

    twice: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """How long slots, and partitions, had two gateways, in seconds."""
    muted: float = 0.0
    """The same of partitions after one of them missed a packet: a documented window."""
    headless: float = 0.0
    """The longest time that something was led by no one although all was well."""
    notes: list[str] = field(default_factory=list)


class Observer:
    """Observes all gateways every 50 ms."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.seen = Seen()
        self.calm_since = now() + SETTLE_S
        self.fault_count = 0
        """Faults that have not ended."""
        self._led_at: dict[QueueName, float] = {}

    def look(self) -> None:
        for queue in (*QUEUES, *SLOTS):
            serving = [each for each in list(self.cluster.gateways) if each.serves(queue)]
            if len(serving) > 1:
                self._twice(queue, serving)
            if serving:
                self._led_at[queue] = now()
            elif not self.fault_count:
                since = max(self._led_at.get(queue, 0.0), self.calm_since)
                self.seen.headless = max(self.seen.headless, now() - since)

    def _twice(self, queue: QueueName, serving: list[SimGateway]) -> None:
        kind = "slot" if queue.topic == GROUP else "partition"
        told = [each for each in serving if not self._is_untold(each, queue.broker)]
        if kind == "partition" and len(told) <= 1:
            self.seen.muted += LOOK_S
            return
        self.seen.twice[kind] += LOOK_S
        ports = [each.me.port for each in serving]
        self.seen.notes.append(f"{now():.2f} {kind} {queue} at {ports}")

    def _is_untold(self, gateway: SimGateway, broker: str) -> bool:
        """Whether a gateway missed a packet, and has not turned after a newer list yet."""
        missed_at = self.cluster.untold.get((gateway, broker), 0.0)
        listed_at = self.cluster.listed.get((gateway, broker), 0.0)
        is_turned = listed_at > missed_at and now() - listed_at > LINGER_S + ROUND_S
        return now() - missed_at < FENCE_S and not is_turned


async def simulate(seed: int, *, faults: int, note: Callable[[str], None] = print) -> Seen:
    """Two brokers, up to four gateways, and faults one after another or at once."""
    random = Random(seed)
    cluster = Cluster(random)
    cluster.brokers = {name: SimBroker(name) for name in "ab"}
    cluster.values["rockgate/#slots"] = ";".join(["a:1", "b:1"] * 32)
    observer = Observer(cluster)
    try:
        await _storm(cluster, observer, faults, note)
    finally:
        # Also when it fails: a living gateway begins new timers after its tasks are cancelled.
        for gateway in list(cluster.gateways):
            gateway.kill()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
    return observer.seen


async def _storm(
    cluster: Cluster, observer: Observer, faults: int, note: Callable[[str], None]
) -> None:
    random = cluster.random
    ports = iter(range(1, 1000))
    for _ in range(random.choice((2, 3))):
        SimGateway(cluster, next(ports)).start()
    looking = asyncio.ensure_future(_look(observer))
    await sleep(10.0)
    faulty = Faults(cluster, observer, random, ports, note)
    for _ in range(faults):
        await faulty.happen()
        if random.random() < 0.7:
            await sleep(random.uniform(0.1, 12.0))
            observer.calm_since = now() + SETTLE_S
    await faulty.end()
    await sleep(SETTLE_S + 10.0)
    looking.cancel()
    led = [sum(each.serves(queue) for each in cluster.gateways) for queue in (*QUEUES, *SLOTS)]
    assert led == [1] * len(led), f"{len(cluster.gateways)} gateways, led {led}"


SETTLE_S = 15.0
"""Everything is led again this long after the last fault has ended."""


async def _look(observer: Observer) -> None:
    while True:
        observer.look()
        await sleep(LOOK_S)


class Faults:
    """What may go wrong."""

    def __init__(
        self,
        cluster: Cluster,
        observer: Observer,
        random: Random,
        ports: object,
        note: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._observer = observer
        self._random = random
        self._ports = ports
        self._note = note
        self._running: list[asyncio.Task[None]] = []

    async def happen(self) -> None:
        """One fault begins."""
        kinds: list[Callable[[], Awaitable[None]]] = [
            self._kill,
            self._stop,
            self._stop,
            self._cut,
            self._cut,
            self._reset,
            self._mute,
            self._kill_broker,
            self._stop_broker,
            self._add,
            self._leave,
        ]
        kind = self._random.choice(kinds)
        self._running.append(asyncio.ensure_future(self._one(kind)))
        await sleep(0)

    async def end(self) -> None:
        """All faults are over."""
        await asyncio.gather(*self._running)

    async def _one(self, kind: Callable[[], Awaitable[None]]) -> None:
        self._observer.fault_count += 1
        await kind()
        self._observer.fault_count -= 1
        self._observer.calm_since = now() + SETTLE_S

    def _gateway(self) -> SimGateway:
        return self._random.choice(self._cluster.gateways)

    def _staying(self) -> int:
        return sum(not each.is_leaving for each in self._cluster.gateways)

    def _broker(self) -> SimBroker:
        return self._cluster.brokers[self._random.choice("ab")]

    async def _add(self) -> None:
        if len(self._cluster.gateways) < 4:
            gateway = SimGateway(self._cluster, next(self._ports))  # type: ignore[call-overload]
            self._note(f"{now():.2f} start {gateway.me.port}")
            gateway.start()

    async def _kill(self) -> None:
        if self._staying() > 1:
            gateway = self._gateway()
            self._note(f"{now():.2f} kill {gateway.me.port}")
            gateway.kill()

    async def _leave(self) -> None:
        if self._staying() > 1:
            gateway = self._gateway()
            if not gateway.clock.is_stopped:
                self._note(f"{now():.2f} leave {gateway.me.port}")
                await gateway.leave()

    async def _stop(self) -> None:
        gateway, seconds = self._gateway(), self._random.choice((0.5, 2.0, 7.0, 15.0, 30.0))
        self._note(f"{now():.2f} stop {gateway.me.port} {seconds}")
        gateway.clock.runs.clear()
        await sleep(seconds)
        gateway.clock.go_on()

    async def _cut(self) -> None:
        gateway, broker = self._gateway(), self._broker()
        seconds = self._random.choice((1.0, 5.0, 9.0, 20.0, 130.0))
        self._note(f"{now():.2f} cut {gateway.me.port} {broker.name} {seconds}")
        self._cluster.cut.add((gateway, broker))
        await sleep(seconds)
        self._cluster.heal(gateway, broker)

    async def _reset(self) -> None:
        gateway, broker = self._gateway(), self._broker()
        self._note(f"{now():.2f} reset {gateway.me.port} {broker.name}")
        gateway.reset(broker)

    async def _mute(self) -> None:
        gateway = self._gateway()
        self._note(f"{now():.2f} mute {gateway.me.port}")
        self._cluster.muted.add(gateway)
        await sleep(5.0)
        self._cluster.muted.discard(gateway)

    async def _kill_broker(self) -> None:
        broker = self._broker()
        if broker.is_up and not broker.is_stopped:
            self._note(f"{now():.2f} kill {broker.name}")
            self._cluster.kill_broker(broker)
            await sleep(self._random.uniform(2.0, 10.0))
            broker.is_up = True

    async def _stop_broker(self) -> None:
        broker, seconds = self._broker(), self._random.choice((1.0, 5.0, 20.0))
        if broker.is_up and not broker.is_stopped:
            self._note(f"{now():.2f} stop {broker.name} {seconds}")
            broker.runs.clear()
            await sleep(seconds)
            broker.runs.set()
