"""Which requests the broker's listener admits, lets wait and refuses, by time and count."""

from __future__ import annotations

import pytest

from rockgate.gateway.remoting.server.overload import (
    DRAINED,
    KINDS,
    OVERLOADED,
    REJECTED,
    STEP_COUNT,
    TIMED_OUT,
    Overload,
)
from rockgate.gateway.storage.config import OverloadConfig
from rockgate.protocol.remoting.codes import RequestCode

WAITS_MS = {
    "send": 200,
    "pull": 5_000,
    "heartbeat": 31_000,
    "transaction": 3_000,
    "ack": 3_000,
    "admin": 5_000,
}
NEXT_CODE = {
    "send": RequestCode.SEND_MESSAGE_V2,
    "pull": RequestCode.PULL_MESSAGE,
    "heartbeat": RequestCode.HEART_BEAT,
    "transaction": RequestCode.END_TRANSACTION,
    "ack": RequestCode.ACK_MESSAGE,
    "admin": RequestCode.UPDATE_AND_CREATE_TOPIC,
}


def overload(**settings: object) -> Overload[str]:
    return Overload(OverloadConfig(**settings))  # type: ignore[arg-type]


def waiting(count: int, now_ms: int = 0, **settings: object) -> Overload[str]:
    """A stalled store, and sends that came at that time."""
    made = overload(**settings)
    made.stalled(True, 0)
    for number in range(count):
        made.wait(str(number), now_ms)
    return made


def reasons(made: Overload[str], now_ms: int) -> list[tuple[str, str | None]]:
    """What becomes of waiting sends: the tag of the refusal, None for those that are started."""
    return [
        (send, None if text is None else text.partition("]")[0][1:])
        for send, text in made.step(now_ms)
    ]


@pytest.mark.row("U-17")
@pytest.mark.parametrize(("name", "wait_ms"), WAITS_MS.items())
def test_each_kind_may_wait_as_long_as_in_rocketmq(name: str, wait_ms: int) -> None:
    made = overload()
    kind = made.kind_of(NEXT_CODE[name])
    assert kind.name == name
    assert made.overdue(kind, wait_ms - 1, 7) is None
    assert made.overdue(kind, wait_ms, 7) == (
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
        f"period in queue: {wait_ms}ms, size of queue: 7"
    )
    assert kind.refused == {TIMED_OUT: 1}


def test_no_code_is_of_two_kinds() -> None:
    codes = [code for codes in KINDS.values() for code in codes]
    assert len(codes) == len(set(codes))


@pytest.mark.row("F-02")
@pytest.mark.row("F-04")
@pytest.mark.parametrize(
    ("arrived_ms", "now_ms", "becomes"),
    [
        pytest.param(0, 199, [], id="it waits"),
        pytest.param(0, 200, [("0", TIMED_OUT)], id="too old, although the store is not busy yet"),
        pytest.param(900, 999, [], id="just before busy"),
        pytest.param(900, 1_000, [("0", DRAINED)], id="busy: at once, however young"),
        pytest.param(0, 1_000, [("0", DRAINED)], id="busy comes before old"),
    ],
)
def test_what_becomes_of_a_waiting_send_while_the_store_is_stalled(
    arrived_ms: int, now_ms: int, becomes: list[tuple[str, str | None]]
) -> None:
    assert reasons(waiting(1, arrived_ms), now_ms) == becomes


@pytest.mark.row("F-02")
def test_a_drained_send_is_told_how_long_it_waited_and_how_many_still_do() -> None:
    [(_, first), _] = waiting(2, 990).step(1_003)
    assert first == (
        "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, "
        "period in queue: 13ms, size of queue: 1"
    )


@pytest.mark.row("F-03")
@pytest.mark.parametrize(("stalled_ms", "is_busy"), [(999, False), (1_000, True), (10**7, True)])
def test_the_store_is_busy_when_appends_have_waited_for_a_second(
    stalled_ms: int, is_busy: bool
) -> None:
    made = overload()
    made.stalled(True, 5)
    assert made.is_busy(5 + stalled_ms) is is_busy
    made.stalled(False, 5 + stalled_ms)
    assert not made.is_busy(5 + stalled_ms)


