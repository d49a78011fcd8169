"""`rockgate groups`: the table of its commands."""

import typer

from rockgate.cli.commands.groups import delete, describe, reset_offsets

app = typer.Typer(
    help="List, describe, reset and delete consumer groups.",
    no_args_is_help=True,
    add_completion=False,
)
app.command("list", epilog=describe.LIST_EXAMPLES)(describe.list_)
app.command(epilog=describe.DESCRIBE_EXAMPLES)(describe.describe)
app.command(epilog=describe.MEMBERS_EXAMPLES)(describe.members)
app.command(epilog=describe.STATE_EXAMPLES)(describe.state)
app.command(epilog=describe.LAG_EXAMPLES)(describe.lag)
app.command("reset-offsets", epilog=reset_offsets.EXAMPLES)(reset_offsets.reset_offsets)
app.command(epilog=delete.DELETE_EXAMPLES)(delete.delete)
app.command("delete-offsets", epilog=delete.DELETE_OFFSETS_EXAMPLES)(delete.delete_offsets)
