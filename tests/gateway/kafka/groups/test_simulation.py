"""Groups on a virtual clock: clients come, go, die, stall and come back; the server restarts.

Whatever happens, no partition has two owners in one generation, assigned generations only grow, no
request waits forever, and when the faults end the group is stable with those who are left.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import cast

import pytest
from tests.budget import budget
from tests.seeds import seeded

from rockgate.gateway.kafka.groups.classic.events import (
    Answer,
    Arm,
    Event,
    GroupState,
    Join,
    Joined,
    Leave,
    Leaver,
    MemberHeartbeat,
    Reply,
    Sync,
    Synced,
    Wake,
)
from rockgate.gateway.kafka.groups.classic.group import ClassicGroup
from rockgate.gateway.kafka.groups.classic.group_record import pack, unpack
from rockgate.gateway.kafka.groups.classic.memory import saved_of
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.protocol.kafka.errors import ErrorCode

PARTITIONS = 12
SESSION_MS = 10_000
REBALANCE_MS = 30_000
BEAT_MS = 3_000
STORM_MS = 400_000
CALM_MS = 200_000
REJOIN = {
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.NOT_COORDINATOR,
}


class Waiting:
    """A request of one client that is on its way."""

    def __init__(self, client: Client, life: int, told: Callable[[Answer], None]) -> None:
        self.client, self.life, self.told = client, life, told


class Simulated:
    """Time, the server with its one group, and what every generation was assigned."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now_ms = 0
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.order = count()
        self.ids = count(1)
        self.lives = 0
        self.outstanding: set[Waiting] = set()
        self.owners: dict[int, dict[int, str]] = {}
        self.last_assigned = 0
        self.saved = b""
        self.wake_ms = -1
        self.start()

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        heapq.heappush(self.queue, (self.now_ms + delay_ms, next(self.order), what))

    def run(self, until_ms: int) -> None:
        while self.queue and self.queue[0][0] <= until_ms:
            self.now_ms, _, what = heapq.heappop(self.queue)
            what()
        self.now_ms = until_ms

    # The server

    def start(self) -> None:
        self.lives += 1
        config = GroupsConfig()
        self.group = ClassicGroup(config, lambda prefix: f"{prefix}-{next(self.ids)}")
        if self.saved:
            self.carry_out(self.group.restore(unpack(self.saved), self.now_ms, is_changed=False))

    def restart(self) -> None:
        """What was not written down is lost, and so is every connection."""
        lost, self.outstanding = self.outstanding, set()
        self.start()
        for waiting in lost:
            waiting.client.disconnected(waiting.life)

    def happen(self, event: Event) -> None:
        self.carry_out(self.group.handle(event, self.now_ms))

    def carry_out(self, effects: object) -> None:
        told = []
        for effect in cast(list[object], effects):
            if isinstance(effect, Reply):
                told.append(effect)
            elif isinstance(effect, Arm):
                self.arm(effect.at_ms)
            else:
                self.saved = pack(saved_of(self.group))
                self.check_assignment()
        for reply in told:
            waiting = cast(Waiting, reply.waiter)
            assert waiting in self.outstanding, "each is answered once"
            self.outstanding.remove(waiting)
            # The answer travels for a while.
            answer = reply.answer
            self.later(
                self.random.randint(0, 50),
                lambda waiting=waiting, answer=answer: waiting.client.answered(waiting, answer),  # type: ignore[misc]
            )

    def arm(self, at_ms: int) -> None:
        self.wake_ms = at_ms
        life = self.lives

        def wake() -> None:
            # An alarm that was set anew, or of another life of the server, does not ring.
            if self.wake_ms == at_ms and self.lives == life:
                self.happen(Wake())

        self.later(max(0, at_ms - self.now_ms), wake)

    def check_assignment(self) -> None:
        if self.group.state is not GroupState.STABLE:
            return
        generation = self.group.generation
        assert generation >= self.last_assigned, "generations only grow"
        self.last_assigned = generation
        owners: dict[int, str] = {}
        for member in self.group.members:
            for partition in member.assignment:
                assert partition not in owners, "a partition has one owner in a generation"
                owners[partition] = member.instance_id or member.id
        known = self.owners.setdefault(generation, owners)
        # A static member that is back has another id, and the same assignment.
        assert known == owners, "a generation has one assignment"

    def ask(
        self, client: Client, make: Callable[[object], Event], told: Callable[[Answer], None]
    ) -> None:
        waiting = Waiting(client, client.life, told)
        self.outstanding.add(waiting)
        self.happen(make(waiting))


