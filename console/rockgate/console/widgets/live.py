"""Parts of a page that load by themselves, say why they cannot, and try again.

A page is built at once and without any server; each `Live` in it asks when the browser is there.
The last answer stays while a server is away, under a line that says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from nicegui import background_tasks, ui

from rockgate.cli.client.kafka.errors import ClientError, Unreachable
from rockgate.sdk.errors import InvalidClientConfig

T = TypeVar("T")

RETRY_S: Final = 3.0
RETRY_S_MAX: Final = 15.0


class Live(Generic[T]):
    """Shows what `load` returns, again every `every_s` seconds if that is given.

    `show` builds elements; it is called again only if the value has changed.
    """

    def __init__(
        self,
        load: Callable[[], Awaitable[T]],
        show: Callable[[T], None],
        *,
        every_s: float | None = None,
    ) -> None:
        self._load = load
        self._show = show
        self._every_s = every_s
        self._value: T | None = None
        self._has_value = False
        self._running = False
        self._again = False
        self._retry_s = RETRY_S
        self._timer: Any = None
        with ui.column().classes("rg-live") as self._outer:
            self._problem = ui.label().classes("rg-problem").props('role="alert"')
            self._problem.visible = False
            self._content = ui.column().classes("rg-live")
            with self._content:
                ui.skeleton("rect", height="3rem", width="100%").props('aria-label="Loading"')
            ui.timer(0.01, self.refresh, once=True)

    async def refresh(self) -> None:
        """Load now; a call during a load repeats it once."""
        if self._running:
            self._again = True
            return
        self._running = True
        wait_s: float | None = None
        try:
            self._again = True
            while self._again:
                self._again = False
                wait_s = await self._once()
        finally:
            self._running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wait_s is not None and not self._outer.is_deleted:
            with self._outer:
                self._timer = ui.timer(wait_s, self.refresh, once=True)

    def reload(self) -> None:
        """Load again, beside what the caller does."""
        background_tasks.create(self.refresh())

    async def _once(self) -> float | None:
        """Load and show once; after how many seconds again."""
        try:
            value = await self._load()
        except (ClientError, InvalidClientConfig) as error:
            return self._failed(error)
        except TimeoutError:
            return self._failed(Unreachable("The server did not respond in time"))
        self._retry_s = RETRY_S
        self._problem.visible = False
        if not self._has_value or value != self._value:
            self.show(value)
        return self._every_s

    def show(self, value: T) -> None:
        """Show a value that the caller has already."""
        self._has_value, self._value = True, value
        self._content.clear()
        with self._content:
            self._show(value)

    def _failed(self, error: Exception) -> float | None:
        is_lost = isinstance(error, Unreachable)
        wait_s = self._retry_s if is_lost else self._every_s
        self._retry_s = min(2 * self._retry_s, RETRY_S_MAX)
        note = f" Trying again in {wait_s:.0f} s." if is_lost and wait_s is not None else ""
        self._problem.text = f"{error}{note}"
        self._problem.visible = True
        if not self._has_value:
            self._content.clear()
        return wait_s
