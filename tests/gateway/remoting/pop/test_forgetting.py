"""Windows that are not in use are forgotten, and there are never too many of them."""

from __future__ import annotations

import pytest
from tests.gateway.remoting.popworld import PopWorld

from rockgate.gateway.remoting.pop import acquirer, revival, starts
from rockgate.protocol.remoting.codes import RequestCode, ResponseCode
from rockgate.store.errors import StoreFull


def world(count: int = 3) -> PopWorld:
    made = PopWorld()
    for number in range(count):
        made.put(b"m%d" % number)
    return made


def bodies(found: list) -> list[bytes]:  # type: ignore[type-arg]
    return [each.body for each in found]


def rest(w: PopWorld, rounds: int = revival.QUIET_ROUNDS + 1) -> None:
    """Let a group be idle for that many rounds of commits."""
    for _ in range(rounds):
        w.commit()


async def test_groups_that_clients_invent_leave_no_windows() -> None:
    w = world()
    for number in range(50):
        for each in await w.pop(consumerGroup=f"g{number}"):
            await w.ack(each, f"g{number}")
    assert len(w.in_flight) == 50
    rest(w)
    assert len(w.in_flight) == 0
    w.kill()
    assert len(w.in_flight) == 0


async def test_a_group_continues_where_its_forgotten_window_ended() -> None:
    w = world()
    for each in await w.pop(maxMsgNums=2):
        await w.ack(each)
    rest(w)
    assert len(w.in_flight) == 0
    assert bodies(await w.pop()) == [b"m2"]


async def test_the_committed_offset_is_in_the_log_before_its_window_is_forgotten() -> None:
    w = world()
    for each in await w.pop(maxMsgNums=2):
        await w.ack(each)
    # The last commit is not written by itself: nothing else is done before the kill.
    window = w.window()
    window.quiet_rounds = revival.QUIET_ROUNDS
    w.clock.advance(revival.COMMIT_MS)
    assert not w.revival.commit()
    assert len(w.in_flight) == 0
    w.kill()
    assert len(w.in_flight) == 0
    assert bodies(await w.pop()) == [b"m2"]


async def test_a_window_in_use_stays() -> None:
    w = world(40)
    [held] = await w.pop(maxMsgNums=1, invisibleTime=3_600_000)
    rest(w)
    assert len(w.in_flight) == 1
    await w.ack(held)
    for _ in range(3):
        rest(w, revival.QUIET_ROUNDS)
        [each] = await w.pop(maxMsgNums=1)
        await w.ack(each)
    assert len(w.in_flight) == 1


async def test_where_a_new_group_began_is_not_forgotten() -> None:
    w = world(3)
    w.delete_records(1)
    assert await w.pop(initMode=1) == []
    rest(w)
    assert len(w.in_flight) == 0
    w.put(b"new")
    assert bodies(await w.pop(initMode=1)) == [b"new"]


async def test_an_offset_that_someone_else_committed_counts_after_a_window_was_forgotten() -> None:
    w = world(3)
    for each in await w.pop():
        await w.ack(each)
    w.commit()
    w.offsets.commit("group", w.queue(), 1, acknowledged=True)
    rest(w)
    assert len(w.in_flight) == 0
    assert bodies(await w.pop()) == [b"m1", b"m2"]


@pytest.mark.parametrize("fails", ["the commit", "the removal"])
async def test_a_window_that_cannot_be_forgotten_is_forgotten_later(fails: str) -> None:
    w = world()
    for each in await w.pop():
        await w.ack(each)
    rest(w, revival.QUIET_ROUNDS - 1)
    w.offsets.commit("group", w.queue(), 2, acknowledged=False)
    w.window().quiet_rounds = revival.QUIET_ROUNDS
    with pytest.MonkeyPatch.context() as failing:

        def full(*_: object, **__: object) -> int:
            raise StoreFull("the disk is full")

        if fails == "the commit":
            failing.setattr(w.store.progress, "settle", full)
        else:
            failing.setattr(w.store.appender, "append_state", full)
        w.clock.advance(revival.COMMIT_MS)
        with pytest.raises(StoreFull):
            w.revival.commit()
        assert len(w.in_flight) == 1
    rest(w, 2)
    assert len(w.in_flight) == 0
    assert bodies(await w.pop()) == [b"m2"]


async def test_beyond_the_most_windows_a_new_group_is_told_to_come_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    w = world()
    await w.pop(maxMsgNums=1)
    monkeypatch.setattr(starts, "WINDOWS_MAX", 1)
    answer = await w.answer(RequestCode.POP_MESSAGE, w.pop_fields(consumerGroup="other"))
    assert answer.code == ResponseCode.SYSTEM_BUSY
    assert "1 messages in flight in 1 windows" in (answer.remark or "")
    assert len(w.in_flight) == 1
    assert bodies(await w.pop()) == [b"m1", b"m2"], "who has a window goes on"


async def test_beyond_the_most_messages_in_flight_a_pop_waits_for_acknowledgements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    w = world()
    first, _ = await w.pop(maxMsgNums=2)
    for module in (starts, acquirer):
        monkeypatch.setattr(module, "MESSAGES_MAX", 2)
    answer = await w.answer(RequestCode.POP_MESSAGE, w.pop_fields())
    assert answer.code == ResponseCode.SYSTEM_BUSY
    await w.ack(first)
    assert bodies(await w.pop()) == [b"m2"]