@pytest.mark.row("F-02")
@pytest.mark.parametrize("name", WAITS_MS)
def test_while_the_store_is_busy_new_sends_are_refused_at_once_and_nothing_else(name: str) -> None:
    made = waiting(0)
    kind = made.kind_of(NEXT_CODE[name])
    refusal = made.refusal(kind, 1_000)
    if name == "send":
        assert refusal == "[REJECTREQUEST]system busy, start flow control for a while"
        assert kind.refused == {REJECTED: 1}
    else:
        assert refusal is None
        assert not kind.is_guarded


@pytest.mark.parametrize("name", WAITS_MS)
def test_more_than_the_bound_in_flight_are_refused_until_one_is_answered(name: str) -> None:
    made = overload(**{f"{name}_in_flight_max": 2})
    kind = made.kind_of(NEXT_CODE[name])
    kind.enter()
    assert not kind.is_guarded
    kind.enter()
    assert kind.is_guarded
    assert made.refusal(kind, 0) == "[OVERLOAD]system busy, start flow control for a while"
    assert kind.refused == {OVERLOADED: 1}
    kind.leave()
    assert not kind.is_guarded
    assert made.refusal(kind, 0) is None


def test_a_bound_that_is_lowered_holds_once_enough_are_answered() -> None:
    made = overload(send_in_flight_max=4)
    kind = made.kind_of(NEXT_CODE["send"])
    for _ in range(3):
        kind.enter()
    assert made.refusal(kind, 0) is None
    made.configure(OverloadConfig(send_in_flight_max=2, send_wait_ms_max=7))
    for _ in range(2):
        assert kind.is_guarded and made.refusal(kind, 0), "as many as may be, or more"
        kind.leave()
    assert not kind.is_guarded
    assert made.refusal(kind, 0) is None
    assert made.overdue(kind, 7, 0) is not None
    made.configure(OverloadConfig())
    kind.enter()
    assert made.refusal(kind, 0) is None and made.overdue(kind, 7, 0) is None


def test_what_is_switched_off_stays_so_whatever_its_bounds() -> None:
    made = overload(enabled=False)
    kind = made.kind_of(NEXT_CODE["send"])
    made.configure(OverloadConfig(enabled=False, send_in_flight_max=1, send_wait_ms_max=1))
    for _ in range(3):
        kind.enter()
    assert made.refusal(kind, 0) is None and made.overdue(kind, 10**6, 0) is None


def test_sends_that_waited_start_in_order_and_those_that_come_meanwhile_wait_behind_them() -> None:
    made = waiting(STEP_COUNT + 1)
    made.stalled(False, 100)
    sends = made.kinds["send"]
    assert reasons(made, 100) == [(str(number), None) for number in range(STEP_COUNT)]
    assert sends.is_held, "one is left, and nobody overtakes it"
    assert not made.is_at_rest
    assert reasons(made, 110) == [(str(STEP_COUNT), None)]
    assert not sends.is_guarded
    assert made.is_at_rest


def test_sends_that_became_too_old_are_not_started_when_the_store_continues() -> None:
    made = waiting(1)
    made.wait("young", 150)
    made.stalled(False, 250)
    assert reasons(made, 250) == [("0", TIMED_OUT), ("young", None)]


def test_a_second_stall_holds_sends_that_had_their_turn_coming() -> None:
    made = waiting(STEP_COUNT + 1)
    made.stalled(False, 100)
    assert len(reasons(made, 100)) == STEP_COUNT
    made.stalled(True, 101)
    assert reasons(made, 110) == []
    assert made.waiting_count == 1


@pytest.mark.row("F-01")
def test_it_is_on_by_default_and_can_be_switched_off() -> None:
    assert OverloadConfig().enabled
    made = overload(enabled=False, send_in_flight_max=1)
    sends = made.kinds["send"]
    for _ in range(100):
        sends.enter()
    assert not sends.is_guarded
    assert made.overdue(sends, 10**6, 0) is None
