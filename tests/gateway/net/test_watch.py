import pytest

from rockgate.gateway.net.limits import Limits
from rockgate.gateway.net.watch import Verdict, Watch

LIMITS = Limits(
    frame_bytes_max=1,
    in_flight_max=1,
    in_flight_bytes_max=1,
    unread_bytes_max=1,
    idle_seconds_max=600,
    frame_seconds_max=60,
    unread_seconds_max=30,
)

BUSY = {"unread_taken": None, "is_reading": True, "has_partial": False, "is_busy": True}
IDLE = {**BUSY, "is_busy": False}
PARTIAL = {**BUSY, "has_partial": True}
UNREAD = {**BUSY, "unread_taken": 0, "is_reading": False}
FULL = {**BUSY, "is_reading": False, "has_partial": True}


@pytest.mark.parametrize(
    ("state", "age", "verdict", "next_look"),
    [
        (IDLE, 0, None, 30),
        (IDLE, 590, None, 10),
        (IDLE, 600, Verdict.IDLE, 0),
        (PARTIAL, 45, None, 15),
        (PARTIAL, 60, Verdict.SLOW_SENDER, 0),
        (UNREAD, 20, None, 10),
        (UNREAD, 30, Verdict.SLOW_READER, 0),
        (BUSY, 10_000, None, 30),
        (FULL, 10_000, None, 30),
    ],
)
def test_each_state_has_its_own_bound(
    state: dict[str, object], age: float, verdict: Verdict | None, next_look: float
) -> None:
    watch = Watch(LIMITS, 0.0)
    assert watch.look(age, **state) == (verdict, next_look)  # type: ignore[arg-type] # by name


def test_a_byte_taken_starts_the_readers_time_again() -> None:
    watch = Watch(LIMITS, 0.0)
    state = {**UNREAD, "unread_taken": 1}
    assert watch.look(29, **state) == (None, 30)  # type: ignore[arg-type] # by name
    assert watch.look(58, **state) == (None, 1)  # type: ignore[arg-type] # by name
    assert watch.look(59, **state)[0] is Verdict.SLOW_READER  # type: ignore[arg-type] # by name
