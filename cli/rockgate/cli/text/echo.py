"""What a command says to a person: a line at a time, and nothing that a terminal would obey."""

from __future__ import annotations

import typer

from rockgate.gateway.runtime.quoting import for_terminal


def say(text: str = "", *, err: bool = False) -> None:
    """Print a line; control characters from a server or a file are escaped."""
    typer.echo(for_terminal(text), err=err)
