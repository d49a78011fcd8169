"""Streams groups on a virtual clock: members come, go, die, stall and lose answers; the server
restarts, and fails to write; topics come and go.

Whatever happens, no active task is computed by two members unless one of them is out of the group
already, and when the faults end every task has a member, and standbys are where they should be.
"""

from __future__ import annotations

import contextlib
from random import Random
from typing import Any

import pytest
from tests.budget import budget
from tests.gateway.kafka.groups.streams.bench import COUNTS, GROUP, StreamsBench
from tests.seeds import seeded

from rockgate.gateway.kafka.groups.classic.events import GroupState
from rockgate.gateway.kafka.groups.streams.heartbeats import StreamsOutcome
from rockgate.gateway.kafka.request.errors import RequestError
from rockgate.protocol.kafka.errors import ErrorCode
from rockgate.store.errors import StoreFull

Task = tuple[str, int]
TICK_MS = 1_000
BEAT_TICKS = 5
STORM_TICKS = 400
CALM_TICKS = 200
LOSS = 0.1
PARTITIONS = 5


class Client:
    """A member as its application sees it: the tasks that it believes to have."""

    def __init__(self, storm: Storm, name: str, process: str) -> None:
        self.storm, self.name, self.process = storm, name, process
        self.active: set[Task] = set()
        self.standby: set[Task] = set()
        self.epoch = 0
        self.lives = 0
        self.is_unsure = True
        self.is_stalled = False
        self.next_tick = storm.random.randint(0, BEAT_TICKS)

    @property
    def member_id(self) -> str:
        return f"{self.name}.{self.lives}"

    def tick(self) -> None:
        if not self.is_stalled and self.storm.tick >= self.next_tick:
            self.next_tick = self.storm.tick + BEAT_TICKS
            self.act()

    def act(self) -> None:
        bench = self.storm.bench
        try:
            if self.epoch == 0:
                outcome = bench.join(
                    self.member_id, COUNTS, process_id=self.process, rebalance_ms=30_000
                )
            elif self.is_unsure:
                owned: dict[str, Any] = {"active": of(self.active), "standby": of(self.standby)}
                outcome = bench.beat(self.member_id, self.epoch, **owned)
            else:
                outcome = bench.beat(self.member_id, self.epoch)
        except RequestError as error:
            # A task that the topology lost is refused once, until the answer that takes it away.
            self.forget()
            assert error.code is not ErrorCode.GROUP_ID_NOT_FOUND
            return
        except StoreFull:
            self.is_unsure = True
            return
        bench.create_missing(outcome)
        if self.storm.random.random() < self.storm.loss:
            self.is_unsure = True
            return
        self.take(outcome)

    def take(self, outcome: StreamsOutcome) -> None:
        self.epoch = outcome.epoch
        self.is_unsure = False
        if outcome.assigned is None:
            return
        tasks = outcome.assigned.without_epochs()
        active = {(each, at) for each, parts in tasks.active.items() for at in parts}
        standby = {(each, at) for each, parts in tasks.standby.items() for at in parts}
        if (self.active - active) or (self.standby - standby):
            # It says that it has given up, without waiting for the next beat.
            self.is_unsure = True
            self.next_tick = self.storm.tick + self.storm.random.randint(1, 3)
        self.active, self.standby = active, standby

    def leave(self) -> None:
        if self.epoch:
            with contextlib.suppress(RequestError, StoreFull):
                self.storm.bench.beat(self.member_id, -1)
        self.forget()
        self.lives += 1

    def forget(self) -> None:
        self.active, self.standby = set(), set()
        self.epoch, self.is_unsure = 0, True


def of(tasks: set[Task]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for subtopology, partition in tasks:
        found.setdefault(subtopology, set()).add(partition)
    return found


class Storm:
    """Clients, the server, and what goes wrong."""

    def __init__(self, random: Random, standbys: int) -> None:
        self.random = random
        self.loss = LOSS
        self.tick = 0
        self.bench = StreamsBench(None, **{"in": PARTITIONS})
        self.bench.configs[GROUP] = {"streams.num.standby.replicas": str(standbys)}
        self.clients = [Client(self, f"m{at}", f"p{at // 2}") for at in range(6)]

    def run(self, ticks: int, faults: float) -> None:
        for _ in range(ticks):
            self.tick += 1
            self.bench.pass_time(TICK_MS)
            for client in self.clients:
                client.tick()
                self.check()
            if self.random.random() < faults:
                self.go_wrong()

    def go_wrong(self) -> None:
        random, topics = self.random, self.bench.topics
        client = random.choice(self.clients)
        what = random.choice(["leave", "leave", "stall", "restart", "full", "topic", "all"])
        if what == "leave":
            client.leave()
        elif what == "stall":
            client.is_stalled = not client.is_stalled
        elif what == "restart":
            self.bench.restart()
        elif what == "full":
            journal = self.bench.journal
            journal.failure = None if journal.failure else StoreFull.__new__(StoreFull)
        elif what == "topic":
            if topics.find("in") is None:
                topics.put("in", PARTITIONS)
            else:
                topics.drop("in")
        else:
            for each in self.clients:
                each.leave()

    def check(self) -> None:
        """No active task is with two members that are both in the group."""
        machine = self.bench.streams.machine(GROUP)
        members = {} if machine is None else machine.group.members
        owners: dict[Task, str] = {}
        for client in self.clients:
            if client.member_id in members:
                for task in client.active:
                    other = owners.setdefault(task, client.name)
                    assert other == client.name, f"{task}: {other} and {client.name}"

    def calm_down(self) -> None:
        self.loss = 0
        self.bench.journal.failure = None
        for client in self.clients:
            client.is_stalled = False
        if self.bench.topics.find("in") is None:
            self.bench.topics.put("in", PARTITIONS)
        self.run(CALM_TICKS, 0)

    def check_converged(self, standbys: int) -> None:
        assert self.bench.group.state is GroupState.STABLE
        wanted = [(each, at) for each in "01" for at in range(PARTITIONS)]
        assert sorted(task for each in self.clients for task in each.active) == wanted
        assert all(each.active for each in self.clients), "no member is without a task"
        copies = [task for each in self.clients for task in each.standby]
        assert len(copies) == standbys * PARTITIONS
        for process in {each.process for each in self.clients}:
            there = [each for each in self.clients if each.process == process]
            held = [task for each in there for task in (*each.active, *each.standby)]
            assert len(held) == len(set(held)), "a process has a task once"


@pytest.mark.parametrize("standbys", [0, 1])
@pytest.mark.row("GRP-12")
@pytest.mark.row("GRP-11")
def test_one_active_owner_whatever_happens_and_every_task_is_computed(standbys: int) -> None:
    random = seeded()
    for _ in range(budget("streams_group_storms")):
        storm = Storm(Random(random.random()), standbys)
        storm.run(STORM_TICKS, 0.08)
        storm.calm_down()
        storm.check_converged(standbys)


def test_nothing_moves_in_a_group_that_only_restarts() -> None:
    storm = Storm(seeded(), 0)
    storm.loss = 0
    storm.run(60, 0)
    before = {each.name: set(each.active) for each in storm.clients}
    for _ in range(5):
        storm.bench.restart()
        storm.run(20, 0)
    assert {each.name: each.active for each in storm.clients} == before
