"""Prints lines for people, without control sequences that a terminal would interpret."""

from __future__ import annotations

import typer

from rockgate.gateway.runtime.quoting import for_terminal


def say(text: str = "", *, err: bool = False) -> None:
    """Print a line; control characters from a server or a file are escaped."""
    typer.echo(for_terminal(text), err=err)
