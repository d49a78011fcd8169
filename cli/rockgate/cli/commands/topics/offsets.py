"""`rockgate topics offsets` and `delete-records`: print and advance where partitions begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import completion, runner

if TYPE_CHECKING:
    from rockgate.cli.client.admin.offsets import FoundOffset
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.view import Place

OFFSETS_EXAMPLES = """
[bold]Examples[/bold]

rockgate topics offsets orders

rockgate topics offsets orders:0,3 --at 2026-01-31T12:00:00Z

rockgate topics offsets orders --at max-timestamp --json
"""

DELETE_RECORDS_EXAMPLES = """
[bold]Examples[/bold]

rockgate topics delete-records orders:0 --before-offset 1500

rockgate topics delete-records orders --before-time 2026-01-31T00:00:00Z

rockgate topics delete-records orders --all --yes
"""

_AT_WORDS = {"earliest": -2, "latest": -1, "max-timestamp": -3}


def offsets(
    names: Annotated[
        list[str], typer.Argument(metavar="TOPIC[:PARTITION,...]", autocompletion=completion.topics)
    ],
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="First record at or after a time; or earliest, latest, max-timestamp.",
        ),
    ] = None,
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="End at the last stable offset.")
    ] = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Show the first and last offsets of partitions, or the offset at a time."""
    from rockgate.cli.admin.partitions import chosen
    from rockgate.cli.client.admin import offsets as wire
    from rockgate.cli.client.kafka.errors import Refused
    from rockgate.cli.text import tables, values

    wanted = runner.checked("TOPIC", values.topic_partitions, names)
    time = None if at is None else runner.checked("--at", _time, at)

    async def work(cluster: Cluster) -> dict[Place, Any]:
        places = await chosen(cluster, wanted)
        if time is None:
            return dict(await wire.bounds(cluster, places, is_committed=read_committed))
        return dict(
            await wire.list_offsets(
                cluster, dict.fromkeys(places, time), is_committed=read_committed
            )
        )

    found = runner.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    errors = [each.at(place) for place, each in found.items() if isinstance(each, Refused)]
    rows = [
        {"topic": topic, "partition": index, **_offset_fields(each)}
        for (topic, index), each in found.items()
        if not isinstance(each, Refused)
    ]

    def show() -> None:
        if time is None:
            columns = ("topic", "partition", "start", "end", "records")
            cells = [
                (r["topic"], r["partition"], r["start_offset"], r["end_offset"], r["records"])
                for r in rows
            ]
        else:
            columns = ("topic", "partition", "offset", "time", "")
            cells = [
                (r["topic"], r["partition"], r["offset"], values.time_text(r["timestamp_ms"]), "")
                for r in rows
            ]
        tables.table(columns, cells)

    runner.finish({"offsets": rows}, errors, is_json=json, show=show)


def delete_records(
    names: Annotated[
        list[str], typer.Argument(metavar="TOPIC[:PARTITION,...]", autocompletion=completion.topics)
    ],
    before_offset: Annotated[
        int | None, typer.Option(min=0, metavar="OFFSET", help="Delete records before this offset.")
    ] = None,
    before_time: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Delete records up to the first at or after this time."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Delete all current records.")] = False,
    yes: runner.Yes = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Delete the oldest records of partitions. Asks for confirmation on a terminal."""
    from rockgate.cli.admin.partitions import chosen
    from rockgate.cli.client.admin import offsets as wire
    from rockgate.cli.client.kafka.errors import Refused
    from rockgate.cli.text import tables, values

    if [before_offset is not None, before_time is not None, all_].count(True) != 1:
        runner.usage("Give exactly one of --before-offset, --before-time and --all.")
    wanted = runner.checked("TOPIC", values.topic_partitions, names)
    time = (
        None
        if before_time is None
        else runner.checked("--before-time", values.time_ms, before_time)
    )
    runner.confirm(f"Delete records from {', '.join(names)}?", is_sure=yes)

    async def work(cluster: Cluster) -> dict[Place, int | Refused]:
        places = await chosen(cluster, wanted)
        if time is None:
            return await wire.delete_records(
                cluster, dict.fromkeys(places, -1 if before_offset is None else before_offset)
            )
        found = await wire.list_offsets(cluster, dict.fromkeys(places, time))
        # A time after the last record means all of them.
        before = {p: each.offset for p, each in found.items() if not isinstance(each, Refused)}
        refused = {p: each for p, each in found.items() if isinstance(each, Refused)}
        return {**await wire.delete_records(cluster, before), **refused}

    found = runner.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    errors = [each.at(place) for place, each in found.items() if isinstance(each, Refused)]
    rows: list[dict[str, Any]] = [
        {"topic": topic, "partition": index, "start_offset": each}
        for (topic, index), each in found.items()
        if not isinstance(each, Refused)
    ]
    runner.finish(
        {"offsets": rows},
        errors,
        is_json=json,
        show=lambda: tables.table(
            ("topic", "partition", "start"),
            [(row["topic"], row["partition"], row["start_offset"]) for row in rows],
        ),
    )


def _time(text: str) -> int:
    from rockgate.cli.text.values import time_ms

    return _AT_WORDS[text] if text in _AT_WORDS else time_ms(text)


def _offset_fields(found: Any) -> dict[str, Any]:
    from rockgate.cli.client.admin.offsets import Bounds

    if isinstance(found, Bounds):
        return {
            "start_offset": found.start,
            "end_offset": found.end,
            "records": found.end - found.start,
        }
    place: FoundOffset = found
    return {"offset": place.offset, "timestamp_ms": place.timestamp_ms}
