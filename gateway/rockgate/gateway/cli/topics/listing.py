"""`rockgate topics list`: which topics there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rockgate.gateway.cli import asking, completing

if TYPE_CHECKING:
    from rockgate.gateway.cli.wire.cluster import Cluster
    from rockgate.gateway.cli.wire.view import Topic

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
            help="A name, or a pattern with * and ?.",
            autocompletion=completing.topics,
        ),
    ] = "*",
    internal: Annotated[
        bool, typer.Option("--internal", help="The server's own topics, too.")
    ] = False,
    bootstrap_server: asking.Server = asking.SERVER,
    timeout: asking.Timeout = asking.TIMEOUT,
    json: asking.Json = False,
) -> None:
    """List the topics with their partitions and replicas."""
    from fnmatch import fnmatchcase

    from rockgate.gateway.cli import showing

    async def work(cluster: Cluster) -> list[Topic]:
        view = await cluster.metadata()
        return [
            each
            for each in view.topics.values()
            if fnmatchcase(each.name, pattern) and (internal or not each.is_internal)
        ]

    found = asking.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    rows = [
        {
            "name": each.name,
            "partitions": len(each.partitions),
            "replication_factor": each.replication_factor,
            "is_internal": each.is_internal,
        }
        for each in found
    ]
    asking.finish(
        {"topics": rows},
        is_json=json,
        show=lambda: showing.table(
            ("topic", "partitions", "replicas"),
            [(each.name, len(each.partitions), each.replication_factor) for each in found],
        ),
    )
