"""`rockgate delay`: delayed messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rockgate.cli.app import completion, runner
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.client.kafka.errors import ClientError
    from rockgate.cli.client.remoting.connection import RemotingConnection
    from rockgate.cli.client.remoting.delays import Count, Cursor, Overview
    from rockgate.protocol.remoting.bodies.admin import (
        Cancelled,
        Delayed,
        DelayPlace,
        DeliveredEarly,
    )

app = typer.Typer(
    help="List, show, cancel and deliver delayed messages.",
    no_args_is_help=True,
    add_completion=False,
)

LOOKED_MAX: Final = 100_000
"""How many are read without --exact: it takes about a second."""
LIMIT_MAX: Final = 999

LIST_EXAMPLES = """
[bold]Examples[/bold]

rockgate delay list

rockgate delay list --topic orders --limit 100

rockgate delay list --limit 0 --exact --json
"""
SHOW_EXAMPLES = """
[bold]Examples[/bold]

rockgate delay show rmq_sys_wheel_timer/0/17

rockgate delay show 7F0000010007...0001 --preview 4096 --json
"""
CANCEL_EXAMPLES = """
[bold]Examples[/bold]

rockgate delay cancel rmq_sys_wheel_timer/0/17

rockgate delay cancel djEgb3JkZXJz... --yes        # a recall handle, as the send returned it
"""
DELIVER_EXAMPLES = """
[bold]Examples[/bold]

rockgate delay deliver rmq_sys_wheel_timer/0/17

rockgate delay deliver later/0/0 --yes
"""


@app.command("list", epilog=LIST_EXAMPLES)
def list_(
    topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help="Only messages for this topic; scans all of them.",
            autocompletion=completion.topics,
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            min=0, max=LIMIT_MAX, help="Maximum number of messages to list, soonest first."
        ),
    ] = 20,
    after: Annotated[
        str | None,
        typer.Option(
            metavar="CURSOR", help="Start after this cursor, as printed by the last page."
        ),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help=f"Count by topic even above {LOOKED_MAX:,} messages."),
    ] = False,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Count delayed messages by topic and due time, and list the soonest."""
    from rockgate.cli.client.remoting import delays
    from rockgate.gateway.kafka.request.names import to_store

    cursor = runner.checked("--after", _cursor, after) if after else None

    async def work(remoting: RemotingConnection) -> tuple[Overview, dict[str, Delayed], bool]:
        by_target = exact or await delays.waiting_count(remoting) <= LOOKED_MAX
        found = await delays.overview(
            remoting,
            limit=limit,
            after=cursor,
            topic=None if topic is None else to_store(topic),
            by_target=by_target,
            progress=_progress,
        )
        details = await delays.describe(remoting, [each.id for each in found.soonest])
        return found, details, by_target or topic is not None

    found, details, is_exact = runner.run_remoting(
        work, broker=broker, server=bootstrap_server, timeout=timeout, is_json=json
    )
    last = found.soonest[-1] if found.soonest and found.has_more else None
    output = {
        "waiting": found.waiting,
        "now_ms": found.now_ms,
        "counts": [_count_fields(each) for each in found.counts],
        "messages": [_row_fields(each, details.get(each.id)) for each in found.soonest],
        "next": f"{last.due_ms}:{last.sequence}" if last else None,
    }
    runner.finish(
        output, is_json=json, show=lambda: _show(found, details, output["next"], is_exact=is_exact)
    )


@app.command(epilog=SHOW_EXAMPLES)
def show(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="Id printed by `list`, message id or recall handle."),
    ],
    preview: Annotated[
        int, typer.Option(min=0, max=65_536, help="Bytes of the body to print.")
    ] = 512,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Show delayed messages: properties and the start of the body."""
    from rockgate.cli.client.kafka.errors import Missed
    from rockgate.cli.client.remoting import delays

    found = runner.run_remoting(
        lambda remoting: delays.describe(remoting, ids, preview=preview, with_due=True),
        broker=broker,
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    rows = [each for id_ in ids if (each := found.get(id_)) is not None]
    missing: list[ClientError] = [Missed(id_, _UNKNOWN) for id_ in ids if id_ not in found]
    runner.finish(
        {"messages": [_fields(each, is_whole=True) for each in rows]},
        missing,
        is_json=json,
        show=lambda: _show_each(rows),
    )


@app.command(epilog=CANCEL_EXAMPLES)
def cancel(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="Id printed by `list`, message id or recall handle."),
    ],
    yes: runner.Yes = False,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Cancel messages before they are delivered. Asks for confirmation on a terminal.

    A message is either cancelled or delivered, never both; the output says which.
    """
    from rockgate.cli.client.kafka.errors import Missed
    from rockgate.cli.client.remoting import delays

    runner.confirm(f"Cancel delivery of {', '.join(ids)}?", is_sure=yes)

    async def work(remoting: RemotingConnection) -> dict[str, Cancelled]:
        return {id_: await delays.cancel(remoting, id_) for id_ in ids}

    done = runner.run_remoting(
        work, broker=broker, server=bootstrap_server, timeout=timeout, is_json=json
    )
    errors: list[ClientError] = [
        Missed(id_, _why_not(each.delayed)) for id_, each in done.items() if not each.is_cancelled
    ]
    rows = [
        {
            "id": id_,
            "is_cancelled": each.is_cancelled,
            "delivered": None if each.delayed is None else each.delayed.delivered,
        }
        for id_, each in done.items()
    ]

    def show() -> None:
        for id_, each in done.items():
            if each.is_cancelled:
                say(f"Cancelled {id_}{_what(each.delayed)}.")

    runner.finish({"messages": rows}, errors, is_json=json, show=show)


