"""`rockgate dlq`: the table of its commands."""

import typer

from rockgate.cli.commands.dlq import listing, resending

app = typer.Typer(
    help="List, show and resend dead letters.", no_args_is_help=True, add_completion=False
)
app.command("list", epilog=listing.LIST_EXAMPLES)(listing.list_)
app.command(epilog=listing.SHOW_EXAMPLES)(listing.show)
app.command(epilog=resending.EXAMPLES)(resending.resend)
