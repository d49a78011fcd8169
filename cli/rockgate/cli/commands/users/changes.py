"""`rockgate users create`, `password`, `disable`, `enable` and `delete`.

What Kafka's wire can say is said there, where a password is hashed before it leaves. RocketMQ's is
used for the rest: types, statuses, and the secret of signatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rockgate.cli.app import runner
from rockgate.cli.commands.users import options
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.errors import ClientError
    from rockgate.cli.client.remoting.connection import RemotingConnection
    from rockgate.cli.commands.users.show import Known

CREATE_EXAMPLES = """
[bold]Examples[/bold]

rockgate users create alice

rockgate users create shop --mechanism SCRAM-SHA-512 --rocketmq --password-file shop.password

rockgate users create ops --super
"""
PASSWORD_EXAMPLES = """
[bold]Examples[/bold]

rockgate users password alice

rockgate users password alice --rocketmq --password-file -
"""
DISABLE_EXAMPLES = """
[bold]Examples[/bold]

rockgate users disable alice
"""
ENABLE_EXAMPLES = """
[bold]Examples[/bold]

rockgate users enable alice
"""
DELETE_EXAMPLES = """
[bold]Examples[/bold]

rockgate users delete alice

rockgate users delete alice bob --yes
"""
ITERATIONS: Final = 4_096
ITERATIONS_MAX: Final = 16_384

Mechanisms = Annotated[
    list[options.Mechanism] | None,
    typer.Option(
        "--mechanism", help="SASL mechanism for the password; repeatable.", show_default="both"
    ),
]
Iterations = Annotated[
    int, typer.Option(min=ITERATIONS, max=ITERATIONS_MAX, help="Iterations of the password's hash.")
]
Rocketmq = Annotated[
    bool,
    typer.Option(
        "--rocketmq", help="Also let RocketMQ clients sign with the password; it is stored sealed."
    ),
]
Super = Annotated[bool, typer.Option("--super", help="Let the user do everything.")]


def create(
    name: options.NewName,
    mechanism: Mechanisms = None,
    rocketmq: Rocketmq = False,
    super_: Super = False,
    password_file: options.PasswordFile = None,
    iterations: Iterations = ITERATIONS,
    bootstrap_server: runner.Server = runner.SERVER,
    broker: runner.Broker = None,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Create a user, who may do nothing until ACLs allow it."""
    chosen = options.new_password(name, password_file)
    mechanisms = [each.value for each in mechanism or options.Mechanism]

    async def work(cluster: Cluster, remoting: RemotingConnection) -> None:
        from rockgate.cli.client.admin import users as kafka
        from rockgate.cli.client.kafka.errors import Missed
        from rockgate.cli.client.remoting import users as wire

        if rocketmq or super_:
            # One request: a user that is there is there completely.
            wire.check_private(remoting)
            credentials = [*mechanisms, *([wire.SIGNATURE] if rocketmq else [])]
            await wire.users_of(remoting).create(
                name, chosen, credentials=credentials, is_super=super_
            )
            return
        if await kafka.describe(cluster, [name]):
            raise Missed(
                f"user {name}",
                f"exists already. Change its password with `rockgate users password {name}`",
            )
        await kafka.set_password(cluster, name, chosen, mechanisms, iterations)

    runner.run_both(work, broker=broker, server=bootstrap_server, timeout=timeout, is_json=json)
    kind = "super user" if super_ else "user"
    hint = "" if super_ else " Let it do something with `rockgate acls add`."
    _finish([{"name": name, "is_created": True}], [f"Created {kind} {name}.{hint}"], json)


