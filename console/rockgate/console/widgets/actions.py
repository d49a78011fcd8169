"""Changes: each says what it will do and asks, and says what became of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from nicegui import ui

from rockgate.cli.client.kafka.errors import ClientError, Unreachable
from rockgate.console.widgets.frame import session
from rockgate.sdk.errors import InvalidClientConfig

ERROR_MS: Final = 10_000


async def confirmed(
    title: str, lines: Sequence[str], action: str, *, typed: str | None = None
) -> bool:
    """Say what is about to happen, and ask; with `typed` this text has to be typed first."""
    with ui.dialog() as dialog, ui.card().classes("rg-dialog"):
        dialog.props("persistent")
        ui.label(title).classes("rg-subtitle").props('role="heading" aria-level="2"')
        for line in lines:
            ui.label(line)
        entered: Any = None
        if typed is not None:
            ui.label("Type the name to go ahead:")
            entered = ui.input(placeholder=typed).props(
                'outlined dense autofocus autocomplete=off aria-label="Name, as confirmation"'
            )
        with ui.row().classes("rg-buttons"):
            ui.button("Cancel", on_click=lambda: dialog.submit(False)).props("flat no-caps")
            go = ui.button(action, on_click=lambda: dialog.submit(True))
            go.props("unelevated no-caps color=negative")
            if entered is not None:
                go.disable()
                entered.on_value_change(lambda: go.set_enabled(entered.value == typed))
    answer = await dialog
    dialog.delete()
    return bool(answer) and (typed is None or entered.value == typed)


async def attempt(work: Callable[[], Awaitable[Any]], done: str | None = None) -> bool:
    """Do it and say so, or say why not; returns whether it was done. Nothing if read-only."""
    if session().is_read_only:
        ui.notify("The console is read-only.", type="warning")
        return False
    try:
        error = await work()
    except (ClientError, InvalidClientConfig, ValueError) as failed:
        error = failed
    if isinstance(error, Exception):
        say_error(error)
        return False
    session().peer.changed()
    if done is not None:
        ui.notify(done, type="positive")
    return True


def say_error(error: Exception) -> None:
    """Show an error."""
    kind = "warning" if isinstance(error, Unreachable) else "negative"
    text = str(error)
    ui.notify(f"{text[:1].upper()}{text[1:]}", type=kind, timeout=ERROR_MS, multi_line=True)


def may_change() -> bool:
    """Whether this page offers changes."""
    return not session().is_read_only


def button(text: str, act: Callable[..., Any], *, icon: str = "", is_danger: bool = False) -> Any:
    """A button in the style of the console."""
    made = ui.button(text, icon=icon or None, on_click=act).props("unelevated no-caps dense")
    made.classes("rg-button")
    return made.props("color=negative outline") if is_danger else made
