"""`rockgate secure`: the table of its commands."""

import typer

from rockgate.cli.commands.secure import init, renew

app = typer.Typer(
    help="Set up TLS and an administrator, and renew the certificate.",
    no_args_is_help=True,
    add_completion=False,
)
app.command(epilog=init.EXAMPLES)(init.init)
app.command(epilog=renew.EXAMPLES)(renew.renew)
