"""Waiting for something to become true, with a deadline: the only sleeping the tests do.

A test that must wait for another process or thread says what it waits for; when the deadline
passes, the failure says it too.
"""

import asyncio
import time
from collections.abc import Callable

POLL_S = 0.01
SECONDS_MAX = 180.0
"""A deadline only bounds a wait: a test that passes does not take longer for it. A disk that many
servers write to has been seen to stand still for a minute."""


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = SECONDS_MAX) -> None:
    """Return as soon as `condition()` is true; fail with `what` when it is not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {timeout_s:g} s in vain until {what}")
        time.sleep(POLL_S)


async def until(condition: Callable[[], object], what: str, timeout_s: float = SECONDS_MAX) -> None:
    """The same from a coroutine: the loop goes on while we wait."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {timeout_s:g} s in vain until {what}")
        await asyncio.sleep(POLL_S)
