"""The command line: one module per command, and this table of them.

A command's module is imported when it is used, and imports what it does inside its bodies, so that
`--help` and completion stay quick.
"""

from typing import Annotated

import typer

from rockgate.cli.app.lazy_commands import Deferred, group_of
from rockgate.cli.text.echo import say

_HERE = "rockgate.cli.commands"
_SERVER = "The server"
_CLIENT = "Any server that speaks Kafka's wire"
_OPERATOR = "What waits, hangs or failed"

COMMANDS = (
    Deferred("serve", f"{_HERE}.serve", "Run the server.", _SERVER),
    Deferred("namesrv", f"{_HERE}.namesrv", "Run RocketMQ's name server alone.", _SERVER),
    Deferred(
        "config",
        f"{_HERE}.config",
        "Print the settings that `serve` would run with, and where each came from.",
        _SERVER,
    ),
    Deferred(
        "log", f"{_HERE}.log", "Look at the log on disk: check it, dump it, repair it.", _SERVER
    ),
    Deferred(
        "topics", f"{_HERE}.topics", "Topics: list, create, describe, alter, delete.", _CLIENT
    ),
    Deferred(
        "groups", f"{_HERE}.groups", "Groups: list, describe, lag, reset offsets, delete.", _CLIENT
    ),
    Deferred(
        "produce",
        f"{_HERE}.produce",
        "Send records to a topic, and wait until they are acknowledged.",
        _CLIENT,
    ),
    Deferred("consume", f"{_HERE}.consume", "Print the records of topics as they come.", _CLIENT),
    Deferred(
        "configs",
        f"{_HERE}.configs",
        "Configs of topics, brokers and groups: list, describe, set, unset.",
        _CLIENT,
    ),
    Deferred("quotas", f"{_HERE}.quotas", "Client quotas: describe, alter.", _CLIENT),
    Deferred("cluster", f"{_HERE}.cluster", "The cluster: describe, apis, log-dirs.", _CLIENT),
    Deferred("delay", f"{_HERE}.delay", "Delayed messages: list, show, cancel.", _OPERATOR),
    Deferred(
        "transactions",
        f"{_HERE}.transactions",
        "Transactions of both kinds: list, show, resolve, find-hanging, abort.",
        _OPERATOR,
    ),
    Deferred("dlq", f"{_HERE}.dlq", "Dead letters: list, show, resend.", _OPERATOR),
)

app = typer.Typer(
    name="rockgate",
    cls=group_of(*COMMANDS),
    help="One log store behind two listeners: Kafka's wire and RocketMQ's.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"rockgate {version('rockgate')}")
        raise typer.Exit


@app.callback()
def rockgate(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """One log store behind two listeners: Kafka's wire and RocketMQ's."""
