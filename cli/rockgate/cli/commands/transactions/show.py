"""`rockgate transactions list` and `show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import runner
from rockgate.cli.commands.transactions import names
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.client.admin.transactions import Transaction
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.errors import ClientError
    from rockgate.cli.client.remoting.connection import RemotingConnection
    from rockgate.cli.client.remoting.halves import Halves
    from rockgate.protocol.remoting.bodies.admin import HalfView

LIST_EXAMPLES = """
[bold]Examples[/bold]

rockgate transactions list

rockgate transactions list --open-longer-than 5m --json

rockgate transactions list --kind half --group order-service

rockgate transactions list --kind kafka --all
"""
SHOW_EXAMPLES = """
[bold]Examples[/bold]

rockgate transactions show half:17

rockgate transactions show payments-writer-1 --json
"""

Kind = Annotated[str, typer.Option(metavar="KIND", help="Which to list: half, kafka or all.")]


def list_(
    kind: Kind = "all",
    open_longer_than: Annotated[
        str, typer.Option(metavar="DURATION", help="Only those open at least this long.")
    ] = "0s",
    group: Annotated[
        str | None, typer.Option(metavar="GROUP", help="Only half messages of this producer group.")
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Include transactional ids without an open transaction.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="Maximum number of half messages.")
    ] = 100,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """List undecided half messages and open Kafka transactions, oldest first."""
    from rockgate.cli.admin import open_transactions
    from rockgate.cli.client.kafka.errors import BrokerUnreachable, NotServed
    from rockgate.cli.client.remoting import halves as half_wire
    from rockgate.cli.text import values

    checked_kind(kind)
    open_ms = runner.checked("--open-longer-than", values.duration_ms, open_longer_than)

    async def work(
        cluster: Cluster, remoting: RemotingConnection
    ) -> tuple[Halves | ClientError, list[Transaction]]:
        halves: Halves | ClientError = half_wire.Halves(0, 0, [], has_more=False)
        if kind != "kafka":
            try:
                halves = await half_wire.list_halves(
                    remoting, limit=limit, group=group, open_ms=open_ms
                )
            except (BrokerUnreachable, NotServed) as error:
                # Another server of Kafka's wire has no such listener, and no half messages.
                if kind == "half" or broker is not None:
                    raise
                halves = error
        open_ = (
            [] if kind == "half" else await open_transactions.listed(cluster, open_ms, is_all=all_)
        )
        return halves, open_

    halves, found = runner.run_both(
        work, broker=broker, server=bootstrap_server, timeout=timeout, is_json=json
    )
    listed = halves if isinstance(halves, half_wire.Halves) else None
    output = {
        "undecided": listed.undecided if listed else None,
        "half_messages": [names.half_fields(each) for each in listed.found] if listed else None,
        "kafka_transactions": [names.transaction_fields(each) for each in found],
    }
    runner.finish(output, is_json=json, show=lambda: _show(kind, halves, found))


def show(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="half:OFFSET, transactional id or message id."),
    ],
    preview: Annotated[
        int, typer.Option(min=0, max=65_536, help="Bytes of the body to print.")
    ] = 512,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Show half messages and Kafka transactions."""
    from rockgate.cli.client.kafka.errors import Missed

    async def work(
        cluster: Cluster, remoting: RemotingConnection
    ) -> dict[str, HalfView | Transaction | None]:
        return {id_: await find(cluster, remoting, id_, preview) for id_ in ids}

    found = runner.run_both(
        work, broker=broker, server=bootstrap_server, timeout=timeout, is_json=json
    )
    halves, others = _parted(found)
    missing: list[ClientError] = [
        Missed(id_, "not found. List open transactions with `rockgate transactions list`")
        for id_, each in found.items()
        if each is None
    ]
    runner.finish(
        {
            "half_messages": [names.half_fields(each, is_whole=True) for each in halves],
            "kafka_transactions": [names.transaction_fields(each) for each in others],
        },
        missing,
        is_json=json,
        show=lambda: _show_each(halves, others),
    )


