"""`rockgate quotas`: how much clients may produce, fetch and ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rockgate.cli.app import runner
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.client.admin.quotas import Entity

app = typer.Typer(help="Show and change client quotas.", no_args_is_help=True, add_completion=False)

User = Annotated[str | None, typer.Option(metavar="NAME", help="User.")]
ClientId = Annotated[str | None, typer.Option(metavar="NAME", help="Client id.")]
Ip = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Client IP address.")]
UserDefault = Annotated[
    bool, typer.Option("--user-default", help="Default for users without a quota.")
]
ClientIdDefault = Annotated[
    bool, typer.Option("--client-id-default", help="Default for client ids without a quota.")
]
IpDefault = Annotated[
    bool, typer.Option("--ip-default", help="Default for addresses without a quota.")
]

DESCRIBE_EXAMPLES = """
[bold]Examples[/bold]

rockgate quotas describe

rockgate quotas describe --user alice --json

rockgate quotas describe --client-id-default
"""
ALTER_EXAMPLES = """
[bold]Examples[/bold]

rockgate quotas alter --client-id loader --set producer_byte_rate=1048576

rockgate quotas alter --user alice --client-id-default --set consumer_byte_rate=5e6

rockgate quotas alter --user alice --unset request_percentage --dry-run
"""


@app.command(epilog=DESCRIBE_EXAMPLES)
def describe(
    user: User = None,
    user_default: UserDefault = False,
    client_id: ClientId = None,
    client_id_default: ClientIdDefault = False,
    ip: Ip = None,
    ip_default: IpDefault = False,
    strict: Annotated[bool, typer.Option("--strict", help="Only this exact entity.")] = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Show the quotas of an entity, or all quotas."""
    from rockgate.cli.client.admin import quotas
    from rockgate.cli.text import tables

    entity = _entity(user, user_default, client_id, client_id_default, ip, ip_default)
    found = runner.run(
        lambda cluster: quotas.describe(cluster, entity, is_strict=strict),
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )

    def show() -> None:
        if not found:
            tables.note("No quotas found.")
            return
        tables.table(
            ("entity", "quota", "value"),
            [
                (_text(each.entity), name, f"{value:.17g}")
                for each in found
                for name, value in each.values.items()
            ],
        )

    rows = [{"entity": dict(each.entity), "quotas": dict(each.values)} for each in found]
    runner.finish({"quotas": rows}, is_json=json, show=show)


@app.command(epilog=ALTER_EXAMPLES)
def alter(
    user: User = None,
    user_default: UserDefault = False,
    client_id: ClientId = None,
    client_id_default: ClientIdDefault = False,
    ip: Ip = None,
    ip_default: IpDefault = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="QUOTA=NUMBER", help="Quota to set; repeatable."),
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option(metavar="QUOTA", help="Quota to remove; repeatable.")
    ] = None,
    dry_run: runner.DryRun = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Set or remove quotas: producer_byte_rate, consumer_byte_rate, request_percentage,
    controller_mutation_rate, connection_creation_rate."""
    from rockgate.cli.client.admin import quotas

    entity = _entity(user, user_default, client_id, client_id_default, ip, ip_default)
    if not entity:
        runner.usage("Give an entity: --user, --client-id, --ip, or one of their -default flags.")
    changes: list[tuple[str, float | None]] = [
        *runner.checked("--set", _numbers, set_ or ()),
        *((name, None) for name in unset or ()),
    ]
    if not changes:
        runner.usage("Nothing to alter: give --set or --unset.")
    error = runner.run(
        lambda cluster: quotas.alter(cluster, entity, changes, is_dry_run=dry_run),
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    row = {"entity": dict(entity), "is_altered": error is None and not dry_run}
    what = _text(entity)
    runner.finish(
        {"quotas": [row]},
        [error] if error else [],
        is_json=json,
        show=lambda: (
            None
            if error
            else say(
                f"Dry run: would alter quotas of {what}."
                if dry_run
                else f"Altered quotas of {what}."
            )
        ),
    )


def _numbers(given: list[str]) -> list[tuple[str, float | None]]:
    from rockgate.cli.text.values import pairs

    found: list[tuple[str, float | None]] = []
    for name, value in pairs(given):
        try:
            found.append((name, float(value or "")))
        except ValueError:
            raise ValueError(f"expected a number for {name}, got {value!r}") from None
    return found


def _entity(
    user: str | None,
    user_default: bool,
    client_id: str | None,
    client_id_default: bool,
    ip: str | None,
    ip_default: bool,
) -> Entity:
    parts = []
    for kind, name, is_default in (
        ("user", user, user_default),
        ("client-id", client_id, client_id_default),
        ("ip", ip, ip_default),
    ):
        if name is not None and is_default:
            runner.usage(f"Give --{kind} or --{kind}-default, not both.")
        if name is not None or is_default:
            parts.append((kind, name))
    return tuple(parts)


def _text(entity: Entity) -> str:
    parts = [f"{kind} {'default' if name is None else name}" for kind, name in entity]
    return ", ".join(parts)
