"""`rockgate topics list`: which topics there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rockgate.cli.app import completion, runner

if TYPE_CHECKING:
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.view import Topic

LIST_EXAMPLES = """
[bold]Examples[/bold]

rockgate topics list

rockgate topics list 'orders-*' --bootstrap-server kafka.example:9092

rockgate topics list --internal --json
"""


def list_(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="PATTERN",
            help="Topic name, or pattern with * and ?.",
            autocompletion=completion.topics,
        ),
    ] = "*",
    internal: Annotated[bool, typer.Option("--internal", help="Include internal topics.")] = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """List topics with their partition counts and replication factors."""
    from fnmatch import fnmatchcase

    from rockgate.cli.text import tables

    async def work(cluster: Cluster) -> list[Topic]:
        view = await cluster.metadata()
        return [
            each
            for each in view.topics.values()
            if fnmatchcase(each.name, pattern) and (internal or not each.is_internal)
        ]

    found = runner.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    rows = [
        {
            "name": each.name,
            "partitions": len(each.partitions),
            "replication_factor": each.replication_factor,
            "is_internal": each.is_internal,
        }
        for each in found
    ]
    runner.finish(
        {"topics": rows},
        is_json=json,
        show=lambda: tables.table(
            ("topic", "partitions", "replicas"),
            [(each.name, len(each.partitions), each.replication_factor) for each in found],
        ),
    )
