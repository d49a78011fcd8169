"""A whole group in one process and no time: members, brokers and the name server come and go.

Everything of the SDK runs as it is, from the consumer down to the connection. The network is in
memory, brokers are a model, and the loop's time jumps to the next timer, so minutes of rebalance
take milliseconds. `ledger` says what is checked at each step; here is what comes at the end.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pytest
from tests.budget import budget
from tests.sdk.memorynet import now, pass_time, run
from tests.sdk.simulation.broker import Broker
from tests.sdk.simulation.cluster import FORGET_S, Cluster, Stored
from tests.sdk.simulation.ledger import Ledger
from tests.sdk.simulation.members import CONCURRENT, GROUP, ORDERLY, Member, Tasks
from tests.sdk.simulation.wires import Wires
from tests.seeds import seeded

from rockgate.sdk.message import RETRY_PREFIX
from rockgate.sdk.results import Queue

TOPICS: Final = ["t", "u"]
STORM_STEPS: Final = 30
CALM_S_MAX: Final = 400.0
"""Time without faults after which everything is consumed and every queue has one owner:

listeners that hang take two minutes, and a message that fails again waits for one.
"""
DEAD_S_MAX: Final = 100.0
"""A name server forgets a broker after two minutes; that must not be waited for."""
SETTLED_S: Final = 25.0
"""How long that has to last: locks are renewed by then."""
COMMIT_S_MAX: Final = 10.0
CLOSE_S_MAX: Final = 8.0


class Simulated:
    """One group over one cluster, and what happens to them."""

    def __init__(self, seed: int, *, is_orderly: bool) -> None:
        self.random = Random(seed)
        self.is_orderly = is_orderly
        self.failures: list[str] = []
        asyncio.get_running_loop().set_exception_handler(self._failed)
        self.tasks = Tasks()
        self.wires = Wires(seed)
        self.ledger = Ledger(is_orderly=is_orderly)
        self.cluster = self.ledger.cluster = Cluster(self.wires, self.ledger, seed)
        self.brokers = [Broker(self.cluster, name) for name in "abc"[: self.random.randint(1, 3)]]
        for broker in self.brokers:
            for topic in TOPICS:
                broker.make(topic, self.random.randint(1, 3))
        self.members: list[Member] = []
        self._member_count = 0
        self._number = 0
        self._silent_s = -FORGET_S
        self._later: set[asyncio.Task[None]] = set()

    # What happens

    def join(self) -> Member:
        self._member_count += 1
        settings = ORDERLY if self.is_orderly else CONCURRENT
        name = f"m{self._member_count}"
        member = Member(name, self.cluster, self.ledger, self.tasks, settings, TOPICS)
        self.members.append(member)
        self.ledger.note(None, f"{name} joins")
        return member

    async def leave(self) -> None:
        member = self._one()
        if member is not None:
            self.ledger.note(None, f"{member.name} leaves")
            await member.leave()

    async def kill(self) -> None:
        member = self._one()
        if member is not None:
            is_silent = self.random.random() < 0.3
            self.ledger.note(None, f"{member.name} is killed, {is_silent=}")
            if is_silent:
                self._silent_s = now()
            await member.kill(is_silent=is_silent)

    def produce(self, count: int) -> list[int]:
        """Store messages at brokers that are up; their numbers."""
        numbers: list[int] = []
        for _ in range(count):
            up = [broker for broker in self.brokers if broker.is_up and not broker.is_frozen]
            if not up:
                break
            broker = self.random.choice(up)
            topic = self.random.choice(TOPICS)
            at = self.random.randrange(len(broker.topics[topic]))
            self._number += 1
            if self._number % 90 == 7 and self.wires.is_calm:
                # No poison at the end.
                self._number += 1
            queue = Queue(topic, broker.name, at)
            message = Stored(
                number=self._number, queue=queue, offset=0, position=0, topic=topic, tag="x",
                retries=0, stored_ms=0,
            )  # fmt: skip
            self.ledger.sent[self._number] = broker.append(topic, at, message)
            numbers.append(self._number)
        return numbers

    async def storm(self) -> None:
        for _ in range(STORM_STEPS):
            self.produce(self.random.randint(0, 12))
            await pass_time(self.random.choice((0.01, 0.3, 1.0, 5.0, 20.0, 40.0)))
            await self._fault()
            if self.ledger.breaches:
                return

    async def _fault(self) -> None:
        random = self.random
        broker = random.choice(self.brokers)
        for_s = random.choice((0.2, 2.0, 10.0, 50.0, 130.0))
        match random.randrange(13):
            case 0 | 1 | 2:
                self.join()
            case 3:
                await self.leave()
            case 4:
                await self.kill()
            case 5 if broker.is_up:
                broker.crash(is_noticed=random.random() < 0.7)
                self._spawn(self._return(broker, for_s))
            case 6:
                self.ledger.note(None, f"{broker.name} stands still for {for_s} s")
                broker.is_frozen = True
                self._spawn(self._thaw(broker, for_s))
            case 7 if (member := self._one(remove=False)) is not None:
                self.ledger.note(None, f"{member.name} is cut from {broker.name} for {for_s} s")
                self.wires.cut(member.name, broker.address, for_s)
                if random.random() < 0.5:
                    # Only the broker knows.
                    self.wires.reset(broker.address, member.name)
            case 8:
                self.wires.reset(broker.address)
                self.ledger.note(None, f"connections to {broker.name} are reset")
            case 9 if self.cluster.name_server.is_up:
                self.ledger.note(None, f"the name server is gone for {for_s} s")
                self.cluster.name_server.crash()
                self._spawn(self._name_server_returns(for_s))
            case 10:
                topic = random.choice(TOPICS)
                broker.make(topic, min(4, len(broker.topics[topic]) + 1))
            case 11 if (member := self._one(remove=False)) is not None:
                member.jump(random.choice((-3_600_000, -1000, 1000, 3_600_000)))
            case 12:
                self._set_back(broker)
            case _:
                pass

    def _set_back(self, broker: Broker) -> None:
        queue = self.random.choice(self.cluster.queues(*TOPICS))
        broker = next(each for each in self.brokers if each.name == queue.broker)
        offset = broker.offsets.get(queue)
        if broker.is_up and offset:
            to = self.random.randint(max(0, offset - 5), offset)
            self.ledger.moved(queue, to)
            broker.reset(GROUP, queue, to)

    async def _return(self, broker: Broker, for_s: float) -> None:
        await pass_time(for_s)
        if not broker.is_up:
            broker.restart()
            self.ledger.note(None, f"{broker.name} is back")

    async def _thaw(self, broker: Broker, for_s: float) -> None:
        await pass_time(for_s)
        broker.is_frozen = False

    async def _name_server_returns(self, for_s: float) -> None:
        await pass_time(for_s)
        self.cluster.name_server.is_up = True

    # The end

    async def calm(self, besides: str = "") -> None:
        for task in self._later:
            task.cancel()
        self.wires.calm()
        self.cluster.name_server.is_up = True
        self.ledger.note(None, "calm")
        for broker in self.brokers:
            broker.is_frozen = False
            if broker.name == besides:
                broker.crash(is_noticed=self.random.random() < 0.3)
            elif not broker.is_up:
                broker.restart()
        while len(self.members) < 2:
            self.join()

    async def finish(self) -> None:
        """Everything is consumed, and every queue has one owner."""
        until_s = now() + CALM_S_MAX
        settled_s = 0.0
        while settled_s < SETTLED_S:
            assert not self.ledger.breaches, self.ledger.breaches[0]
            if now() > until_s:
                self._report()
            await pass_time(1.0)
            is_finished = self.is_settled() and not self.ledger.unfinished()
            settled_s = settled_s + 1.0 if is_finished else 0.0

    @property
    def has_ghosts(self) -> bool:
        """Whether brokers may still count a member that has died without a word."""
        return now() < self._silent_s + FORGET_S + DEAD_S_MAX

    async def settle(self, besides: str) -> None:
        """Every queue but a dead broker's has one owner, while routes still name that broker."""
        until_s = now() + DEAD_S_MAX
        while not self.is_settled(besides):
            if now() > until_s:
                self._report()
            await pass_time(1.0)

    def _report(self) -> None:
        left = self.ledger.unfinished()
        story = self.ledger.story_of(left[0]) if left else ""
        owners = {
            (queue.topic, queue.broker, queue.id): [
                m.name for m in self.members if queue in m.queues
            ]
            for queue in self.cluster.queues(*TOPICS, RETRY_PREFIX)
        }
        raise AssertionError(f"not settled: {len(left)} unfinished {left[:5]}, {owners}\n{story}")

    def is_settled(self, besides: str = "") -> bool:
        """Whether all members are there, and every queue has exactly one owner."""
        if any(member.consumer is None for member in self.members):
            return False
        if not besides and not all(member.is_consistent for member in self.members):
            # One may still wait for a listener of a queue that it gives up.
            return False
        held = [queue for member in self.members for queue in member.queues]
        return sorted(queue for queue in held if queue.broker != besides) == [
            queue for queue in self.cluster.queues(*TOPICS, RETRY_PREFIX) if queue.broker != besides
        ]

    async def check_once(self) -> None:
        """Where nothing fails, nothing comes twice; in order not even if members change."""
        numbers = self.produce(15)
        if self.is_orderly:
            self.join()
            await pass_time(0.5)
            numbers += self.produce(15)
            await self.leave()
            numbers += self.produce(15)
        await self.finish()
        twice = [number for number in numbers if self.ledger.done[number] != 1]
        assert not twice, f"{twice} came twice\n{self.ledger.story_of(twice[0])}"

    async def check_offsets(self) -> None:
        """What is consumed is committed a few seconds later."""
        began_ms = self.cluster.now_ms()
        while late := self._uncommitted():
            queue, end = late[0]
            # A second copy of a dead letter may have come from the retry topic just now.
            newest_ms = max(began_ms, self.cluster.log(queue).stored[end - 1].stored_ms)
            if self.cluster.now_ms() > newest_ms + COMMIT_S_MAX * 1000:
                found = self.cluster.brokers[queue.broker].offsets.get(queue, 0)
                story = self.ledger.story(queue)
                raise AssertionError(f"{queue} is at {found} of {end}\n{story}")
            await pass_time(1.0)

    def _uncommitted(self) -> list[tuple[Queue, int]]:
        """Queues whose committed offset is not their end, and that."""
        ends = {
            queue: self.cluster.log(queue).end
            for queue in self.cluster.queues(*TOPICS, RETRY_PREFIX)
        }
        return [
            (queue, end)
            for queue, end in ends.items()
            if self.cluster.brokers[queue.broker].offsets.get(queue, 0) != end
        ]

    async def close(self) -> None:
        """Nothing is left."""
        for member in self.members:
            took_s = await member.leave()
            assert took_s < CLOSE_S_MAX, f"{member.name} took {took_s:.3g} s to close"
            assert not self.tasks.of(member.name), self.tasks.of(member.name)
        await pass_time(1.0)
        assert not self.wires.open
        for broker in self.brokers:
            broker.close()
        assert not self.failures, self.failures[0]

    # Private

    def _one(self, *, remove: bool = True) -> Member | None:
        if not self.members:
            return None
        member = self.random.choice(self.members)
        if remove:
            self.members.remove(member)
        return member

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")


