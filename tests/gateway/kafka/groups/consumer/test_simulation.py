"""Consumer groups on a virtual clock: members come, go, die, stall and lose answers; the server
restarts, and fails to write; classic members join and leave, so that groups migrate.

Whatever happens, what two members believe to have never overlaps unless one of them is out of the
group already, and when the faults end everyone has converged.
"""

from __future__ import annotations

import asyncio
import contextlib
from random import Random
from typing import Any

import pytest
from tests.budget import budget
from tests.gateway.kafka.groups.consumer.bench import GROUP, ConsumerBench
from tests.seeds import seeded

from rockgate.gateway.kafka.groups.classic.events import GroupState, Joined, Sync, Synced
from rockgate.gateway.kafka.groups.consumer.heartbeats import HeartbeatOutcome
from rockgate.gateway.kafka.groups.waiters import Waiter
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_versioned,
)
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.errors import StoreFull

Partition = tuple[bytes, int]
"""Of a topic by its id: one that is created again under its name has other partitions."""
TICK_MS = 1_000
BEAT_TICKS = 5
STORM_TICKS = 400
CALM_TICKS = 200
LOSS = 0.1
"""How often an answer is lost."""
SUBSCRIPTIONS = ("a", "b", "a b", "c", "a c")


class Client:
    """A consumer as its application sees it: what it believes to have."""

    def __init__(self, storm: Storm, name: str) -> None:
        self.storm, self.name = storm, name
        self.believes: set[Partition] = set()
        self.is_stalled = False
        self.next_tick = storm.random.randint(0, BEAT_TICKS)

    @property
    def member_id(self) -> str:
        return self.name

    def tick(self) -> None:
        if not self.is_stalled and self.storm.tick >= self.next_tick:
            self.next_tick = self.storm.tick + BEAT_TICKS
            self.act()

    def act(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError

    def is_settled(self) -> bool:
        raise NotImplementedError

    def forget(self) -> None:
        """It is out, or the server is gone: as a client it abandons what it had."""
        self.believes = set()


class ModernClient(Client):
    """A client of the consumer protocol."""

    def __init__(self, storm: Storm, name: str, instance: str | None) -> None:
        super().__init__(storm, name)
        self.instance = instance
        self.epoch = 0
        self.names = storm.random.choice(SUBSCRIPTIONS)
        self.is_unsure = True
        self.lives = 0

    @property
    def member_id(self) -> str:
        return f"{self.name}.{self.lives}"

    def act(self) -> None:
        random, bench = self.storm.random, self.storm.bench
        if self.storm.loss and random.random() < 0.02 and self.epoch:
            self.names = random.choice(SUBSCRIPTIONS)
            self.is_unsure = True
        owned: dict[bytes, list[int]] = {}
        for topic_id, partition in self.believes:
            owned.setdefault(topic_id, []).append(partition)
        said: dict[str, Any] = {
            "instance_id": self.instance,
            "rebalance_ms": 30_000,
            "names": self.names,
        }
        try:
            if self.epoch == 0:
                outcome = bench.join(self.member_id, **said)
            elif self.is_unsure or random.random() < 0.1:
                outcome = bench.beat(self.member_id, self.epoch, owned=owned, **said)
            else:
                outcome = bench.beat(self.member_id, self.epoch)
        except RequestError as error:
            if error.code not in (ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.INVALID_REQUEST):
                self.forget()
                self.epoch, self.is_unsure = 0, True
            return
        except StoreFull:
            self.is_unsure = True
            return
        if random.random() < self.storm.loss:
            self.is_unsure = True
            return
        self.told(outcome)

    def told(self, outcome: HeartbeatOutcome) -> None:
        self.epoch = outcome.epoch
        self.is_unsure = False
        if outcome.assigned is None:
            return
        given = {(topic_id, each) for topic_id, held in outcome.assigned.items() for each in held}
        if self.believes - given:
            # It says that it has given up, without waiting for the next beat.
            self.believes &= given
            self.is_unsure = True
            self.next_tick = self.storm.tick + self.storm.random.randint(1, 3)
        self.believes |= given

    def leave(self) -> None:
        self.go(-1 if self.instance is None or self.storm.random.random() < 0.5 else -2)

    def go(self, epoch: int) -> None:
        self.forget()
        if self.epoch:
            with contextlib.suppress(RequestError, StoreFull):
                self.storm.bench.beat(self.member_id, epoch, instance_id=self.instance)
        self.epoch, self.is_unsure = 0, True
        self.lives += 1

    def is_settled(self) -> bool:
        return self.epoch > 0 and not self.is_unsure


class ClassicClient(Client):
    """A client of the classic protocol, eager: it gives up everything before it joins again."""

    def __init__(self, storm: Storm, name: str) -> None:
        super().__init__(storm, name)
        self.joined: Joined | None = None
        self.id = ""
        self.waiting: asyncio.Future[Joined] | None = None
        self.syncing: asyncio.Future[Synced] | None = None

    @property
    def member_id(self) -> str:
        return self.id

    def restart(self) -> None:
        """Its connection was lost."""
        self.waiting = self.syncing = None

    def act(self) -> None:
        self.next_tick = self.storm.tick + 2
        try:
            self._act()
        except StoreFull:
            self.forget()
            self.joined = None

    def _act(self) -> None:
        if self.waiting is not None:
            if self.waiting.done():
                joined, self.waiting = self.waiting.result(), None
                self._got_joined(joined)
        elif self.syncing is not None:
            if self.syncing.done():
                synced, self.syncing = self.syncing.result(), None
                self._got_synced(synced)
        elif self.joined is None:
            self.forget()
            outcome = self.storm.bench.classic_join(self.id, "a b")
            if isinstance(outcome, asyncio.Future):
                self.waiting = outcome
            else:
                self._got_joined(outcome)
        elif code := self.storm.bench.classic_beat(self.joined):
            self._refused(code)

    def _refused(self, code: ErrorCode) -> None:
        self.forget()
        self.joined = None
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.id = ""

    def _got_joined(self, joined: Joined) -> None:
        if joined.code:
            self._refused(joined.code)
            return
        self.id, self.joined = joined.member_id, joined
        sync = Sync(
            waiter=Waiter[Synced](),
            generation=joined.generation,
            member_id=joined.member_id,
            instance_id=None,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=assignments_of(joined, self.storm.bench) if joined.members else {},
        )
        outcome = self.storm.bench.groups.sync(GROUP, sync)
        if isinstance(outcome, asyncio.Future):
            self.syncing = outcome
        else:
            self._got_synced(outcome)

    def _got_synced(self, synced: Synced) -> None:
        if synced.code:
            self._refused(synced.code)
        elif synced.assignment:
            found = decode_assignment(synced.assignment).assigned_partitions
            topic_id = self.storm.bench.id
            self.believes = {(topic_id(each.topic), at) for each in found for at in each.partitions}

    def leave(self) -> None:
        self.forget()
        if self.id and self.waiting is None and self.syncing is None:
            with contextlib.suppress(StoreFull):
                self.storm.bench.classic_leave((self.id, None))
            self.joined, self.id = None, ""

    def is_settled(self) -> bool:
        return self.joined is not None and self.waiting is None and self.syncing is None


def assignments_of(joined: Joined, bench: ConsumerBench) -> dict[str, bytes]:
    """What a leader gives to the members of a classic generation: one after the other in turn."""
    given: dict[str, dict[str, list[int]]] = {each.member_id: {} for each in joined.members}
    read = {each.member_id: decode_subscription(each.metadata).topics for each in joined.members}
    for name in sorted({topic for topics in read.values() for topic in topics}):
        topic = bench.topics.find(name)
        readers = [each for each, topics in read.items() if name in topics]
        for partition in range(topic.queue_count if topic is not None else 0):
            given[readers[partition % len(readers)]].setdefault(name, []).append(partition)
    return {
        member_id: encode_versioned(
            ConsumerProtocolAssignment(
                assigned_partitions=[
                    TopicPartition(topic=name, partitions=held) for name, held in topics.items()
                ]
            ),
            1,
        )
        for member_id, topics in given.items()
    }


class Storm:
    """Clients, the server, and what goes wrong."""

    def __init__(self, random: Random, *, has_classic: bool) -> None:
        self.random = random
        self.loss = LOSS
        self.tick = 0
        self.bench = ConsumerBench(a=5, b=3, c=2)
        self.clients: list[Client] = [
            ModernClient(self, f"modern-{at}", f"i{at}" if at % 3 == 0 else None) for at in range(6)
        ]
        if has_classic:
            self.clients += [ClassicClient(self, f"classic-{at}") for at in range(3)]

    async def run(self, ticks: int, faults: float) -> None:
        for _ in range(ticks):
            self.tick += 1
            self.bench.pass_time(TICK_MS)
            await asyncio.sleep(0)
            for client in self.clients:
                client.tick()
                self.check()
            if self.random.random() < faults:
                self.go_wrong()

    def go_wrong(self) -> None:
        random = self.random
        client = random.choice(self.clients)
        what = random.choice(["leave", "leave", "stall", "restart", "full", "topic", "modern"])
        if what == "leave":
            client.leave()
        elif what == "stall":
            client.is_stalled = not client.is_stalled
        elif what == "restart":
            self.bench.restart()
            for each in self.clients:
                if isinstance(each, ClassicClient):
                    each.restart()
        elif what == "full":
            journal = self.bench.journal
            journal.failure = None if journal.failure else StoreFull.__new__(StoreFull)
        elif what == "topic":
            topics = self.bench.topics
            if topics.find("c") is None:
                topics.put("c", 2)
            elif random.random() < 0.5:
                topics.drop("c")
        else:
            # Only classic members are left for a while.
            for each in self.clients:
                if isinstance(each, ModernClient):
                    each.leave()
                    each.next_tick = self.tick + 20

    def check(self) -> None:
        """No one believes to have what someone else has who is in the group."""
        group = self.bench.consumers.find(GROUP)
        classic = self.bench.groups.classic(GROUP)
        owners: dict[Partition, str] = {}
        for client in self.clients:
            known: object = None
            if group is not None:
                known = group.members.get(client.member_id)
            elif classic is not None:
                known = classic.members.find(client.member_id)
            if known is None:
                continue
            for place in client.believes:
                other = owners.setdefault(place, client.name)
                assert other == client.name, (
                    f"{self.bench.topics.name_of(place[0])}-{place[1]} has two owners, "
                    f"{other} and {client.name}"
                )

    async def migrate(self) -> None:
        """Have the group classic for a while, and then of the consumer protocol again."""
        await self.calm_down()
        assert GROUP in self.bench.consumers
        modern = [each for each in self.clients if isinstance(each, ModernClient)]
        for each in modern:
            each.go(-1)
            each.next_tick = self.tick + 30
        assert GROUP not in self.bench.consumers
        await self.run(40, 0)
        assert GROUP in self.bench.consumers
        self.loss = LOSS

    async def calm_down(self) -> None:
        self.loss = 0
        self.bench.journal.failure = None
        for client in self.clients:
            client.is_stalled = False
        if self.bench.topics.find("c") is None:
            self.bench.topics.put("c", 2)
        await self.run(CALM_TICKS, 0)

    def check_converged(self) -> None:
        assert self.bench.group.state is GroupState.STABLE
        assert all(client.is_settled() for client in self.clients)
        believed = [place for client in self.clients for place in client.believes]
        read = set()
        for client in self.clients:
            read |= set((client.names if isinstance(client, ModernClient) else "a b").split())
        counts = {"a": 5, "b": 3, "c": 2}
        wanted = {(self.bench.id(name), at) for name in read for at in range(counts[name])}
        assert sorted(believed) == sorted(wanted), "everything that is read has one reader"


@pytest.mark.parametrize("has_classic", [False, True])
@pytest.mark.row("GRP-2")
@pytest.mark.row("GRP-1")
async def test_one_owner_whatever_happens_and_everybody_converges(*, has_classic: bool) -> None:
    random = seeded()
    for _ in range(budget("consumer_group_storms")):
        storm = Storm(Random(random.random()), has_classic=has_classic)
        await storm.run(STORM_TICKS, 0.08)
        if has_classic:
            await storm.migrate()
            await storm.run(STORM_TICKS, 0.08)
        await storm.calm_down()
        storm.check_converged()
