"""Lists of many rows: a filter, an order and a page, all in the address of the view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from nicegui import ui

from rockgate.console.widgets.frame import link_to

T = TypeVar("T")
ROWS: Final = 50
PAGE_MAX: Final = 1_000_000


@dataclass(slots=True)
class Place:
    """Where in a list the reader is."""

    path: str
    q: str = ""
    page: int = 1
    sort: str = ""

    def address(self) -> str:
        """The path with what differs from its default."""
        return link_to(
            self.path,
            q=self.q or None,
            page=self.page if self.page > 1 else None,
            sort=self.sort or None,
        )

    def rows(self, found: Sequence[T]) -> Sequence[T]:
        """The rows of this page."""
        self.page = max(1, min(self.page, -(-len(found) // ROWS) or 1))
        return found[(self.page - 1) * ROWS : self.page * ROWS]


def filter_input(place: Place, label: str, changed: Callable[[], Any]) -> Any:
    """An input whose text is the filter of a list."""

    def renew() -> None:
        place.q, place.page = str(field.value or ""), 1
        ui.navigate.history.replace(place.address())
        changed()

    field = ui.input(placeholder=label, value=place.q, on_change=renew)
    field.props(f'outlined dense clearable debounce=250 aria-label="{label}"')
    return field.classes("rg-grow")


def pager(place: Place, count: int, changed: Callable[[], Any], word: str) -> None:
    """Buttons to the pages beside this one."""

    def go(step: int) -> None:
        place.page += step
        ui.navigate.history.replace(place.address())
        changed()

    first = (place.page - 1) * ROWS
    with ui.row().classes("rg-row"):
        part = f"{first + 1:,} to {min(first + ROWS, count):,} of " if count > ROWS else ""
        ui.label(f"{part}{count:,} {word}").classes("rg-quiet")
        if count > ROWS:
            back = ui.button(icon="chevron_left", on_click=lambda: go(-1))
            back.props('flat dense round aria-label="Previous page"')
            back.set_enabled(place.page > 1)
            on = ui.button(icon="chevron_right", on_click=lambda: go(1))
            on.props('flat dense round aria-label="Next page"')
            on.set_enabled(first + ROWS < count)
