"""`rockgate topics create`, `alter` and `delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import runner
from rockgate.cli.commands.topics import options
from rockgate.cli.text.echo import say
from rockgate.cli.text.values import plural

if TYPE_CHECKING:
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.errors import ClientError

CREATE_EXAMPLES = """
[bold]Examples[/bold]

rockgate topics create orders

rockgate topics create orders payments --partitions 12 --config retention.ms=86400000

rockgate topics create orders --if-not-exists --dry-run

rockgate topics create reminders --config message.type=DELAY
"""


Partitions = Annotated[
    int | None,
    typer.Option(
        "--partitions", "-p", min=1, show_default="server default", help="Number of partitions."
    ),
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option("--replication-factor", "-r", min=1, show_default="server default"),
]


def create(
    names: options.Names,
    partitions: Partitions = None,
    replication_factor: ReplicationFactor = None,
    config: options.Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Ignore topics that already exist.")
    ] = False,
    dry_run: runner.DryRun = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Create topics, all with the same partitions and configs."""
    from rockgate.cli.client.admin import topics
    from rockgate.cli.client.kafka.errors import Refused
    from rockgate.cli.text import values
    from rockgate.protocol.kafka.errors import ErrorCode

    configs = runner.checked("--config", values.mapping, config or ())
    done = runner.run(
        lambda cluster: topics.create(
            cluster,
            names,
            partition_count=partitions or -1,
            replication_factor=replication_factor or -1,
            configs=configs,
            is_dry_run=dry_run,
        ),
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    rows: list[dict[str, Any]] = []
    errors: list[ClientError] = []
    for name, each in done.items():
        if not isinstance(each, Refused):
            rows.append(
                {
                    "name": name,
                    "is_created": not dry_run,
                    "partitions": each.partition_count,
                    "replication_factor": each.replication_factor,
                }
            )
        elif if_not_exists and each.code == ErrorCode.TOPIC_ALREADY_EXISTS:
            rows.append({"name": name, "is_created": False})
        else:
            errors.append(each)

    def show() -> None:
        for row in rows:
            if "partitions" not in row:
                say(f"Topic {row['name']} already exists.")
            else:
                count = row["partitions"]
                known = f" with {plural(count, 'partition')}" if count > 0 else ""
                name = row["name"]
                say(
                    f"Dry run: would create topic {name}{known}."
                    if dry_run
                    else f"Created topic {name}{known}."
                )

    runner.finish({"topics": rows}, errors, is_json=json, show=show)


ALTER_EXAMPLES = """
[bold]Examples[/bold]

rockgate topics alter orders --partitions 24

rockgate topics alter orders --config retention.ms=3600000 --delete-config cleanup.policy

rockgate topics alter orders --partitions 24 --dry-run
"""


def alter(
    name: options.Name,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", min=1, help="New total number of partitions."),
    ] = None,
    config: options.Configs = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Config to reset to its default; repeatable."),
    ] = None,
    dry_run: runner.DryRun = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Add partitions to a topic, or change its configs.

    Partitions cannot be removed. After adding partitions, records with the same key may go to a
    different one.
    """
    from rockgate.cli.client.admin import configs, topics
    from rockgate.cli.client.kafka.errors import Refused
    from rockgate.cli.text import values

    wanted = runner.checked("--config", values.mapping, config or ())
    changes: list[tuple[str, configs.Change, str | None]] = [
        *((key, configs.Change.SET, value) for key, value in wanted.items()),
        *((key, configs.Change.DELETE, None) for key in delete_config or ()),
    ]
    if partitions is None and not changes:
        runner.usage("Nothing to alter: give --partitions, --config or --delete-config.")

    async def work(cluster: Cluster) -> list[Refused]:
        await cluster.topics([name])
        errors: list[Refused | None] = []
        if partitions is not None:
            errors.append(await topics.grow(cluster, name, partitions, is_dry_run=dry_run))
        if changes and not any(errors):
            resource = configs.Resource(configs.ResourceType.TOPIC, name)
            errors.append(await configs.alter(cluster, resource, changes, is_dry_run=dry_run))
        return [each for each in errors if each is not None]

    errors = runner.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    row = {"name": name, "is_altered": not errors and not dry_run}
    runner.finish(
        {"topics": [row]},
        errors,
        is_json=json,
        show=lambda: (
            None
            if errors
            else say(f"Dry run: would alter topic {name}." if dry_run else f"Altered topic {name}.")
        ),
    )


DELETE_EXAMPLES = """
[bold]Examples[/bold]

rockgate topics delete orders

rockgate topics delete orders payments --yes --if-exists
"""


def delete(
    names: options.Names,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Ignore topics that do not exist.")
    ] = False,
    yes: runner.Yes = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Delete topics and all their records. Asks for confirmation on a terminal."""
    from rockgate.cli.client.admin import topics
    from rockgate.protocol.kafka.errors import ErrorCode

    runner.confirm(f"Delete {', '.join(names)} and all records?", is_sure=yes)
    done = runner.run(
        lambda cluster: topics.delete(cluster, names),
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    rows, errors = [], []
    for name, error in done.items():
        is_missing = error is not None and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if error is None or (is_missing and if_exists):
            rows.append({"name": name, "is_deleted": error is None})
        else:
            errors.append(error)

    def show() -> None:
        for row in rows:
            name = row["name"]
            say(f"Deleted topic {name}." if row["is_deleted"] else f"Topic {name} does not exist.")

    runner.finish({"topics": rows}, errors, is_json=json, show=show)
