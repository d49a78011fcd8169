"""Which pulls are held, and for how long: by a clock that stands still until it is turned."""

from typing import Any

import pytest
from tests.gateway.fakes import turns
from tests.gateway.remoting.client import messages
from tests.gateway.remoting.pullworld import PullWorld

from rockgate.protocol.remoting.codes import ResponseCode

SUSPEND = 2 | 4
HOLD: dict[str, Any] = {"sysFlag": SUSPEND, "suspendTimeoutMillis": 15_000}


@pytest.mark.row("LP-3")
async def test_a_pull_at_the_end_is_held_if_it_asks_for_that() -> None:
    world = PullWorld()
    world.put(b"old")
    told = await world.begin(1, **HOLD)
    assert not told.done()
    world.put(b"new")
    await turns()
    assert [message.body for message in messages(told.result())] == [b"new"]


@pytest.mark.row("LP-11")
async def test_a_message_stored_right_behind_a_pull_ends_its_hold() -> None:
    world = PullWorld()
    told = world.send(0, **HOLD)
    world.put(b"in the same turn")
    await turns()
    assert [message.body for message in messages(told.result())] == [b"in the same turn"]
    assert len(world.poll_registry) == 0


@pytest.mark.row("LP-3")
@pytest.mark.parametrize(
    ("offset", "changes", "code"),
    [
        pytest.param(1, {"sysFlag": 4}, ResponseCode.PULL_NOT_FOUND, id="not asked for"),
        pytest.param(1, {"suspendTimeoutMillis": 0}, ResponseCode.PULL_NOT_FOUND, id="no time"),
        pytest.param(9, {}, ResponseCode.PULL_OFFSET_MOVED, id="beyond the end"),
        pytest.param(-1, {}, ResponseCode.PULL_OFFSET_MOVED, id="before the start"),
        pytest.param(
            0, {"subscription": "B"}, ResponseCode.PULL_RETRY_IMMEDIATELY, id="nothing wanted"
        ),
        pytest.param(0, {}, ResponseCode.SUCCESS, id="found"),
    ],
)
async def test_every_other_pull_is_answered_at_once(
    offset: int, changes: dict[str, Any], code: ResponseCode
) -> None:
    world = PullWorld()
    world.put(b"old", "A")
    told = await world.begin(offset, **{**HOLD, **changes})
    assert told.done() and told.result().code == code
    assert len(world.poll_registry) == 0 and world.hand.timers == []


@pytest.mark.row("H-02")
@pytest.mark.row("LP-4")
@pytest.mark.row("LP-10")
@pytest.mark.parametrize("asked_ms", [15_000, 20_000, 50])
async def test_a_pull_is_held_exactly_as_long_as_it_asks(asked_ms: int) -> None:
    world = PullWorld()
    told = await world.begin(0, **{**HOLD, "suspendTimeoutMillis": asked_ms})
    world.hand.advance(asked_ms / 1_000 - 0.001)
    await turns()
    assert not told.done()
    world.hand.advance(0.001)
    await turns()
    answer = told.result()
    assert (answer.code, answer.fields["nextBeginOffset"]) == (ResponseCode.PULL_NOT_FOUND, "0")


@pytest.mark.row("LP-2")
@pytest.mark.parametrize(("most_ms", "held_ms"), [(1_000, 1_000), (0, 0)])
async def test_no_pull_is_held_longer_than_the_setting(most_ms: int, held_ms: int) -> None:
    world = PullWorld(suspend_ms_max=most_ms)
    told = await world.begin(0, **HOLD)
    if held_ms:
        world.hand.advance(held_ms / 1_000 - 0.001)
        await turns()
        assert not told.done()
        world.hand.advance(0.001)
        await turns()
    assert told.result().code == ResponseCode.PULL_NOT_FOUND


@pytest.mark.row("LP-6")
@pytest.mark.row("BPULL-3")
async def test_a_read_that_fails_is_a_system_error_for_its_own_pull_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = PullWorld()
    failing = await world.begin(0, **HOLD, subscription="A")
    other = await world.begin(0, **HOLD)
    plain = world.puller.pull

    def pull(queue: Any, offset: int, wanted: Any, *more: Any) -> Any:
        if wanted.accepts_code is not None:
            raise ZeroDivisionError("a bug")
        return plain(queue, offset, wanted, *more)

    monkeypatch.setattr(world.puller, "pull", pull)
    world.put(b"news", "A")
    await turns()
    assert failing.result().code == ResponseCode.SYSTEM_ERROR
    assert [message.body for message in messages(other.result())] == [b"news"]
    at_once = await world.begin(0, subscription="A")
    assert at_once.result().code == ResponseCode.SYSTEM_ERROR


@pytest.mark.row("BPULL-3")
async def test_a_read_that_fails_later_is_a_system_error_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = PullWorld()
    world.put(b"cold")

    async def later() -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(world.puller, "pull", lambda *what: later())
    told = await world.begin(0)
    assert told.result().code == ResponseCode.SYSTEM_ERROR