def password(
    name: options.Name,
    mechanism: Annotated[
        list[options.Mechanism] | None,
        typer.Option(
            "--mechanism",
            help="SASL mechanism for the password; repeatable.",
            show_default="those that the user has",
        ),
    ] = None,
    rocketmq: Rocketmq = False,
    password_file: options.PasswordFile = None,
    iterations: Iterations = ITERATIONS,
    bootstrap_server: runner.Server = runner.SERVER,
    broker: runner.Broker = None,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Change a user's password, by default for everything that it logs in with."""
    chosen = options.new_password(name, password_file)
    mechanisms = [each.value for each in mechanism or ()]

    async def work(cluster: Cluster, remoting: RemotingConnection) -> list[str]:
        from rockgate.cli.client.admin import users as kafka
        from rockgate.cli.client.remoting import users as wire

        known = await _known(cluster, remoting, name)
        wanted = [*mechanisms, *([wire.SIGNATURE] if rocketmq else [])] or [*known.credentials]
        if wire.SIGNATURE in wanted:
            wire.check_private(remoting)
            await wire.users_of(remoting).set_password(name, chosen, wanted)
        else:
            await kafka.set_password(cluster, name, chosen, wanted, iterations)
        return wanted

    wanted = runner.run_both(
        work, broker=broker, server=bootstrap_server, timeout=timeout, is_json=json
    )
    row = {"name": name, "is_altered": True, "credentials": wanted}
    _finish([row], [f"Changed the password of {name} for {', '.join(wanted)}."], json)


def disable(
    names: options.Names,
    bootstrap_server: runner.Server = runner.SERVER,
    broker: runner.Broker = None,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Keep users from logging in; their open connections are closed."""
    _enable(names, False, bootstrap_server, broker, timeout, json)


def enable(
    names: options.Names,
    bootstrap_server: runner.Server = runner.SERVER,
    broker: runner.Broker = None,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Let disabled users log in again."""
    _enable(names, True, bootstrap_server, broker, timeout, json)


def delete(
    names: options.Names,
    yes: runner.Yes = False,
    bootstrap_server: runner.Server = runner.SERVER,
    broker: runner.Broker = None,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Delete users and their ACLs. Asks for confirmation on a terminal."""
    runner.confirm(f"Delete {', '.join(names)} and all of their ACLs?", is_sure=yes)

    async def work(cluster: Cluster, remoting: RemotingConnection) -> list[ClientError]:
        from rockgate.cli.client.kafka.errors import ClientError, Unreachable

        errors: list[ClientError] = []
        for name in dict.fromkeys(names):
            try:
                await _delete(cluster, remoting, name)
            except Unreachable:
                raise
            except ClientError as error:
                errors.append(error)
            else:
                gone.append(name)
        return errors

    gone: list[str] = []
    errors = runner.run_both(
        work, broker=broker, server=bootstrap_server, timeout=timeout, is_json=json
    )
    rows = [{"name": name, "is_deleted": True} for name in gone]
    _finish(rows, [f"Deleted user {name}." for name in gone], json, errors)


async def _delete(cluster: Cluster, remoting: RemotingConnection, name: str) -> None:
    from rockgate.cli.client.admin import users as kafka
    from rockgate.cli.client.remoting import users as wire

    try:
        users = wire.users_of(remoting)
        if await users.find(name) is None:
            raise _unknown(name)
        await users.delete(name)
    except wire.ABSENT:
        found = await kafka.describe(cluster, [name])
        if not found:
            raise _unknown(name) from None
        # ACLs first: a user of the same name who is created later must not have them.
        await _delete_acls(cluster, name)
        await kafka.remove(cluster, found[0])


async def _delete_acls(cluster: Cluster, name: str) -> None:
    from rockgate.cli.client.admin import acls
    from rockgate.cli.client.kafka.errors import Refused
    from rockgate.protocol.kafka.errors import ErrorCode

    try:
        found = await acls.describe(cluster, [acls.AclFilter(principal=f"User:{name}")])
    except Refused as error:
        if error.code == ErrorCode.SECURITY_DISABLED:
            return
        raise
    for problem in (await acls.delete(cluster, found)).values():
        if problem is not None:
            raise problem


def _enable(
    names: Sequence[str],
    is_enabled: bool,
    server: str,
    broker: str | None,
    timeout: str,
    json: bool,
) -> None:
    async def work(remoting: RemotingConnection) -> list[ClientError]:
        from rockgate.cli.client.remoting import users as wire

        errors: list[ClientError] = []
        users = wire.users_of(remoting)
        for name in dict.fromkeys(names):
            if await users.find(name) is None:
                errors.append(_unknown(name))
                continue
            await users.enable(name, is_enabled=is_enabled)
            done.append(name)
        return errors

    done: list[str] = []
    errors = runner.run_remoting(work, broker=broker, server=server, timeout=timeout, is_json=json)
    word = "Enabled" if is_enabled else "Disabled"
    rows = [{"name": name, "is_enabled": is_enabled} for name in done]
    _finish(rows, [f"{word} user {name}." for name in done], json, errors)


async def _known(cluster: Cluster, remoting: RemotingConnection, name: str) -> Known:
    """What is known of a user who exists."""
    from rockgate.cli.commands.users import show
    from rockgate.cli.text import tables

    found = await show.users(cluster, remoting, [name])
    if not found.users:
        raise _unknown(name)
    if found.reason:
        tables.note(
            f"rockgate: A secret of RocketMQ's signatures, if {name} has one, stays as it is:"
            f" {found.reason}"
        )
    return found.users[0]


def _unknown(name: str) -> ClientError:
    from rockgate.cli.client.kafka.errors import Missed

    return Missed(f"user {name}", "does not exist. List users with `rockgate users list`")


def _finish(
    rows: list[dict[str, Any]],
    lines: Sequence[str],
    is_json: bool,
    errors: Sequence[ClientError] = (),
) -> None:
    def show() -> None:
        for line in lines:
            say(line)

    runner.finish({"users": rows}, errors, is_json=is_json, show=show)
