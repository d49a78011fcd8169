"""`rockgate transactions`: the table of its commands, for both kinds of transactions."""

import typer

from rockgate.cli.commands.transactions import hanging, listing, resolving

app = typer.Typer(
    help="List and resolve half messages and Kafka transactions.",
    no_args_is_help=True,
    add_completion=False,
)
app.command("list", epilog=listing.LIST_EXAMPLES)(listing.list_)
app.command(epilog=listing.SHOW_EXAMPLES)(listing.show)
app.command(epilog=resolving.EXAMPLES)(resolving.resolve)
app.command("find-hanging", epilog=hanging.FIND_EXAMPLES)(hanging.find_hanging)
app.command(epilog=hanging.ABORT_EXAMPLES)(hanging.abort)
