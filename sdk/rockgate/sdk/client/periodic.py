"""Periodic work, in which a failing step does not stop the others.

    upkeep = Upkeep(30.0, {"routes": routes.refresh, …})
    upkeep.start()          the first round comes after a period, or at once after `wake`

Steps of a round run one after the other. What one raises is logged, and the next runs anyway; a
round in which one failed is repeated earlier: after a second, then two, up to the period.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from rockgate.sdk.errors import SdkError

RETRY_S: Final = 1.0
END_S: Final = 1.0
"""How long a step that was cancelled may take to end."""

Step = Callable[[], Awaitable[None]]
_log: Final = logging.getLogger(__name__)


class Upkeep:
    """One task that does its steps in rounds."""

    def __init__(self, period_s: float, steps: Mapping[str, Step]) -> None:
        """`steps` by what they are called in the log."""
        self._period_s = period_s
        self._steps = steps
        self._is_due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_started(self) -> bool:
        """Whether it was started, and perhaps ended since."""
        return self._task is not None

    def start(self) -> None:
        """Begin, on the loop that runs; once, however often this is called."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    def wake(self) -> None:
        """A round at once; another one if one is under way."""
        self._is_due.set()

    def cancel(self) -> None:
        """End it soon."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """End it, and wait for that."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=END_S)

    async def _work(self) -> None:
        failure_count = 0
        while True:
            wait_s = self._period_s
            if failure_count:
                wait_s = min(wait_s, RETRY_S * 2 ** min(failure_count - 1, 16))
            try:
                async with asyncio.timeout(wait_s):
                    await self._is_due.wait()
            except TimeoutError:
                pass
            self._is_due.clear()
            results = [await self._do(name, step) for name, step in self._steps.items()]
            failure_count = 0 if all(results) else failure_count + 1

    async def _do(self, name: str, step: Step) -> bool:
        try:
            await step()
        except SdkError as failed:
            _log.warning("%s: %s", name, failed)
        except Exception:  # noqa: BLE001 # hooks and loops may raise anything: the rest continues
            _log.exception("%s failed", name)
        else:
            return True
        return False
