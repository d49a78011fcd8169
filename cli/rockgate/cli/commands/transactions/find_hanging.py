"""`rockgate transactions find-hanging` and `abort`: transactions that no coordinator will end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import completion, runner
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.client.admin.transactions import Hanging, Open
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.errors import Refused
    from rockgate.cli.client.kafka.view import Place

FIND_EXAMPLES = """
[bold]Examples[/bold]

rockgate transactions find-hanging

rockgate transactions find-hanging --topic orders --open-longer-than 1h --json
"""
ABORT_EXAMPLES = """
[bold]Examples[/bold]

rockgate transactions abort orders:3 --start-offset 1712

rockgate transactions abort orders:3 --producer-id 4001 --yes
"""


def find_hanging(
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC[:PARTITION,...]",
            help="Partitions to search; repeatable. Default: all.",
            autocompletion=completion.topics,
        ),
    ] = None,
    open_longer_than: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="Minimum time since the producer's last write; exceed its transaction timeout.",
        ),
    ] = "15m",
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Find open transactions that no coordinator will complete."""
    from rockgate.cli.admin import open_transactions
    from rockgate.cli.text import values

    wanted = runner.checked("--topic", values.topic_partitions, topic or ())
    open_ms = runner.checked("--open-longer-than", values.duration_ms, open_longer_than)

    async def work(cluster: Cluster) -> tuple[list[Hanging], list[Refused]]:
        return await open_transactions.hanging(cluster, await _places(cluster, wanted), open_ms)

    found, refused = runner.run(work, server=bootstrap_server, timeout=timeout, is_json=json)
    runner.finish(
        {"hanging": [_fields(each) for each in found]},
        refused,
        is_json=json,
        show=lambda: _show(found),
    )


def abort(
    place: Annotated[
        str, typer.Argument(metavar="TOPIC:PARTITION", autocompletion=completion.topics)
    ],
    start_offset: Annotated[
        int | None, typer.Option(min=0, help="First offset of the transaction.")
    ] = None,
    producer_id: Annotated[
        int | None, typer.Option(min=0, help="Producer id of the transaction.")
    ] = None,
    yes: runner.Yes = False,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Abort a transaction in one partition, bypassing its coordinator.

    Use it for transactions listed by `find-hanging`. For any other, read-committed consumers lose
    its records in this partition, even if the transaction commits in others.
    """
    wanted = _one_place(place)
    if (start_offset is None) == (producer_id is None):
        runner.usage("Give either --start-offset or --producer-id.")
    found = runner.run(
        lambda cluster: _find_open(cluster, wanted, start_offset, producer_id),
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    text = f"the transaction of producer {found.producer_id} at {place} offset {found.start_offset}"
    runner.confirm(f"Abort {text}?", is_sure=yes)
    error = runner.run(
        lambda cluster: _abort(cluster, found),
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    row = {**_open_fields(found), "is_aborted": error is None}
    runner.finish(
        {"transactions": [row]},
        [error] if error else [],
        is_json=json,
        show=lambda: None if error else say(f"Aborted {text}."),
    )


async def _abort(cluster: Cluster, found: Open) -> Refused | None:
    from rockgate.cli.client.admin import transactions as wire

    error = await wire.abort(cluster, found)
    return None if error is None else error.at(found.place)


async def _find_open(
    cluster: Cluster, place: Place, start_offset: int | None, producer_id: int | None
) -> Open:
    from rockgate.cli.client.admin import transactions as wire
    from rockgate.cli.client.kafka.errors import Missed, Refused

    found = (await wire.open_in(cluster, [place]))[place]
    if isinstance(found, Refused):
        raise found.at(place)
    for each in found:
        if each.start_offset == start_offset or each.producer_id == producer_id:
            return each
    others = ", ".join(f"{each.start_offset} (producer {each.producer_id})" for each in found)
    raise Missed(
        f"{place[0]}:{place[1]}",
        "no such open transaction. " + (f"Open at offsets: {others}" if others else "None is open"),
    )


async def _places(cluster: Cluster, wanted: Any) -> list[Place]:
    from rockgate.cli.admin.partitions import chosen

    if wanted:
        return await chosen(cluster, wanted)
    view = await cluster.metadata()
    return [(name, index) for name, each in view.topics.items() for index in each.partitions]


def _one_place(text: str) -> Place:
    from rockgate.cli.text import values

    found = runner.checked("TOPIC:PARTITION", values.topic_partitions, [text])
    [(name, indexes)] = found.items()
    if indexes is None or len(indexes) != 1:
        runner.usage(
            f"Invalid TOPIC:PARTITION: expected one partition such as orders:3, got {text!r}."
        )
    return name, indexes[0]


# What is printed


def _show(found: list[Hanging]) -> None:
    from time import time

    from rockgate.cli.text import tables, values

    if not found:
        tables.note("No hanging transactions found.")
        return
    now_ms = int(time() * 1000)
    tables.table(
        ("topic", "partition", "producer", "epoch", "start offset", "idle for", "id", "reason"),
        [
            (
                *each.open.place,
                each.open.producer_id,
                each.open.epoch,
                each.open.start_offset,
                values.span_text(max(0, now_ms - each.open.last_ms)),
                each.transactional_id,
                each.reason,
            )
            for each in found
        ],
    )
    first = found[0].open
    tables.note(
        f"To abort the first, run: rockgate transactions abort {first.place[0]}:{first.place[1]}"
        f" --start-offset {first.start_offset}"
    )


def _fields(each: Hanging) -> dict[str, Any]:
    return {
        **_open_fields(each.open),
        "transactional_id": each.transactional_id,
        "reason": each.reason,
    }


def _open_fields(each: Open) -> dict[str, Any]:
    return {
        "topic": each.place[0],
        "partition": each.place[1],
        "producer_id": each.producer_id,
        "producer_epoch": each.epoch,
        "start_offset": each.start_offset,
        "last_ms": each.last_ms,
    }
