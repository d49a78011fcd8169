"""`rockgate dlq`: the table of its commands."""

import typer

from rockgate.cli.commands.dlq import resend, show

app = typer.Typer(
    help="List, show and resend dead letters.", no_args_is_help=True, add_completion=False
)
app.command("list", epilog=show.LIST_EXAMPLES)(show.list_)
app.command(epilog=show.SHOW_EXAMPLES)(show.show)
app.command(epilog=resend.EXAMPLES)(resend.resend)
