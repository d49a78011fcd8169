"""`rockgate cluster`: brokers, supported APIs and log directories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from rockgate.cli.app import runner
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.client.admin.topics import LogDir
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.view import View

app = typer.Typer(
    help="Show brokers, supported APIs and log directories.",
    no_args_is_help=True,
    add_completion=False,
)

DESCRIBE_EXAMPLES = """
[bold]Examples[/bold]

rockgate cluster describe

rockgate cluster describe --json --bootstrap-server kafka.example:9092
"""
APIS_EXAMPLES = """
[bold]Examples[/bold]

rockgate cluster apis

rockgate cluster apis --json | jq '.apis[] | select(.name == "Fetch")'
"""
LOG_DIRS_EXAMPLES = """
[bold]Examples[/bold]

rockgate cluster log-dirs
"""


@app.command(epilog=DESCRIBE_EXAMPLES)
def describe(
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Show the cluster's id, brokers and features."""
    from rockgate.cli.text import tables
    from rockgate.cli.text.values import plural

    async def work(cluster: Cluster) -> tuple[View, dict[str, int]]:
        view = await cluster.metadata()
        return view, dict((await cluster.anyone()).finalized)

    view, features = runner.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    brokers = [
        {
            "node_id": each.node_id,
            "host": each.address.host,
            "port": each.address.port,
            "rack": each.rack,
            "is_controller": each.node_id == view.controller,
        }
        for each in view.nodes.values()
    ]
    partition_count = sum(len(each.partitions) for each in view.topics.values())
    fields = {
        "cluster_id": view.cluster_id,
        "controller": view.controller,
        "brokers": brokers,
        "features": features,
        "topics": len(view.topics),
        "partitions": partition_count,
    }

    def show() -> None:
        say(f"cluster      {view.cluster_id}")
        say(f"controller   {view.controller}")
        say(f"topics       {len(view.topics):,}, {plural(partition_count, 'partition')}")
        levels = ", ".join(f"{name}={level}" for name, level in sorted(features.items()))
        say(f"features     {levels or '-'}")
        say()
        tables.table(
            ("broker", "host", "port", "rack"),
            [(x.node_id, x.address.host, x.address.port, x.rack) for x in view.nodes.values()],
        )

    runner.finish(fields, is_json=json, show=show)


@app.command(epilog=APIS_EXAMPLES)
def apis(
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """List the Kafka APIs a broker supports, with their versions."""
    from rockgate.cli.text import tables
    from rockgate.protocol.kafka.api import APIS
    from rockgate.protocol.kafka.versions import NO_VERSIONS

    async def work(cluster: Cluster) -> dict[int, Any]:
        return (await cluster.anyone()).served

    served = runner.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    known = {int(key): api for key, api in APIS.items()}
    rows: list[dict[str, Any]] = []
    for key in sorted({*served, *known}):
        theirs = served.get(key, NO_VERSIONS)
        rows.append(
            {
                "key": key,
                "name": known[key].name if key in known else None,
                "min_version": theirs.min if theirs else None,
                "max_version": theirs.max if theirs else None,
            }
        )
    runner.finish(
        {"apis": rows},
        is_json=json,
        show=lambda: tables.table(
            ("key", "api", "versions"),
            [(r["key"], r["name"], str(served.get(r["key"], "not supported"))) for r in rows],
        ),
    )


@app.command("log-dirs", epilog=LOG_DIRS_EXAMPLES)
def log_dirs(
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Show the brokers' log directories, with used and free space."""
    from rockgate.cli.client.admin import topics
    from rockgate.cli.client.kafka.errors import NotServed
    from rockgate.cli.text import tables
    from rockgate.cli.text.values import size_text

    async def work(cluster: Cluster) -> list[LogDir]:
        found = await topics.log_dirs(cluster)
        if found is None:
            raise NotServed("The server does not support DescribeLogDirs")
        return found

    found = runner.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    rows = [
        {
            "broker": each.node_id,
            "path": each.path,
            "error_code": each.error_code,
            "partitions": len(each.sizes),
            "size_bytes": sum(each.sizes.values()),
            "total_bytes": each.total_bytes if each.total_bytes >= 0 else None,
            "usable_bytes": each.usable_bytes if each.usable_bytes >= 0 else None,
        }
        for each in found
    ]
    runner.finish(
        {"log_dirs": rows},
        is_json=json,
        show=lambda: tables.table(
            ("broker", "path", "partitions", "size", "usable", "total"),
            [
                (
                    each.node_id,
                    each.path,
                    len(each.sizes),
                    size_text(sum(each.sizes.values())),
                    size_text(each.usable_bytes),
                    size_text(each.total_bytes),
                )
                for each in found
            ],
        ),
    )
