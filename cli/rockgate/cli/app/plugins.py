"""Commands of other packages, found by their entry points and not known here by name.

A package declares its commands in the entry point group `rockgate.commands` of the distribution's
metadata; each is a typer application. They are looked up only when a command is not built in, and
for the list in `--help`.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from rockgate.cli.app.flags import quiet, quieted

GROUP = "rockgate.commands"
PANEL = "More"
"""The panel of the help that lists them: after the built-in ones."""


def found(name: str) -> EntryPoint | None:
    """The entry point of a command of another package."""
    return next(iter(entry_points(group=GROUP, name=name)), None)


class Rooms(TyperGroup):
    """The built-in commands, followed by those of the other packages."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The flags of `rockgate` itself."""
        return quiet(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name; built-in ones take precedence."""
        own = super().get_command(ctx, cmd_name)
        entry = found(cmd_name) if own is None else None
        if entry is None:
            return own
        command = quieted(typer.main.get_command(entry.load()))
        command.name = cmd_name
        setattr(command, "rich_help_panel", PANEL)  # noqa: B010  click's own class lacks it
        return command

    def list_commands(self, ctx: Any) -> list[str]:
        """Every name, for the help."""
        others = sorted({entry.name for entry in entry_points(group=GROUP)})
        return [*super().list_commands(ctx), *others]