@pytest.fixture(autouse=True)
def errors() -> Iterator[list[str]]:
    """What the SDK logs as an error; what an application's listener raises is none."""
    found: list[str] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not record.msg.startswith("listener failed"):
                found.append(f"{record.getMessage()} {record.exc_info}")

    logger, handler = logging.getLogger("rockgate.sdk"), Collecting()
    logger.addHandler(handler)
    before, propagates = logger.level, logger.propagate
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    yield found
    logger.removeHandler(handler)
    logger.setLevel(before)
    logger.propagate = propagates


async def simulate(seed: int, *, is_orderly: bool) -> None:
    world = Simulated(seed, is_orderly=is_orderly)
    for _ in range(world.random.randint(1, 4)):
        world.join()
    await world.storm()
    if len(world.brokers) > 1 and not world.has_ghosts:
        # One that stays away must not hold the others' queues.
        dead = world.random.choice(world.brokers).name
        await world.calm(besides=dead)
        await world.settle(besides=dead)
    await world.calm()
    await world.finish()
    await world.check_once()
    await world.check_offsets()
    await world.close()
    assert not world.ledger.breaches, world.ledger.breaches[0]


@pytest.mark.timeout(3600)  # the long budget; a single simulation takes a second
@pytest.mark.parametrize("is_orderly", [False, True], ids=["concurrent", "orderly"])
def test_a_group_keeps_its_promises_through_faults(errors: list[str], is_orderly: bool) -> None:
    random = seeded()
    for _ in range(budget("consumer_simulations")):
        seed = random.randrange(1 << 32)
        # pytest shows it of a failing test.
        sys.stdout.write(f"simulation {seed}\n")
        run(simulate(seed, is_orderly=is_orderly))
        assert not errors, errors[0]
