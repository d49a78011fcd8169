"""`rockgate topics`: the table of its commands."""

import typer

from rockgate.cli.commands.topics import changing, describing, listing, places

app = typer.Typer(
    help="List, create, describe, alter and delete topics.",
    no_args_is_help=True,
    add_completion=False,
)
app.command("list", epilog=listing.LIST_EXAMPLES)(listing.list_)
app.command(epilog=changing.CREATE_EXAMPLES)(changing.create)
app.command(epilog=describing.DESCRIBE_EXAMPLES)(describing.describe)
app.command(epilog=changing.ALTER_EXAMPLES)(changing.alter)
app.command(epilog=changing.DELETE_EXAMPLES)(changing.delete)
app.command(epilog=places.OFFSETS_EXAMPLES)(places.offsets)
app.command("delete-records", epilog=places.DELETE_RECORDS_EXAMPLES)(places.delete_records)