class Client:
    """A consumer of few words: joins, syncs, sends heartbeats, joins again when told to."""

    def __init__(self, world: Simulated, number: int) -> None:
        self.world = world
        self.instance = f"i{number}" if number % 3 == 0 else None
        self.is_up = False
        self.life = 0
        self.member_id = ""
        self.generation = -1
        self.partitions = b""
        self.version = number
        self.is_stable = False

    def up(self) -> None:
        if not self.is_up:
            self.is_up = True
            self.life += 1
            self.member_id, self.generation, self.is_stable = "", -1, False
            self.join()

    def die(self) -> None:
        """Be gone without a word."""
        self.is_up = self.is_stable = False
        self.life += 1

    def leave(self) -> None:
        if self.is_up and self.member_id:
            leaver = Leaver(self.member_id, self.instance)
            self.world.ask(self, lambda w: Leave(waiter=w, leavers=[leaver]), lambda answer: None)
        self.die()

    def resubscribe(self) -> None:
        self.version += 100
        if self.is_stable:
            self.join()

    def disconnected(self, life: int) -> None:
        if life == self.life and self.is_up:
            self.join()

    def answered(self, waiting: Waiting, answer: Answer) -> None:
        if waiting.life == self.life and self.is_up:
            waiting.told(answer)

    def join(self) -> None:
        self.is_stable = False
        metadata = self.version.to_bytes(4, "big")
        self.world.ask(
            self,
            lambda w: Join(
                waiter=w,
                member_id=self.member_id,
                instance_id=self.instance,
                client_id="c",
                client_host="/h",
                session_ms=SESSION_MS,
                rebalance_ms=REBALANCE_MS,
                protocol_type="consumer",
                protocols=(("range", metadata), ("sticky", metadata)),
                needs_id=self.version % 2 == 0,
                can_skip=self.version % 5 == 0,
            ),
            self.joined,
        )

    def joined(self, answer: Answer) -> None:
        assert isinstance(answer, Joined)
        if answer.code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.join()
            return
        if answer.code:
            self.failed(answer.code)
            return
        self.member_id, self.generation = answer.member_id, answer.generation
        assignments: dict[str, bytes] = {}
        if answer.leader == answer.member_id and not answer.is_skipping:
            ids = [each.member_id for each in answer.members]
            for at, member_id in enumerate(ids):
                assignments[member_id] = bytes(range(at, PARTITIONS, len(ids)))
        # Some take long to work it out.
        slow = self.world.random.random() < 0.02
        life, generation = self.life, self.generation
        self.world.later(
            self.world.random.randint(0, 40_000 if slow else 200),
            lambda: self.sync(assignments) if self.is_in(life, generation) else None,
        )

    def is_in(self, life: int, generation: int) -> bool:
        return self.is_up and life == self.life and generation == self.generation

    def sync(self, assignments: dict[str, bytes]) -> None:
        self.world.ask(
            self,
            lambda w: Sync(
                waiter=w,
                generation=self.generation,
                member_id=self.member_id,
                instance_id=self.instance,
                protocol_type=None,
                protocol_name=None,
                assignments=assignments,
            ),
            self.synced,
        )

    def synced(self, answer: Answer) -> None:
        assert isinstance(answer, Synced)
        if answer.code:
            self.failed(answer.code)
            return
        self.partitions = answer.assignment
        self.is_stable = True
        self.plan_beat()

    def plan_beat(self) -> None:
        life, generation = self.life, self.generation
        stalled = self.world.random.random() < 0.005
        self.world.later(
            SESSION_MS * 2 if stalled else BEAT_MS,
            lambda: self.beat() if self.is_in(life, generation) and self.is_stable else None,
        )

    def beat(self) -> None:
        self.world.ask(
            self,
            lambda w: MemberHeartbeat(
                waiter=w,
                generation=self.generation,
                member_id=self.member_id,
                instance_id=self.instance,
            ),
            self.beaten,
        )

    def beaten(self, answer: Answer) -> None:
        code = cast(ErrorCode, answer)
        if code:
            self.failed(code)
        elif self.is_stable:
            self.plan_beat()

    def failed(self, code: ErrorCode) -> None:
        self.is_stable = False
        if code is ErrorCode.FENCED_INSTANCE_ID:
            # Another has this place now; a real client would stop.
            self.die()
            return
        if code not in REJOIN:
            assert code is ErrorCode.UNKNOWN_MEMBER_ID, code
            self.member_id = ""
        self.generation = -1
        life = self.life
        self.world.later(
            self.world.random.randint(0, 100),
            lambda: self.join() if self.is_up and life == self.life else None,
        )


def storm(world: Simulated, clients: list[Client]) -> None:
    random = world.random
    while world.now_ms < STORM_MS:
        world.run(world.now_ms + random.choice((10, 100, 1_000, 10_000)))
        client = random.choice(clients)
        what = random.random()
        if what < 0.5:
            client.up()
        elif what < 0.65:
            client.leave()
        elif what < 0.85:
            client.die()
        elif what < 0.95:
            client.resubscribe()
        else:
            world.restart()


@pytest.mark.parametrize("round_number", range(budget("group_storms")))
def test_a_group_comes_to_rest_after_whatever_happened(round_number: int) -> None:
    random = seeded()
    world = Simulated(random)
    clients = [Client(world, number) for number in range(random.randint(1, 9))]
    storm(world, clients)
    for client in clients[: random.randint(0, len(clients))]:
        client.up()
    world.random = _Calm()
    world.run(world.now_ms + CALM_MS)

    live = [client for client in clients if client.is_up]
    group = world.group
    assert group.state is (GroupState.STABLE if live else GroupState.EMPTY)
    assert {member.id for member in group.members} == {client.member_id for client in live}
    assert all(client.is_stable and client.generation == group.generation for client in live)
    owned = sorted(partition for client in live for partition in client.partitions)
    assert owned == (list(range(PARTITIONS)) if live else [])
    assert {waiting for waiting in world.outstanding if waiting.client.is_up} == set()
    assert not world.outstanding, "nobody waits for ever"


class _Calm(Random):
    """Nothing is slow from now on."""

    def random(self) -> float:
        return 1.0

    def randint(self, a: int, b: int) -> int:
        return a