async def find(
    cluster: Cluster, remoting: RemotingConnection, id_: str, preview: int = 0
) -> HalfView | Transaction | None:
    """What an id refers to: a half message, a Kafka transaction, or nothing."""
    from rockgate.cli.client.admin import transactions
    from rockgate.cli.client.kafka.errors import BrokerUnreachable, NotServed, Refused
    from rockgate.cli.client.remoting import halves
    from rockgate.protocol.kafka.errors import ErrorCode

    offset = names.half_id(id_)
    if offset is not None:
        return (await halves.describe(remoting, [offset], preview=preview)).get(offset)
    found = (await transactions.describe(cluster, [id_]))[id_]
    if not isinstance(found, Refused):
        return found
    if found.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise found
    try:
        return (await halves.describe(remoting, [id_], preview=preview)).get(id_)
    except (BrokerUnreachable, NotServed):
        return None


def checked_kind(kind: str) -> None:
    """End the command if `--kind` has an unknown value."""
    if kind not in names.KINDS:
        runner.usage(f"Invalid --kind: expected half, kafka or all, got {kind!r}.")


# What is printed


def _parted(
    found: dict[str, HalfView | Transaction | None],
) -> tuple[list[HalfView], list[Transaction]]:
    from rockgate.protocol.remoting.bodies.admin import HalfView

    halves = [each for each in found.values() if isinstance(each, HalfView)]
    others = [
        each for each in found.values() if each is not None and not isinstance(each, HalfView)
    ]
    return halves, others


def _show(kind: str, halves: Halves | ClientError, found: list[Transaction]) -> None:
    from rockgate.cli.client.remoting.halves import Halves
    from rockgate.cli.text import tables

    if not isinstance(halves, Halves):
        tables.note(f"Half messages are not available: {halves}")
    elif halves.found:
        tables.table(
            ("id", "group", "topic", "age", "checks", "next check", "producers", "message id"),
            [_half_row(each, halves.now_ms) for each in halves.found],
            title=f"Half messages ({halves.undecided:,} undecided)",
        )
        if halves.has_more:
            tables.note("More half messages follow; raise --limit to list them.")
    elif kind != "kafka":
        tables.note("No undecided half messages.")
    if kind == "half":
        return
    if not found:
        tables.note("No open Kafka transactions.")
        return
    if isinstance(halves, Halves) and halves.found:
        say()
    tables.table(
        ("id", "state", "producer", "epoch", "open for", "timeout", "partitions"),
        [_row(each) for each in found],
        title="Kafka transactions",
    )


def _half_row(half: HalfView, now_ms: int) -> tuple[str | int | None, ...]:
    from rockgate.cli.text import values

    ahead_ms = half.next_check_ms - now_ms
    return (
        f"{names.HALF}{half.offset}",
        half.group,
        half.message.topic,
        values.span_text(max(0, now_ms - half.prepared_ms)),
        half.check_count,
        f"in {values.span_text(ahead_ms)}" if ahead_ms > 0 else "due",
        half.producer_count,
        half.message.message_id,
    )


def _row(each: Transaction) -> tuple[str | int | None, ...]:
    from time import time

    from rockgate.cli.text import values

    age = None
    if each.start_ms >= 0:
        age = values.span_text(max(0, int(time() * 1000) - each.start_ms))
    timeout = values.span_text(each.timeout_ms)
    return (each.id, each.state, each.producer_id, each.epoch, age, timeout, len(each.places))


def _show_each(halves: list[HalfView], others: list[Transaction]) -> None:
    from rockgate.cli.text import message_view, values

    blocks: list[list[tuple[str, str]]] = []
    for half in halves:
        checked = values.time_text(half.checked_ms)
        lines = [("id", f"{names.HALF}{half.offset}"), ("kind", "half message, undecided")]
        lines += [("group", half.group), ("prepared", values.time_text(half.prepared_ms))]
        lines += [("checks", str(half.check_count)), ("last check", checked)]
        lines += [("next check", values.time_text(half.next_check_ms))]
        lines += [("producers", f"{half.producer_count} connected")]
        blocks.append([*lines, *message_view.message_lines(half.message)])
    blocks += [_transaction_lines(each) for each in others]
    for number, block in enumerate(blocks):
        if number:
            say()
        message_view.echo_lines(block)


def _transaction_lines(each: Transaction) -> list[tuple[str, str]]:
    from rockgate.cli.text import values

    fields: dict[str, Any] = {
        "id": each.id,
        "kind": "Kafka transaction",
        "state": each.state,
        "producer": f"{each.producer_id} epoch {each.epoch}",
        "timeout": values.span_text(each.timeout_ms),
        "open since": values.time_text(each.start_ms),
    }
    places = [f"{topic}:{index}" for topic, index in each.places]
    return [*fields.items(), ("partitions", " ".join(places) or "-")]
