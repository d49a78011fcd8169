"""`rockgate transactions`: the table of its commands, for both kinds of transactions."""

import typer

from rockgate.cli.commands.transactions import find_hanging, resolve, show

app = typer.Typer(
    help="List and resolve half messages and Kafka transactions.",
    no_args_is_help=True,
    add_completion=False,
)
app.command("list", epilog=show.LIST_EXAMPLES)(show.list_)
app.command(epilog=show.SHOW_EXAMPLES)(show.show)
app.command(epilog=resolve.EXAMPLES)(resolve.resolve)
app.command("find-hanging", epilog=find_hanging.FIND_EXAMPLES)(find_hanging.find_hanging)
app.command(epilog=find_hanging.ABORT_EXAMPLES)(find_hanging.abort)
