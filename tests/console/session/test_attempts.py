"""Failed logins: after some, an address waits longer each time."""

from __future__ import annotations

from rockgate.console.session.attempts import ADDRESSES_MAX, FREE, WAIT_S_MAX, Attempts


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def failing(attempts: Attempts, address: str, count: int) -> None:
    for _ in range(count):
        attempts.fail(address)


def test_the_first_failures_are_free_and_each_further_one_doubles_the_wait() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    failing(attempts, "a", FREE - 1)
    assert attempts.wait_s("a") == 0
    waits = []
    for _ in range(12):
        attempts.fail("a")
        waits.append(attempts.wait_s("a"))
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == WAIT_S_MAX
    clock.now += WAIT_S_MAX
    assert attempts.wait_s("a") == 0


def test_another_address_does_not_wait() -> None:
    attempts = Attempts(Clock())
    failing(attempts, "a", FREE + 3)
    assert attempts.wait_s("b") == 0


def test_a_success_forgets_failures_and_so_does_an_hour() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    failing(attempts, "a", FREE + 3)
    attempts.succeed("a")
    attempts.fail("a")
    assert attempts.wait_s("a") == 0
    failing(attempts, "a", FREE)
    clock.now += WAIT_S_MAX + Attempts.FORGOTTEN_S + 1
    attempts.fail("a")
    assert attempts.wait_s("a") == 0


def test_many_addresses_do_not_take_memory_without_bound() -> None:
    attempts = Attempts(Clock())
    failing(attempts, "first", FREE + 3)
    for number in range(ADDRESSES_MAX):
        attempts.fail(str(number))
    assert attempts.wait_s("first") == 0
