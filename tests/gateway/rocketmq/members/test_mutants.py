"""Each rule of membership is needed: without it a storm finds two leaders, or none for too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import pytest
from tests.gateway.rocketmq.members.observing import simulate
from tests.gateway.rocketmq.members.test_simulation import FAULTS
from tests.sdk.memorynet import run

from rockgate.gateway.rocketmq.cluster.brokers import QueueName
from rockgate.gateway.rocketmq.members import listing, membership, slots, terms
from rockgate.gateway.rocketmq.members.gateways import Gateway
from rockgate.gateway.rocketmq.members.locks import BrokerLocks
from rockgate.gateway.rocketmq.members.roster import Roster
from rockgate.gateway.rocketmq.members.terms import LeaderTerms

pytestmark = pytest.mark.long
STORMS = 60
Patch = Callable[[pytest.MonkeyPatch], None]


def no_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(terms, "WAIT_S", 0.0)


def long_lingering(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(terms, "LINGER_S", 3.0)


def no_loss(patch: pytest.MonkeyPatch) -> None:
    """Neither a lost connection nor an old view ends anything."""
    patch.setattr(terms, "FENCE_S", 1e9)
    patch.setattr(membership.Membership, "lost", lambda self, broker: None)


def no_jump(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(terms, "JUMP_S", 1e9)
    patch.setattr(terms, "FENCE_S", 1e9)


def hasty_silence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(listing, "SILENT_MS", 3_100)


def no_silence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(listing, "SILENT_MS", 1 << 60)


def free_locks_of_all(patch: pytest.MonkeyPatch) -> None:
    def everybody(self: LeaderTerms, listed: object) -> list[Gateway]:
        return list(self._known)

    patch.setattr(LeaderTerms, "gone", everybody)


def no_lock(patch: pytest.MonkeyPatch) -> None:
    def serves(self: slots.Slots, queue: QueueName) -> bool:
        return self._terms.lease(queue).is_served

    patch.setattr(slots.Slots, "serves", serves)


def any_view(patch: pytest.MonkeyPatch) -> None:
    """Who leads is chosen among the gateways of all brokers."""
    seen = LeaderTerms.seen

    def seen_by_any(self: LeaderTerms, broker: str, found: Iterable[Gateway], at: float) -> None:
        seen(self, broker, sorted({*found, *self.all_gateways()}), at)

    patch.setattr(LeaderTerms, "seen", seen_by_any)


def quiet_return(patch: pytest.MonkeyPatch) -> None:
    """Who was away for a while does not leave the group before it joins again."""

    async def stays(self: membership._Rounds) -> None:
        await asyncio.sleep(0)

    patch.setattr(membership._Rounds, "leave", stays)


def gone_by_the_view(patch: pytest.MonkeyPatch) -> None:
    """Who is gone comes from the last view, which may lack who joined since."""

    async def free(self: BrokerLocks, broker: str, queues: set[QueueName]) -> set[QueueName]:
        listed = self._terms.gateways(broker)
        for each in self._terms.gone(listed) if listed else []:
            await self.unlock(broker, queues, each)
        return await self.lock(broker, queues)

    patch.setattr(BrokerLocks, "_free", free)


def no_roster(patch: pytest.MonkeyPatch) -> None:
    """Only who was listed is known: a lock of another waits for its end."""

    async def nothing(self: Roster) -> bool:
        await asyncio.sleep(0)
        return False

    patch.setattr(Roster, "has_more", nothing)
    patch.setattr(Roster, "look", nothing)


MUTANTS: list[Patch] = [
    no_wait,
    long_lingering,
    no_loss,
    no_jump,
    hasty_silence,
    no_silence,
    free_locks_of_all,
    no_lock,
    any_view,
    quiet_return,
    gone_by_the_view,
    no_roster,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.__name__)
def test_without_a_rule_a_storm_finds_what_it_prevents(
    mutant: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    for seed in range(STORMS):
        try:
            seen = run(simulate(seed, faults=FAULTS, note=lambda _: None))
        except AssertionError:
            return
        if seen.twice or seen.headless:
            return
    raise AssertionError(f"{STORMS} storms found nothing")
