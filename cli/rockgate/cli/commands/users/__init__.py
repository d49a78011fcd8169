"""`rockgate users`: the table of its commands."""

import typer

from rockgate.cli.commands.users import bootstrap, changes, show

app = typer.Typer(
    help="List, create, change and delete users.",
    no_args_is_help=True,
    add_completion=False,
)
app.command("list", epilog=show.LIST_EXAMPLES)(show.list_)
app.command(epilog=show.DESCRIBE_EXAMPLES)(show.describe)
app.command(epilog=changes.CREATE_EXAMPLES)(changes.create)
app.command(epilog=changes.PASSWORD_EXAMPLES)(changes.password)
app.command(epilog=changes.DISABLE_EXAMPLES)(changes.disable)
app.command(epilog=changes.ENABLE_EXAMPLES)(changes.enable)
app.command(epilog=changes.DELETE_EXAMPLES)(changes.delete)
app.command(epilog=bootstrap.EXAMPLES)(bootstrap.bootstrap)
