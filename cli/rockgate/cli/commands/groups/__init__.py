"""`rockgate groups`: the table of its commands."""

import typer

from rockgate.cli.commands.groups import deleting, listing, resetting

app = typer.Typer(
    help="List, describe, reset and delete consumer groups.",
    no_args_is_help=True,
    add_completion=False,
)
app.command("list", epilog=listing.LIST_EXAMPLES)(listing.list_)
app.command(epilog=listing.DESCRIBE_EXAMPLES)(listing.describe)
app.command(epilog=listing.MEMBERS_EXAMPLES)(listing.members)
app.command(epilog=listing.STATE_EXAMPLES)(listing.state)
app.command(epilog=listing.LAG_EXAMPLES)(listing.lag)
app.command("reset-offsets", epilog=resetting.EXAMPLES)(resetting.reset_offsets)
app.command(epilog=deleting.DELETE_EXAMPLES)(deleting.delete)
app.command("delete-offsets", epilog=deleting.DELETE_OFFSETS_EXAMPLES)(deleting.delete_offsets)
