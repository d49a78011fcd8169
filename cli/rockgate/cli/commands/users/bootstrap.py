"""`rockgate users bootstrap`: an administrator before the first start, or when all are lost."""

from __future__ import annotations

import getpass

from rockgate.cli.app import runner, server_options
from rockgate.cli.commands.users import options
from rockgate.cli.text.echo import say

START_STATUS = 1
EXAMPLES = """
[bold]Examples[/bold]

rockgate users bootstrap admin --data-dir /srv/rockgate

rockgate users bootstrap admin --config rockgate.toml --password-file admin.password
"""


def bootstrap(
    name: options.NewName,
    password_file: options.PasswordFile = None,
    config: server_options.ConfigFile = None,
    data_dir: server_options.DataDir = None,
    set_: server_options.Set = None,
    yes: runner.Yes = False,
) -> None:
    """Write a super user into the log of a server that is not running.

    That is the first administrator, before the first start; or a way back in, if the passwords of
    all administrators are lost. The password is for SASL, and signs requests of RocketMQ's clients.
    """
    flags = {"--data-dir": ("server.data_dir", data_dir)}
    gathered = server_options.gathered(config=config, flags=flags, pairs=set_ or ())

    from rockgate.gateway.compose.offline.admin_user import closed_server
    from rockgate.gateway.runtime.errors import StartError
    from rockgate.gateway.runtime.logs import to_stderr

    password = options.new_password(name, password_file)
    try:
        with to_stderr("warning"), closed_server(gathered.config, operator()) as server:
            if name in server:
                runner.confirm(
                    f"User {name} exists. Give it a new password, and make it a super user?",
                    is_sure=yes,
                )
            server.put_admin(name, password, can_sign=True)
    except StartError as error:
        server_options.fail([str(error)], START_STATUS)
    folder = gathered.config.server.data_dir.absolute()
    say(f"User {name} is a super user of the server in {folder}.")


def operator() -> str:
    """The user of this machine who runs the command, for the audit."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
