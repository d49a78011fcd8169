"""Long work: a bar with what is done so far, a button that stops it, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from nicegui import background_tasks, ui

from rockgate.cli.client.kafka.errors import ClientError
from rockgate.console.widgets.actions import button

DRAW_S: Final = 0.3
Report = Callable[[int, int], None]
"""Called with how much is done, and of how much."""


class Progress:
    """Runs one piece of work at a time in the background of a page, and shows how far it is."""

    def __init__(self, label: str, noun: str) -> None:
        self._noun = noun
        self._task: asyncio.Task[Any] | None = None
        self._done, self._count = 0, 0
        self._row = ui.row().classes("rg-row")
        with self._row:
            self._bar = ui.linear_progress(value=0, show_value=False).classes("rg-grow")
            self._bar.props(f'aria-label="{label}"')
            self._halt = button("Stop", self.stop)
        self._row.visible = False
        self._said = ui.label().props('role="status"')
        ui.context.client.on_delete(self.stop)

    def start(self, work: Callable[[Report], Awaitable[str]]) -> None:
        """Begin the work; it returns the sentence that says how it ended."""
        if self._task is not None and not self._task.done():
            return
        self._done, self._count = 0, 0
        self._task = background_tasks.create(self._run(work))

    def stop(self) -> None:
        """Stop the work, if any is under way."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, work: Callable[[Report], Awaitable[str]]) -> None:
        self._draw()
        self._row.visible = True
        with self._row:
            timer = ui.timer(DRAW_S, self._draw)
        said = f"Stopped after {self._noun}."
        try:
            said = await work(self._report)
        except ClientError as error:
            said = str(error)
        except asyncio.CancelledError:
            said = f"Stopped after {self._done:,} of {self._count:,} {self._noun}."
            raise
        finally:
            timer.cancel()
            self._row.visible = False
            self._said.text = said

    def _report(self, done: int, count: int) -> None:
        self._done, self._count = done, count

    def _draw(self) -> None:
        self._bar.value = self._done / self._count if self._count else 0
        self._said.text = f"{self._done:,} of {self._count:,} {self._noun}."
