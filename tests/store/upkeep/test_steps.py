"""Steps of upkeep: one that fails is counted, told and tried again, and no other notices."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import pairwise

import pytest
from tests.store.keeping import Keeping

from rockgate.store.clock import ManualClock
from rockgate.store.errors import DiskFailed, StoreFull
from rockgate.store.state.epochs import Assigned
from rockgate.store.upkeep.steps import LOGGED_EVERY_MS, PAUSE_MS, PAUSE_MS_MAX, Steps


class Counted:
    """A step that counts its calls, and fails on demand."""

    def __init__(self, has_more: bool = False) -> None:
        self.count = 0
        self.failure: Exception | None = None
        self.has_more = has_more

    def __call__(self) -> bool:
        self.count += 1
        if self.failure is not None:
            raise self.failure
        return self.has_more


def three(clock: ManualClock) -> tuple[Steps, list[Counted]]:
    steps, each = Steps(clock), [Counted(), Counted(), Counted()]
    for number, step in enumerate(each):
        steps.add(f"step {number}", step)
    return steps, each


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_whichever_step_fails_the_others_continue(failing: int) -> None:
    clock = ManualClock()
    steps, each = three(clock)
    each[failing].failure = ValueError("a bug")
    for _ in range(50):
        assert not steps.run()
        clock.advance(100)
    assert [step.count for step in each if step is not each[failing]] == [50, 50]
    assert 1 < each[failing].count < 10
    assert dict(steps.failures())[f"step {failing}"] == each[failing].count


def test_work_that_is_left_is_told_whoever_else_fails() -> None:
    clock = ManualClock()
    steps, each = three(clock)
    each[0].failure, each[2].has_more = StoreFull("no room"), True
    assert steps.run()


def test_a_step_that_fails_pauses_longer_up_to_a_bound_and_then_continues_by_itself() -> None:
    clock = ManualClock()
    steps, each = three(clock)
    each[1].failure = StoreFull("no room")
    at: list[int] = []
    for _ in range(3 * PAUSE_MS_MAX // 100):
        count = each[1].count
        steps.run()
        if each[1].count > count:
            at.append(clock.monotonic_ms())
        clock.advance(100)
    waits = [later - earlier for earlier, later in pairwise(at)]
    assert waits[:6] == [PAUSE_MS << number for number in range(5)] + [PAUSE_MS_MAX]
    each[1].failure = None
    clock.advance(PAUSE_MS_MAX)
    for _ in range(3):
        count = each[1].count
        steps.run()
        assert each[1].count == count + 1


def test_failures_are_reported_when_they_begin_once_a_minute_and_when_they_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    steps, each = three(clock)
    each[0].failure = StoreFull("no room")
    for _ in range(2 * LOGGED_EVERY_MS // 100):
        steps.run()
        clock.advance(100)
    told = [record.message for record in caplog.records]
    assert len(told) == 2
    assert told[0] == "upkeep failed step=step 0 failures=1: no room"
    assert not caplog.records[0].exc_info, "a full disk needs no traceback"
    each[0].failure = None
    clock.advance(PAUSE_MS_MAX)
    steps.run()
    assert "upkeep recovered step=step 0" in caplog.messages[-1]


def test_a_bug_is_reported_with_its_traceback_and_a_failed_disk_not_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    steps, each = three(clock)
    each[0].failure = ZeroDivisionError()
    each[1].failure = DiskFailed("log", OSError("gone"))
    steps.run()
    [told] = caplog.records
    assert told.exc_info and "ZeroDivisionError" in told.message
    assert [count for _, count in steps.failures()] == [1, 1, 0]


# The store's own


STORE_STEPS = ["epoch", "progress", "compaction", "checkpoint", "keys", "retention", "snapshot"]


def counting(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> dict[str, Counted]:
    """Replace what each of the store's steps calls."""
    store = keeping.store
    counted = {name: Counted() for name in STORE_STEPS}

    def put(owner: object, method: str, name: str) -> None:
        def called(*arguments: object, **named: object) -> bool:
            return counted[name]()

        monkeypatch.setattr(owner, method, called)

    put(store.progress, "step", "progress")
    put(store.checkpointer, "is_due", "checkpoint")
    put(store.retention, "step", "retention")
    put(store.cleaner, "step", "compaction")
    put(store.snapshotter, "tick", "snapshot")
    store.epochs.awaited = Assigned(9, bytes(8))
    monkeypatch.setattr("rockgate.store.upkeep.upkeep.begin_epoch", lambda *_: counted["epoch"]())
    put(store.key_feed, "step", "keys")
    return counted


@pytest.mark.parametrize("failing", STORE_STEPS)
@pytest.mark.parametrize("error", [StoreFull("no room"), OSError("bad"), AssertionError("bug")])
def test_each_step_of_a_store_may_fail_and_starves_no_other(
    failing: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping = Keeping(key_index=True, key_index_slots=10, key_index_entries=40)
    counted = counting(keeping, monkeypatch)
    assert [name for name, _ in keeping.store.steps.failures()] == STORE_STEPS
    counted[failing].failure = error
    for _ in range(20):
        keeping.store.upkeep()
        keeping.clock.advance(100)
    assert {name: step.count for name, step in counted.items() if name != failing} == (
        dict.fromkeys((name for name in STORE_STEPS if name != failing), 20)
    )
    assert counted[failing].count == 2


def test_a_checkpoint_whose_end_fails_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    keeping = Keeping()
    keeping.topic("orders")
    checkpointer = keeping.store.checkpointer
    fail: list[Callable[[], None]] = []
    real = keeping.store.queues.plan

    def plan(position: int) -> object:
        if not fail:
            fail.append(lambda: None)
            raise AssertionError("a bug")
        return real(position)

    monkeypatch.setattr(keeping.store.queues, "plan", plan)
    checkpointer.take()
    assert not checkpointer.is_running and isinstance(checkpointer.failure, AssertionError)
    checkpointer.take()
    assert checkpointer.failure is None
    assert checkpointer.position == keeping.store.log.end
