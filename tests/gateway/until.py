"""Waiting for a condition with a deadline, for tests: never for a time."""

import asyncio
import time
from collections.abc import Callable

SECONDS_MAX = 20.0


async def until(condition: Callable[[], bool], seconds_max: float = SECONDS_MAX) -> None:
    """Let the loop run until the condition holds."""
    deadline = time.monotonic() + seconds_max
    while not condition():  # what is watched has no event to wait on
        assert time.monotonic() < deadline, f"{condition} did not come to hold"
        await asyncio.sleep(0.001)


def until_sync(condition: Callable[[], bool], seconds_max: float = SECONDS_MAX) -> None:
    """Look again and again until the condition, about another process, holds."""
    deadline = time.monotonic() + seconds_max
    while not condition():
        assert time.monotonic() < deadline, f"{condition} did not come to hold"
        time.sleep(0.002)
