"""The command line: one module per command, and this table of them.

Commands import what they do inside their bodies, so that `--help` and completion stay quick.
"""

from typing import Annotated

import typer

from rockgate.gateway.cli import config, log, serve
from rockgate.gateway.cli.rooms import Rooms

app = typer.Typer(
    name="rockgate",
    cls=Rooms,
    help="One log store behind two doors: Kafka's wire and RocketMQ's.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"rockgate {version('rockgate')}")
        raise typer.Exit


@app.callback()
def rockgate(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """One log store behind two doors: Kafka's wire and RocketMQ's."""


app.command(epilog=serve.EXAMPLES)(serve.serve)
app.command(epilog=config.EXAMPLES)(config.config)
app.add_typer(log.app, name="log")
