"""`rockgate acls`: the table of its commands."""

import typer

from rockgate.cli.commands.acls import changes, show

app = typer.Typer(
    help="List, add and remove ACLs.",
    no_args_is_help=True,
    add_completion=False,
)
app.command("list", epilog=show.LIST_EXAMPLES)(show.list_)
app.command(epilog=changes.ADD_EXAMPLES)(changes.add)
app.command(epilog=changes.REMOVE_EXAMPLES)(changes.remove)
