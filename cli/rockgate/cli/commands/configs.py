"""`rockgate configs`: shows and changes the configs of topics, brokers and groups."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import runner
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.client.admin.configs import Change, Config, Resource
    from rockgate.cli.client.kafka.errors import ClientError

app = typer.Typer(
    help="Show and change configs of topics, brokers and groups.",
    no_args_is_help=True,
    add_completion=False,
)


class Entity(StrEnum):
    """The types of resources with configs, as users write them."""

    TOPIC = "topic"
    BROKER = "broker"
    GROUP = "group"
    BROKER_LOGGER = "broker-logger"
    CLIENT_METRICS = "client-metrics"


Kind = Annotated[
    Entity, typer.Argument(metavar="KIND", help="Resource type: topic, broker, group, …")
]
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Topic, broker id or 'default', or group."),
]

LIST_EXAMPLES = """
[bold]Examples[/bold]

rockgate configs list

rockgate configs list --kind group --json
"""
DESCRIBE_EXAMPLES = """
[bold]Examples[/bold]

rockgate configs describe topic orders

rockgate configs describe topic orders --all --docs

rockgate configs describe broker 1 --all --json
"""
SET_EXAMPLES = """
[bold]Examples[/bold]

rockgate configs set topic orders retention.ms=3600000 max.message.bytes=2097152

rockgate configs set topic orders --append cleanup.policy=compact

rockgate configs set group billing consumer.session.timeout.ms=30000 --dry-run
"""
UNSET_EXAMPLES = """
[bold]Examples[/bold]

rockgate configs unset topic orders retention.ms
"""


@app.command("list", epilog=LIST_EXAMPLES)
def list_(
    kind: Annotated[list[Entity] | None, typer.Option(help="Only this type; repeatable.")] = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """List resources that have configs: topics, brokers, groups."""
    from rockgate.cli.client.admin import configs
    from rockgate.cli.text import tables

    asked = kind or [Entity.TOPIC, Entity.BROKER, Entity.GROUP]
    kinds = [_kind(each) for each in asked]
    found = runner.run(
        lambda cluster: configs.resources(cluster, kinds),
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    runner.finish(
        {"resources": [{"kind": each.kind.word, "name": each.name} for each in found]},
        is_json=json,
        show=lambda: tables.table(
            ("kind", "name"), [(each.kind.word, each.name or "default") for each in found]
        ),
    )


@app.command(epilog=DESCRIBE_EXAMPLES)
def describe(
    kind: Kind,
    name: Name,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Include defaults.")] = False,
    docs: Annotated[bool, typer.Option("--docs", help="Include descriptions.")] = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Show the configs set on a resource, or all of them."""
    from rockgate.cli.client.admin import configs
    from rockgate.cli.client.kafka.errors import Refused
    from rockgate.cli.text import tables

    resource = _resource(kind, name)
    found = runner.run(
        lambda cluster: configs.describe(cluster, [resource], with_documentation=docs),
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    ).get(resource, [])
    errors: list[ClientError] = [found] if isinstance(found, Refused) else []
    settings = [] if isinstance(found, Refused) else [x for x in found if all_ or x.is_own]

    def show() -> None:
        if errors:
            return
        if not settings:
            tables.note(f"All configs of {resource} are at their defaults; use --all to show them.")
            return
        columns = ["config", "value", "from", "type", *(["documentation"] if docs else [])]
        tables.table(columns, [_row(each, docs) for each in settings])

    fields = {"kind": kind.value, "name": name, "configs": [_fields(each) for each in settings]}
    runner.finish({"resources": [] if errors else [fields]}, errors, is_json=json, show=show)


@app.command("set", epilog=SET_EXAMPLES)
def set_(
    kind: Kind,
    name: Name,
    config: Annotated[list[str] | None, typer.Argument(metavar="CONFIG=VALUE")] = None,
    append: Annotated[
        list[str] | None,
        typer.Option(metavar="CONFIG=VALUE", help="Append to a list config; repeatable."),
    ] = None,
    subtract: Annotated[
        list[str] | None,
        typer.Option(metavar="CONFIG=VALUE", help="Remove from a list config; repeatable."),
    ] = None,
    dry_run: runner.DryRun = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Set configs, leaving others unchanged."""
    from rockgate.cli.client.admin.configs import Change
    from rockgate.cli.text import values

    changes = [
        *((n, Change.SET, v) for n, v in runner.checked("CONFIG", values.pairs, config or ())),
        *((n, Change.APPEND, v) for n, v in runner.checked("--append", values.pairs, append or ())),
        *(
            (n, Change.SUBTRACT, v)
            for n, v in runner.checked("--subtract", values.pairs, subtract or ())
        ),
    ]
    _alter(_resource(kind, name), changes, dry_run, bootstrap_server, timeout, json)


@app.command(epilog=UNSET_EXAMPLES)
def unset(
    kind: Kind,
    name: Name,
    config: Annotated[list[str], typer.Argument(metavar="CONFIG")],
    dry_run: runner.DryRun = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Reset configs to their defaults."""
    from rockgate.cli.client.admin.configs import Change

    changes: list[tuple[str, Change, str | None]] = [(n, Change.DELETE, None) for n in config]
    _alter(_resource(kind, name), changes, dry_run, bootstrap_server, timeout, json)


def _alter(
    resource: Resource,
    changes: list[tuple[str, Change, str | None]],
    is_dry_run: bool,
    server: str,
    timeout: str,
    is_json: bool,
) -> None:
    from rockgate.cli.client.admin import configs

    if not changes:
        runner.usage("Nothing to set: give CONFIG=VALUE, --append or --subtract.")
    error = runner.run(
        lambda cluster: configs.alter(cluster, resource, changes, is_dry_run=is_dry_run),
        server=server,
        timeout=timeout,
        is_json=is_json,
    )
    done = f"Dry run: would change {resource}." if is_dry_run else f"Changed {resource}."
    fields = {
        "kind": resource.kind.word,
        "name": resource.name,
        "is_altered": error is None and not is_dry_run,
    }
    runner.finish(
        {"resources": [fields]},
        [error] if error else [],
        is_json=is_json,
        show=lambda: None if error else say(done),
    )


def _kind(entity: Entity) -> Any:
    from rockgate.cli.client.admin import configs

    return configs.ResourceType[entity.name]


def _resource(entity: Entity, name: str) -> Resource:
    from rockgate.cli.client.admin import configs

    kind = configs.ResourceType[entity.name]
    if kind in (configs.ResourceType.BROKER, configs.ResourceType.BROKER_LOGGER):
        if name == "default" and kind is configs.ResourceType.BROKER:
            name = ""
        elif not (name.isascii() and name.isdigit()):
            runner.usage(f"Invalid NAME: expected a numeric {entity.value} id, got {name!r}.")
    return configs.Resource(kind, name)


def _row(config: Config, with_docs: bool) -> tuple[str | None, ...]:
    value = "(hidden)" if config.is_sensitive else config.value
    source = f"{config.source}, read-only" if config.is_read_only else config.source
    row: tuple[str | None, ...] = (config.name, value, source, config.type)
    return (*row, config.documentation) if with_docs else row


def _fields(config: Config) -> dict[str, Any]:
    return {
        "name": config.name,
        "value": config.value,
        "source": config.source,
        "type": config.type,
        "is_read_only": config.is_read_only,
        "is_sensitive": config.is_sensitive,
        "documentation": config.documentation,
        "synonyms": [
            {"name": name, "value": value, "source": source}
            for name, value, source in config.synonyms
        ],
    }
