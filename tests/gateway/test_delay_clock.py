"""Clocks that are set: times of day follow the wall clock, delays follow the time that passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import pytest
from tests.gateway.kafka import world as world_of_kafka
from tests.gateway.kafka.delayed import Postponing
from tests.gateway.remoting.messages.test_delay import DelayWorld

from rockgate.gateway.delay.headers import Terms
from rockgate.gateway.delay.levels import read_levels
from rockgate.gateway.remoting.server.config import RemotingConfig
from rockgate.store.clock import ManualClock

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
BELIEVED_MS: Final = 5 * MINUTE_MS
AT = pytest.mark.parametrize("name", ["TIMER_DELIVER_MS", "__STARTDELIVERTIME"])
AFTER = pytest.mark.parametrize(
    ("name", "value", "delay_ms"),
    [
        ("DELAY", "18", 2 * HOUR_MS),
        ("TIMER_DELAY_SEC", "7200", 2 * HOUR_MS),
        ("TIMER_DELAY_MS", "5400001", 5_400_001),
    ],
)


class Listener(Protocol):
    """One side of the server, to which something is sent that waits."""

    clock: ManualClock

    def put_off(self, body: bytes, marks: Mapping[str, str]) -> None: ...

    def came(self) -> list[bytes]: ...

    def restart(self, how: str) -> None: ...

    def pass_time(self, milliseconds: int) -> None: ...


class RocketmqListener(DelayWorld):
    def put_off(self, body: bytes, marks: Mapping[str, str]) -> None:
        self.send(marks, body)

    def restart(self, how: str) -> None:
        if how == "kill":
            self.kill()
        else:
            self.reopen()


class KafkaConnections(Postponing):
    def put_off(self, body: bytes, marks: Mapping[str, str]) -> None:
        self.put((b"now", {}), (body, dict(marks)))

    def came(self) -> list[bytes]:
        return [value for value in self.values() if value != b"now"]

    def restart(self, how: str) -> None:
        if how == "kill":
            self.kill()
        else:
            self.reopen()


@pytest.fixture(params=["rocketmq", "kafka"])
def listener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Listener:
    if request.param == "rocketmq":
        return RocketmqListener()
    levels_ms = read_levels(RemotingConfig().delay_levels)
    monkeypatch.setattr(world_of_kafka, "TERMS", Terms(levels_ms, 365 * DAY_MS))
    world = KafkaConnections()
    world.mixed(message_timestamp_type="LogAppendTime")
    return world


def pass_time(listener: Listener, milliseconds: int, parts: int = 10) -> None:
    """Let time pass in steps, as a server looks again and again."""
    for part in range(parts):
        listener.pass_time(milliseconds * (part + 1) // parts - milliseconds * part // parts)


def comes_after(listener: Listener, milliseconds: int) -> None:
    """The delayed message is due after exactly that time, and not a millisecond sooner."""
    pass_time(listener, milliseconds - 1)
    assert listener.came() == []
    listener.pass_time(1)
    assert listener.came() == [b"one"]


def at(listener: Listener, name: str, milliseconds: int) -> None:
    """Send something for a time of day, so far from what the wall clock says."""
    listener.put_off(b"one", {name: str(listener.clock.now_ms() + milliseconds)})


# A clock that was a day ahead at the start, and is set back


@AT
def test_a_time_of_day_is_kept_at_once_when_a_wrong_clock_was_set_back(
    listener: Listener, name: str
) -> None:
    listener.clock.step(DAY_MS)
    listener.restart("clean")
    listener.pass_time(1_000)
    listener.clock.step(-DAY_MS)
    listener.pass_time(0)
    at(listener, name, 2 * HOUR_MS)
    listener.pass_time(0)
    comes_after(listener, 2 * HOUR_MS)


@AT
def test_what_waits_for_a_time_of_day_moves_with_a_clock_that_is_set_back(
    listener: Listener, name: str
) -> None:
    at(listener, name, 2 * HOUR_MS)
    listener.pass_time(HOUR_MS)
    listener.clock.step(-DAY_MS)
    comes_after(listener, DAY_MS + HOUR_MS)


@AT
@pytest.mark.parametrize("how", ["clean", "kill"])
def test_a_time_of_day_is_kept_over_a_restart_with_a_clock_that_was_set_back(
    listener: Listener, name: str, how: str
) -> None:
    listener.clock.step(DAY_MS)
    listener.restart(how)
    at(listener, name, -DAY_MS + HOUR_MS)
    listener.clock.step(-DAY_MS)
    listener.pass_time(0)
    listener.restart(how)
    comes_after(listener, HOUR_MS)


@AT
def test_a_clock_that_is_back_for_a_second_delays_nothing(listener: Listener, name: str) -> None:
    at(listener, name, 3_000)
    listener.clock.step(-DAY_MS)
    listener.pass_time(1_000)
    listener.clock.step(DAY_MS)
    comes_after(listener, 2_000)


# A clock that is a day ahead


@AT
def test_a_clock_that_is_a_day_ahead_for_a_second_releases_nothing(
    listener: Listener, name: str
) -> None:
    at(listener, name, HOUR_MS)
    listener.clock.step(DAY_MS)
    listener.pass_time(1_000)
    assert listener.came() == []
    listener.clock.step(-DAY_MS)
    comes_after(listener, HOUR_MS - 1_000)


@AT
def test_a_clock_that_is_a_day_ahead_for_good_is_believed_after_five_minutes(
    listener: Listener, name: str
) -> None:
    at(listener, name, HOUR_MS)
    listener.clock.step(DAY_MS)
    listener.pass_time(0)
    comes_after(listener, BELIEVED_MS)


@AT
def test_of_a_clock_that_is_ahead_for_good_later_times_of_day_are_exact(
    listener: Listener, name: str
) -> None:
    listener.clock.step(DAY_MS)
    listener.pass_time(0)
    at(listener, name, HOUR_MS)
    comes_after(listener, HOUR_MS)


# Delays count from the send, whatever the clock says


@AFTER
@pytest.mark.parametrize("step", [DAY_MS, -DAY_MS])
def test_a_delay_does_not_move_when_the_clock_is_set_for_good(
    listener: Listener, name: str, value: str, delay_ms: int, step: int
) -> None:
    listener.put_off(b"one", {name: value})
    listener.pass_time(MINUTE_MS)
    listener.clock.step(step)
    comes_after(listener, delay_ms - MINUTE_MS)


@AFTER
@pytest.mark.parametrize("step", [DAY_MS, -DAY_MS])
def test_a_delay_that_is_sent_when_the_clock_was_just_set_is_as_long(
    listener: Listener, name: str, value: str, delay_ms: int, step: int
) -> None:
    listener.clock.step(step)
    listener.put_off(b"one", {name: value})
    comes_after(listener, delay_ms)


@AFTER
@pytest.mark.parametrize("how", ["clean", "kill"])
def test_after_a_restart_a_clock_that_was_set_back_holds_a_delay_for_its_own_length_at_most(
    listener: Listener, name: str, value: str, delay_ms: int, how: str
) -> None:
    listener.clock.step(DAY_MS)
    listener.restart(how)
    listener.put_off(b"one", {name: value})
    listener.pass_time(MINUTE_MS)
    listener.clock.step(-DAY_MS)
    listener.restart(how)
    left = -(-delay_ms // MINUTE_MS) * MINUTE_MS
    comes_after(listener, left)


@AFTER
def test_a_delay_is_as_long_over_a_restart_after_the_clock_was_set(
    listener: Listener, name: str, value: str, delay_ms: int
) -> None:
    listener.clock.step(DAY_MS)
    listener.restart("clean")
    listener.pass_time(1_000)
    listener.clock.step(-DAY_MS)
    pass_time(listener, BELIEVED_MS + MINUTE_MS)
    listener.put_off(b"one", {name: value})
    listener.pass_time(MINUTE_MS)
    listener.restart("kill")
    comes_after(listener, delay_ms - MINUTE_MS)


def test_delays_and_times_of_day_come_in_one_order(listener: Listener) -> None:
    now_ms = listener.clock.now_ms()
    listener.put_off(b"3", {"TIMER_DELAY_MS": "3000"})
    listener.put_off(b"1", {"TIMER_DELIVER_MS": str(now_ms + 1_000)})
    listener.put_off(b"2", {"TIMER_DELAY_MS": "2000"})
    listener.put_off(b"3 too", {"TIMER_DELIVER_MS": str(now_ms + 3_000)})
    listener.put_off(b"3 as well", {"TIMER_DELAY_MS": "3000"})
    listener.pass_time(HOUR_MS)
    assert listener.came() == [b"1", b"2", b"3", b"3 too", b"3 as well"]