@app.command(epilog=DELIVER_EXAMPLES)
def deliver(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="Id printed by `list`, message id or recall handle."),
    ],
    yes: runner.Yes = False,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Deliver messages now instead of when they are due. Asks for confirmation on a terminal.

    A message is delivered once, now or when it is due; the output says where.
    """
    from rockgate.cli.client.kafka.errors import Missed
    from rockgate.cli.client.remoting import delays

    runner.confirm(f"Deliver {', '.join(ids)} now?", is_sure=yes)

    async def work(remoting: RemotingConnection) -> dict[str, DeliveredEarly]:
        return {id_: await delays.deliver(remoting, id_) for id_ in ids}

    done = runner.run_remoting(
        work, broker=broker, server=bootstrap_server, timeout=timeout, is_json=json
    )
    errors: list[ClientError] = [
        Missed(id_, _why_not(each.delayed)) for id_, each in done.items() if not each.is_delivered
    ]
    rows = [
        {
            "id": id_,
            "is_delivered": each.is_delivered,
            "delivered": None if each.delayed is None else each.delayed.delivered,
        }
        for id_, each in done.items()
    ]

    def show() -> None:
        for id_, each in done.items():
            if each.is_delivered and each.delayed is not None:
                say(f"Delivered {id_} as {each.delayed.delivered}{_what(each.delayed)}.")

    runner.finish({"messages": rows}, errors, is_json=json, show=show)


_UNKNOWN: Final = "not found. List delayed messages with `rockgate delay list`"


def _why_not(delayed: Delayed | None) -> str:
    if delayed is None:
        return _UNKNOWN
    if delayed.delivered is not None:
        return f"already delivered as {delayed.delivered}"
    return "already delivered or cancelled"


def _what(delayed: Delayed | None) -> str:
    from rockgate.cli.text import values

    if delayed is None or delayed.message is None:
        return ""
    due = f", due {values.time_text(delayed.due_ms)}" if delayed.due_ms >= 0 else ""
    return f" (topic {delayed.message.topic}{due})"


def _cursor(text: str) -> Cursor:
    from rockgate.cli.client.remoting.delays import Cursor

    due, colon, sequence = text.partition(":")
    if not colon or not (due + sequence).isascii() or not (due + sequence).isdigit():
        raise ValueError(f"expected a cursor such as 1767225600000:17, got {text!r}")
    return Cursor(int(due), int(sequence))


def _progress(counted: int, waiting: int) -> None:
    from rockgate.cli.text import tables

    if tables.is_watched() and counted < waiting:
        typer.echo(f"\r{counted:,} of {waiting:,} …", err=True, nl=False)


# What is printed


def _show(found: Overview, details: dict[str, Delayed], cursor: Any, *, is_exact: bool) -> None:
    from rockgate.cli.text import tables, values
    from rockgate.protocol.remoting.bodies.admin import DUE_NAMES

    if not found.counts:
        tables.note("No delayed messages.")
        return
    tables.table(
        ("topic", "by", "waiting", *DUE_NAMES),
        [(each.topic, each.by, each.waiting, *each.due) for each in found.counts],
    )
    if not is_exact:
        tables.note(
            f"{found.waiting:,} messages are too many to count by topic; --exact counts anyway,"
            " in about 10 s per million."
        )
    if not found.soonest:
        return
    say()
    tables.table(
        ("id", "topic", "queue", "due", "in", "size", "keys", "tags", "by"),
        [_row(each, details.get(each.id), found.now_ms) for each in found.soonest],
    )
    if cursor:
        count = values.plural(len(found.soonest), "message")
        tables.note(f"Showing {count}; continue with --after {cursor}")


def _row(place: DelayPlace, delayed: Delayed | None, now_ms: int) -> tuple[str | int | None, ...]:
    from rockgate.cli.text import values

    due = values.time_text(place.due_ms)
    ahead = values.span_text(place.due_ms - now_ms)
    if delayed is None or delayed.message is None:
        return (place.id, None, None, due, ahead, None, None, None, None)
    message = delayed.message
    return (
        place.id,
        message.topic,
        message.queue,
        due,
        ahead,
        message.size,
        message.keys,
        message.tags,
        delayed.origin,
    )


def _show_each(rows: list[Delayed]) -> None:
    from rockgate.cli.text import message_view, values

    for number, each in enumerate(rows):
        if number:
            say()
        lines = [("id", each.id), ("waiting", "yes" if each.is_waiting else "no")]
        if each.due_ms >= 0:
            lines.append(("due", values.time_text(each.due_ms)))
        if each.delivered:
            lines.append(("delivered", each.delivered))
        lines.append(("by", each.origin))
        if each.message is not None:
            lines += message_view.message_lines(each.message)
        message_view.echo_lines(lines)


def _count_fields(count: Count) -> dict[str, Any]:
    from rockgate.protocol.remoting.bodies.admin import DUE_NAMES

    due = dict(zip(DUE_NAMES, count.due, strict=True))
    return {"topic": count.topic, "by": count.by, "waiting": count.waiting, **due}


def _row_fields(place: DelayPlace, delayed: Delayed | None) -> dict[str, Any]:
    fields = {"id": place.id} if delayed is None else _fields(delayed, is_whole=False)
    return {**fields, "due_ms": place.due_ms}


def _fields(delayed: Delayed, *, is_whole: bool) -> dict[str, Any]:
    from rockgate.cli.text.message_view import message_fields

    message = delayed.message
    return {
        "id": delayed.id,
        "is_waiting": delayed.is_waiting,
        "due_ms": delayed.due_ms,
        "by": delayed.origin,
        "delivered": delayed.delivered,
        **({} if message is None else message_fields(message, is_whole=is_whole)),
    }
