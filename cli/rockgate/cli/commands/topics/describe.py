"""`rockgate topics describe`: partitions, leaders, offsets, sizes, and configs that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import completion, runner
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.admin.topic_details import Described
    from rockgate.cli.client.kafka.view import Topic

DESCRIBE_EXAMPLES = """
[bold]Examples[/bold]

rockgate topics describe orders

rockgate topics describe 'orders-*' --json

rockgate topics describe --bootstrap-server kafka.example:9092
"""


def describe(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC",
            help="Topic names, or patterns with * and ?.",
            autocompletion=completion.topics,
        ),
    ] = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Describe topics: partitions, leaders, offsets, sizes and configs set on the topic.

    Without a name it describes all topics except internal ones.
    """
    from rockgate.cli.admin.topic_details import described

    found = runner.run(
        lambda cluster: described(cluster, names or []),
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )

    def show() -> None:
        for index, topic in enumerate(found.topics):
            if index:
                say()
            _show(topic, found)

    rows = [_fields(topic, found) for topic in found.topics]
    runner.finish({"topics": rows}, found.errors, is_json=json, show=show)


def _fields(topic: Topic, found: Described) -> dict[str, Any]:
    from base64 import urlsafe_b64encode

    parts = []
    for each in topic.partitions.values():
        bounds = found.bounds.get((topic.name, each.index))
        parts.append(
            {
                "partition": each.index,
                "leader": each.leader,
                "leader_epoch": each.leader_epoch,
                "replicas": list(each.replicas),
                "in_sync": list(each.in_sync),
                "offline": list(each.offline),
                "start_offset": bounds.start if bounds else None,
                "end_offset": bounds.end if bounds else None,
                "size_bytes": found.sizes.get((topic.name, each.index)),
            }
        )
    return {
        "name": topic.name,
        "topic_id": urlsafe_b64encode(topic.topic_id).decode().rstrip("="),
        "is_internal": topic.is_internal,
        "replication_factor": topic.replication_factor,
        "configs": {each.name: each.value for each in found.configs.get(topic.name, ())},
        "partitions": parts,
    }


def _show(topic: Topic, found: Described) -> None:
    from rockgate.cli.text import tables
    from rockgate.cli.text.values import plural, size_text

    fields = _fields(topic, found)
    parts = fields["partitions"]
    counts = [p["end_offset"] - p["start_offset"] for p in parts if p["end_offset"] is not None]
    sizes = [p["size_bytes"] for p in parts if p["size_bytes"] is not None]
    say(f"topic        {topic.name}")
    say(f"id           {fields['topic_id']}")
    say(f"partitions   {len(parts):,}, {plural(topic.replication_factor, 'replica')} each")
    say(f"records      {sum(counts):,}" + (f", {size_text(sum(sizes))}" if sizes else ""))
    settings = [f"{name}={value}" for name, value in fields["configs"].items()]
    say(f"configs      {settings[0] if settings else 'all defaults'}")
    for each in settings[1:]:
        say(f"             {each}")
    has_sizes = bool(sizes)
    columns = ["partition", "leader", "epoch", "replicas", "in sync", "start", "end", "records"]
    rows = []
    for part in parts:
        start, end = part["start_offset"], part["end_offset"]
        row = [
            part["partition"],
            "none" if part["leader"] < 0 else part["leader"],
            part["leader_epoch"],
            ",".join(map(str, part["replicas"])),
            ",".join(map(str, part["in_sync"])),
            start,
            end,
            None if end is None else end - start,
        ]
        if has_sizes:
            size = part["size_bytes"]
            row.append(None if size is None else size_text(size))
        rows.append(row)
    say()
    tables.table([*columns, "size"] if has_sizes else columns, rows)
