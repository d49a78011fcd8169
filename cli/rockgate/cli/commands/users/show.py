"""`rockgate users list` and `describe`: users of both wires, put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rockgate.cli.app import runner
from rockgate.cli.commands.users import options

if TYPE_CHECKING:
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.errors import ClientError
    from rockgate.cli.client.remoting.connection import RemotingConnection

LIST_EXAMPLES = """
[bold]Examples[/bold]

rockgate users list

rockgate users list --json
"""
DESCRIBE_EXAMPLES = """
[bold]Examples[/bold]

rockgate users describe alice

rockgate users describe alice bob --json
"""


class Known(NamedTuple):
    """A user; type and status are None where no RocketMQ listener told them."""

    name: str
    type: str | None
    status: str | None
    credentials: dict[str, int | None]
    """Iterations by mechanism; None for the secret of signatures."""

    @property
    def fields(self) -> dict[str, Any]:
        """As programs see it."""
        return {
            "name": self.name,
            "type": self.type,
            "status": self.status,
            "credentials": [
                {"mechanism": mechanism, "iterations": iterations}
                for mechanism, iterations in self.credentials.items()
            ],
        }


class Found(NamedTuple):
    """Users, and why types and statuses are not known, if they are not."""

    users: list[Known]
    reason: str = ""


def list_(
    bootstrap_server: runner.Server = runner.SERVER,
    broker: runner.Broker = None,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """List all users, and what they can log in with."""
    found = runner.run_both(
        lambda cluster, remoting: users(cluster, remoting),
        broker=broker,
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    _finish(found, [], is_json=json)


def describe(
    names: options.Names,
    bootstrap_server: runner.Server = runner.SERVER,
    broker: runner.Broker = None,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Show users: type, status, and what they can log in with."""
    from rockgate.cli.client.kafka.errors import Missed

    found = runner.run_both(
        lambda cluster, remoting: users(cluster, remoting, names),
        broker=broker,
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    known = {each.name for each in found.users}
    missing = [name for name in dict.fromkeys(names) if name not in known]
    why = "does not exist. List users with `rockgate users list`"
    _finish(found, [Missed(f"user {name}", why) for name in missing], is_json=json)


async def users(
    cluster: Cluster, remoting: RemotingConnection, names: Sequence[str] | None = None
) -> Found:
    """What both listeners know of these users, or of all."""
    from rockgate.cli.client.admin import users as kafka
    from rockgate.cli.client.remoting import users as rocketmq

    scram = {each.name: each.iterations for each in await kafka.describe(cluster, names)}
    try:
        wire = rocketmq.users_of(remoting)
        if names is None:
            others = await wire.all()
        else:
            asked = [await wire.find(name) for name in dict.fromkeys(names)]
            others = [each for each in asked if each is not None]
    except rocketmq.ABSENT as error:
        return Found(
            [Known(name, None, None, dict(found)) for name, found in sorted(scram.items())],
            str(error),
        )
    known = []
    for each in sorted(others):
        credentials: dict[str, int | None] = dict(scram.get(each.name, {}))
        if rocketmq.SIGNATURE in each.credentials:
            credentials[rocketmq.SIGNATURE] = None
        type_ = "super" if each.is_super else "normal"
        status = "enabled" if each.is_enabled else "disabled"
        known.append(Known(each.name, type_, status, credentials))
    return Found(known)


def _finish(found: Found, errors: list[ClientError], *, is_json: bool) -> None:
    from rockgate.cli.text import tables

    def show() -> None:
        if not found.users and not errors:
            tables.note("There are no users. Create one with `rockgate users create`.")
        elif found.users:
            tables.table(("user", "type", "status", "logs in with"), map(_row, found.users))
        if found.reason:
            tables.note(f"rockgate: Types and statuses are unknown: {found.reason}")

    runner.finish(
        {"users": [each.fields for each in found.users]}, errors, is_json=is_json, show=show
    )


def _row(user: Known) -> tuple[str | None, ...]:
    names = [
        mechanism if iterations is None else f"{mechanism} ({iterations:,} iterations)"
        for mechanism, iterations in user.credentials.items()
    ]
    return user.name, user.type, user.status, ", ".join(names) or "nothing"
