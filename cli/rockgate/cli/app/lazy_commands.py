"""Commands that are imported when they are used: `rockgate --help` reads no more than this table.

A deferred command knows its name and one line about itself. Everything else, the context with the
real command included, is made by the module that it names.
"""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from rockgate.cli.app.connection import add_connection
from rockgate.cli.app.flags import quieted
from rockgate.cli.app.plugins import Rooms


class Deferred(TyperCommand):
    """A placeholder for a command until it is called, asked for help, or completed."""

    def __init__(self, name: str, module: str, help: str, panel: str) -> None:
        super().__init__(name, help=help, rich_help_panel=panel)
        self._module = module

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """A context of the real command, which all further steps use."""
        return self.load().make_context(*arguments, **options)

    def load(self) -> Any:
        """The real command: a module's `app`, or its function of the command's name."""
        module = import_module(self._module)
        app = getattr(module, "app", None)
        if app is None:
            assert self.name is not None
            app = typer.Typer(add_completion=False)
            app.command(epilog=module.EXAMPLES)(getattr(module, self.name))
        add_connection(app)
        return quieted(get_command(app))


def group_of(*commands: Deferred) -> type[Rooms]:
    """A class of groups that begin with these commands, in this order."""

    class Commands(Rooms):
        """Deferred commands, followed by those of the other packages."""

        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            for command in commands:
                self.add_command(command)

    return Commands
