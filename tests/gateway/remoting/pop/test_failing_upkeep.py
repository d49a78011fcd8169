"""Upkeep of pop on a full and on a failed disk: each step by itself, while the others continue."""

from __future__ import annotations

import pytest
from tests.gateway.fakes import turns
from tests.gateway.remoting.popworld import PopWorld

from rockgate.gateway.remoting.pop import revival
from rockgate.store.errors import DiskFailed, StoreError, StoreFull
from rockgate.store.inflight.changes import InFlightChangeKind
from rockgate.store.upkeep.steps import Steps

ERRORS = [StoreFull("the disk is full"), DiskFailed("a segment", OSError(5, "Input/output error"))]
RETRY = "%RETRY%group_orders"


class Tended(PopWorld):
    """A world whose three steps of upkeep run in rounds, and of which one appends in vain.

    The group `group` holds a message that expires, `far` a window that has yet to follow the clock,
    and `done` has acknowledged everything.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failing: str | None = None
        self.error: StoreError = ERRORS[0]
        append_state, group, commit = (
            self.store.appender.append_state,
            self.store.appender.group,
            self.store.progress.commit,
        )

        def state(topic: bytes, body: bytes, **more: bool) -> int:
            if body[1] == InFlightChangeKind.SHIFT:
                self._check("pop-clock")
            return append_state(topic, body, **more)

        def moved(intakes, **more):  # type: ignore[no-untyped-def]
            self._check("pop-expiry")
            return group(intakes, **more)

        def committed(*arguments, **more):  # type: ignore[no-untyped-def]
            self._check("pop-progress")
            return commit(*arguments, **more)

        vars(self.store.appender).update(append_state=state, group=moved)
        vars(self.store.progress).update(commit=committed)
        self.steps = Steps(self.store.clock)
        self.steps.add("pop-expiry", self.revival.expire)
        self.steps.add("pop-progress", self.revival.commit)
        self.steps.add("pop-clock", self.clock_steps.follow)

    def _check(self, name: str) -> None:
        if self.failing == name:
            raise self.error

    async def begin(self) -> None:  # type: ignore[override]
        self.put(b"m")
        await self.pop(consumerGroup="far", invisibleTime=7_200_000)
        self.clock.step(-3_600_000)
        await self.pop()
        for each in await self.pop(consumerGroup="done"):
            await self.ack(each, "done")

    async def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(1_000)
            while self.steps.run():
                pass
            await turns()

    def achieved(self) -> set[str]:
        """The steps whose work is done."""
        topic = self.store.topics.find(RETRY)
        found = set()
        if topic is not None and self.entries(RETRY):
            found.add("pop-expiry")
        if self.committed(group="done") == 1:
            found.add("pop-progress")
        if self.window(group="far").followed_ms == self.in_flight.clock_ms:
            found.add("pop-clock")
        return found


@pytest.mark.parametrize("error", ERRORS, ids=["full", "failed"])
@pytest.mark.parametrize("name", ["pop-expiry", "pop-progress", "pop-clock"])
async def test_a_step_that_cannot_append_holds_up_no_other_and_is_made_up_for(
    name: str, error: StoreError
) -> None:
    w = Tended()
    w.failing, w.error = name, error
    await w.begin()
    await w.run(90)
    assert w.achieved() == {"pop-expiry", "pop-progress", "pop-clock"} - {name}
    w.failing = None
    await w.run(60)
    assert w.achieved() == {"pop-expiry", "pop-progress", "pop-clock"}
    assert [each.body for each in await w.pop()] == [b"m"]


async def test_nothing_of_a_failed_step_is_there_after_a_crash() -> None:
    w = Tended()
    w.failing = "pop-expiry"
    await w.begin()
    await w.run(90)
    w.kill()
    assert w.in_flight.count == 2, "neither moved nor lost"
    await w.expire(revival.REFUSED_MS)
    assert [each.body for each in await w.pop()] == [b"m"]
