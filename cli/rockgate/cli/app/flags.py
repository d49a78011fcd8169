"""Flags in a command's help: they take no value, so no type is printed for them."""

from __future__ import annotations

from typing import Any


def quiet(params: list[Any]) -> list[Any]:
    """Remove the type from each option that takes no value."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def quieted(command: Any) -> Any:
    """Do so in a command and its subcommands, each time they are listed: `--help` is built late."""
    asked = command.get_params

    def get_params(ctx: Any) -> list[Any]:
        return quiet(asked(ctx))

    command.get_params = get_params
    for below in getattr(command, "commands", {}).values():
        quieted(below)
    return command
