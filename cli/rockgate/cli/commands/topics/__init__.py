"""`rockgate topics`: the table of its commands."""

import typer

from rockgate.cli.commands.topics import changes, describe, list_topics, offsets

app = typer.Typer(
    help="List, create, describe, alter and delete topics.",
    no_args_is_help=True,
    add_completion=False,
)
app.command("list", epilog=list_topics.LIST_EXAMPLES)(list_topics.list_)
app.command(epilog=changes.CREATE_EXAMPLES)(changes.create)
app.command(epilog=describe.DESCRIBE_EXAMPLES)(describe.describe)
app.command(epilog=changes.ALTER_EXAMPLES)(changes.alter)
app.command(epilog=changes.DELETE_EXAMPLES)(changes.delete)
app.command(epilog=offsets.OFFSETS_EXAMPLES)(offsets.offsets)
app.command("delete-records", epilog=offsets.DELETE_RECORDS_EXAMPLES)(offsets.delete_records)
