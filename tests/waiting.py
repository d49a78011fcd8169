"""Waiting for a condition, with a deadline: the only sleeping in tests.

A test that must wait for another process or thread describes what it waits for; if the deadline
passes, the failure contains it.
"""

import asyncio
import time
from collections.abc import Callable

POLL_S = 0.01
SECONDS_MAX = 180.0
"""A deadline only limits a wait: a test that passes does not take longer because of it. A disk with
many writing servers has been seen to stall for a minute."""


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = SECONDS_MAX) -> None:
    """Return as soon as `condition()` is true; fail with `what` after the deadline."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {timeout_s:g} s in vain until {what}")
        time.sleep(POLL_S)


async def until(condition: Callable[[], object], what: str, timeout_s: float = SECONDS_MAX) -> None:
    """Do the same in a coroutine, without blocking the event loop."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {timeout_s:g} s in vain until {what}")
        await asyncio.sleep(POLL_S)
