"""The command line: one module per command, and this table of them.

A command's module is imported when it is used, and imports what it does inside its bodies, so that
`--help` and completion stay quick.
"""

from typing import Annotated

import typer

from rockgate.cli.app.lazy_commands import Deferred, group_of
from rockgate.cli.text.echo import say

_HERE = "rockgate.cli.commands"
_SERVER = "Server"
_CLIENT = "Any Kafka-compatible server"
_OPERATOR = "Delayed messages, transactions and dead letters"

COMMANDS = (
    Deferred("serve", f"{_HERE}.serve", "Run the server.", _SERVER),
    Deferred("namesrv", f"{_HERE}.namesrv", "Run a standalone RocketMQ name server.", _SERVER),
    Deferred(
        "gateway",
        f"{_HERE}.gateway",
        "Serve Kafka clients over an Apache RocketMQ cluster.",
        _SERVER,
    ),
    Deferred(
        "config",
        f"{_HERE}.config",
        "Print the settings in effect and where each comes from.",
        _SERVER,
    ),
    Deferred(
        "doctor",
        f"{_HERE}.doctor",
        "Check settings, data directory, disk, limits, clock and ports, and say what to do.",
        _SERVER,
    ),
    Deferred(
        "secure",
        f"{_HERE}.secure",
        "Set up TLS and an administrator, and renew the certificate.",
        _SERVER,
    ),
    Deferred("log", f"{_HERE}.log", "Check, dump and repair the log on disk.", _SERVER),
    Deferred(
        "topics", f"{_HERE}.topics", "List, create, describe, alter and delete topics.", _CLIENT
    ),
    Deferred(
        "groups", f"{_HERE}.groups", "List, describe, reset and delete consumer groups.", _CLIENT
    ),
    Deferred(
        "produce",
        f"{_HERE}.produce",
        "Send records to a topic and wait until they are acknowledged.",
        _CLIENT,
    ),
    Deferred("consume", f"{_HERE}.consume", "Print records from topics.", _CLIENT),
    Deferred("find", f"{_HERE}.find", "Find messages by key, id or time.", _CLIENT),
    Deferred(
        "configs",
        f"{_HERE}.configs",
        "Show and change configs of topics, brokers and groups.",
        _CLIENT,
    ),
    Deferred("quotas", f"{_HERE}.quotas", "Show and change client quotas.", _CLIENT),
    Deferred("users", f"{_HERE}.users", "List, create, change and delete users.", _CLIENT),
    Deferred("acls", f"{_HERE}.acls", "List, add and remove ACLs.", _CLIENT),
    Deferred(
        "cluster", f"{_HERE}.cluster", "Show brokers, supported APIs and log directories.", _CLIENT
    ),
    Deferred(
        "delay", f"{_HERE}.delay", "List, show, cancel and deliver delayed messages.", _OPERATOR
    ),
    Deferred(
        "transactions",
        f"{_HERE}.transactions",
        "List and resolve half messages and Kafka transactions.",
        _OPERATOR,
    ),
    Deferred("dlq", f"{_HERE}.dlq", "List, show and resend dead letters.", _OPERATOR),
)

app = typer.Typer(
    name="rockgate",
    cls=group_of(*COMMANDS),
    help="One log store that speaks the Kafka and RocketMQ protocols.",
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
    """One log store that speaks the Kafka and RocketMQ protocols."""
