"""What commands print: tables for people, a JSON object for programs, problems to standard error.

The JSON shape is the same for every command: the things it is about under their plural name, and
`errors`, which is empty when all went well. docs/reference/cli.md has every key.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from rockgate.cli.client.kafka.errors import (
    ClientError,
    Declined,
    Missed,
    Refused,
    Unreachable,
    name,
)
from rockgate.cli.text.echo import say
from rockgate.gateway.runtime.quoting import for_terminal, json_for_terminal
from rockgate.protocol.remoting.codes import ResponseCode, response_name

if TYPE_CHECKING:
    from rich.console import Console

Cell = str | int | None

# So wide that nothing is ever cut off where no terminal's width is known.
_PIPE_WIDTH: Final = 100_000

_GRANT: Final = "An administrator can grant it with `rockgate acls add`."
_ADVICE: Final = {
    "TOPIC_ALREADY_EXISTS": "Use --if-not-exists to ignore existing topics.",
    "UNKNOWN_TOPIC_OR_PARTITION": "List topics with `rockgate topics list`.",
    "GROUP_ID_NOT_FOUND": "List groups with `rockgate groups list`.",
    "NON_EMPTY_GROUP": "Stop its members first; list them with `rockgate groups members`.",
    "UNKNOWN_MEMBER_ID": "The group may have members; list them with `rockgate groups members`.",
    "GROUP_SUBSCRIBED_TO_TOPIC": "Stop the members that read the topic first.",
    "INVALID_REPLICATION_FACTOR": "Omit --replication-factor to use the server's default.",
    "INVALID_CONFIG": "List known configs with `rockgate configs describe --all --docs`.",
    "SECURITY_DISABLED": "The server authorizes if a listener has authentication, or with"
    " security.authorization=on.",
    "UNSUPPORTED_SASL_MECHANISM": "Set sasl.mechanism to one of them.",
    "ILLEGAL_SASL_STATE": "The listener has no login: use security.protocol PLAINTEXT or SSL.",
    **dict.fromkeys(
        (
            "TOPIC_AUTHORIZATION_FAILED",
            "GROUP_AUTHORIZATION_FAILED",
            "CLUSTER_AUTHORIZATION_FAILED",
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        ),
        _GRANT,
    ),
    "MESSAGE_TOO_LARGE": "The limit is the topic's max.message.bytes.",
}


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, title: str = "") -> None:
    """Print a table; a column whose cells are all numbers is right-aligned."""
    from rich.table import Table
    from rich.text import Text

    all_rows = [list(row) for row in rows]
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        cells = [row[index] for row in all_rows if row[index] is not None]
        is_number = bool(cells) and all(isinstance(cell, int) for cell in cells)
        grid.add_column(
            column,
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number or index == 0,
        )
    for row in all_rows:
        grid.add_row(*(Text("-" if cell is None else for_terminal(str(cell))) for cell in row))
    if title:
        say(title)
    target = console()
    with target.capture() as printed:
        target.print(grid)
    for line in printed.get().splitlines():
        # Cells are escaped already; markup in headings is meant.
        typer.echo(line.rstrip())


def console() -> Console:
    """Standard output as rich sees it: plain and as wide as needed where it is no terminal."""
    from rich.console import Console

    is_terminal = sys.stdout.isatty()
    return Console(
        highlight=False, markup=False, emoji=False, width=None if is_terminal else _PIPE_WIDTH
    )


def echo_json(value: Mapping[str, Any]) -> None:
    """One JSON object, indented: for programs, and still for people."""
    from json import dumps

    typer.echo(json_for_terminal(dumps(value, indent=2, ensure_ascii=False)))


def error_fields(error: ClientError) -> dict[str, Any]:
    """An error as programs see it."""
    if isinstance(error, Refused):
        return {
            "what": error.what,
            "error": name(error.code),
            "code": error.code,
            "message": error.message,
        }
    if isinstance(error, Declined):
        return {
            "what": error.what,
            "error": response_name(error.code),
            "code": error.code,
            "message": error.message,
        }
    if isinstance(error, Missed):
        return {"what": error.what, "error": "MISSED", "code": None, "message": error.message}
    kind = "UNREACHABLE" if isinstance(error, Unreachable) else "UNUSABLE"
    return {"what": "", "error": kind, "code": None, "message": str(error)}


def echo_error(error: ClientError) -> None:
    """An error on a line of standard error, with what to do next where that is known."""
    advice = ""
    if isinstance(error, Refused):
        advice = _ADVICE.get(name(error.code), "")
    elif isinstance(error, Unreachable):
        advice = error.advice
    elif isinstance(error, Declined) and error.code == ResponseCode.NO_PERMISSION:
        advice = _advice_of_denial(error.message or "")
    say(f"rockgate: {error}" + (f" {advice}" if advice else ""), err=True)


def _advice_of_denial(remark: str) -> str:
    """What to do about RocketMQ's one code for every denial; its listener says which one it is."""
    if remark.startswith("check signature"):
        return "Check the user name and the password."
    if remark.startswith("username cannot be null"):
        return (
            "The listener demands a login: give --username, or a file with --client-config or"
            " ROCKGATE_CLIENT_CONFIG."
        )
    return _GRANT if "has no permission" in remark else ""


def note(text: str) -> None:
    """A remark for people, on standard error, where it disturbs no program."""
    say(text, err=True)


def is_watched() -> bool:
    """Whether standard error is a terminal, so that progress is worth printing."""
    return sys.stderr.isatty()
