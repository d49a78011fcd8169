"""`rockgate groups delete` and `delete-offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import completion, runner
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.errors import ClientError, Refused
    from rockgate.cli.client.kafka.view import Place

DELETE_EXAMPLES = """
[bold]Examples[/bold]

rockgate groups delete billing

rockgate groups delete billing audit --yes
"""
DELETE_OFFSETS_EXAMPLES = """
[bold]Examples[/bold]

rockgate groups delete-offsets billing --topic orders

rockgate groups delete-offsets billing --topic orders:0,1 --yes
"""


def delete(
    groups: Annotated[list[str], typer.Argument(metavar="GROUP", autocompletion=completion.groups)],
    yes: runner.Yes = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Delete groups without members, and their offsets. Asks for confirmation on a terminal."""
    from rockgate.cli.client.admin import groups as wire
    from rockgate.cli.client.kafka.errors import Refused

    runner.confirm(f"Delete {', '.join(groups)} and all committed offsets?", is_sure=yes)

    async def work(cluster: Cluster) -> dict[str, Refused | None]:
        done: dict[str, Refused | None] = {}
        for group in groups:
            try:
                await wire.delete(cluster, group)
            except Refused as error:
                done[group] = error
            else:
                done[group] = None
        return done

    done = runner.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    gone = [group for group, error in done.items() if error is None]
    errors: list[ClientError] = [error for error in done.values() if error is not None]
    runner.finish(
        {"groups": [{"group": group, "is_deleted": True} for group in gone]},
        errors,
        is_json=json,
        show=lambda: _show_deleted(gone),
    )


def _show_deleted(groups: list[str]) -> None:
    for group in groups:
        say(f"Deleted group {group}.")


def delete_offsets(
    group: Annotated[str, typer.Argument(metavar="GROUP", autocompletion=completion.groups)],
    topic: Annotated[
        list[str],
        typer.Option(
            metavar="TOPIC[:PARTITION,...]", help="Topics to delete offsets of; repeatable."
        ),
    ],
    yes: runner.Yes = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Delete a group's offsets of topics no member reads. Asks for confirmation on a terminal."""
    from rockgate.cli.client.admin import committed
    from rockgate.cli.text import tables, values

    wanted = runner.checked("--topic", values.topic_partitions, topic)
    runner.confirm(f"Delete offsets of group {group} for {', '.join(topic)}?", is_sure=yes)

    async def work(cluster: Cluster) -> dict[Place, Refused | None]:
        known = await committed.fetch(cluster, group)
        places = [
            place
            for name, indexes in wanted.items()
            for place in (
                [each for each in known if each[0] == name]
                if indexes is None
                else [(name, index) for index in indexes]
            )
        ]
        return await committed.forget(cluster, group, places) if places else {}

    done = runner.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    rows: list[dict[str, Any]] = [
        {"topic": name, "partition": index, "is_deleted": True}
        for (name, index), error in done.items()
        if error is None
    ]
    errors: list[ClientError] = [error for error in done.values() if error is not None]

    def show() -> None:
        if not done:
            say(f"Group {group} has no committed offsets there.")
        elif rows:
            tables.table(
                ("topic", "partition", ""),
                [(row["topic"], row["partition"], "deleted") for row in rows],
            )

    runner.finish({"group": group, "offsets": rows}, errors, is_json=json, show=show)
