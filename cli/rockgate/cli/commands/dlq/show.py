"""`rockgate dlq list` and `show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import completion, runner
from rockgate.cli.commands.dlq import filters
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.client.kafka.errors import ClientError
    from rockgate.cli.client.remoting.connection import RemotingConnection
    from rockgate.cli.client.remoting.dead_letters import LetterId
    from rockgate.protocol.remoting.bodies.admin import DeadLetter, DeadLetterQueue

LIST_EXAMPLES = """
[bold]Examples[/bold]

rockgate dlq list

rockgate dlq list billing --topic orders --since 2026-01-31T00:00:00Z

rockgate dlq list billing --reason tries --json
"""
SHOW_EXAMPLES = """
[bold]Examples[/bold]

rockgate dlq show billing/0/17

rockgate dlq show billing/0/17 --preview 4096 --json
"""


def list_(
    group: Annotated[
        str | None, typer.Argument(metavar="GROUP", autocompletion=completion.groups)
    ] = None,
    topic: filters.Topic = None,
    key: filters.Key = None,
    reason: filters.Reason = None,
    since: filters.Since = None,
    until: filters.Until = None,
    start: Annotated[
        int, typer.Option("--from", min=0, help="First offset, to continue a list.")
    ] = 0,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="Maximum number of dead letters.")
    ] = 50,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """List groups with dead letters; with a GROUP, list its dead letters, oldest first."""
    from rockgate.cli.client.remoting import dead_letters as wire

    wanted = filters.read_filter(topic, key, reason, since, until)
    name = None if group is None else wire.group_of(group)

    async def work(remoting: RemotingConnection) -> tuple[list[DeadLetterQueue], list[DeadLetter]]:
        queues = await wire.queues(remoting, name)
        letters: list[DeadLetter] = []
        for queue in queues if name is not None else ():
            async for letter in wire.read(remoting, queue, wanted, start=start):
                letters.append(letter)
                if len(letters) > limit:
                    return queues, letters
        return queues, letters

    queues, letters = runner.run_remoting(
        work, broker=broker, server=bootstrap_server, timeout=timeout, is_json=json
    )
    following = letters[limit].offset if len(letters) > limit else None
    output: dict[str, Any] = {"queues": [_queue_fields(each) for each in queues]}
    if name is not None:
        output["dead_letters"] = [letter_fields(each) for each in letters[:limit]]
        output["next"] = following

    def show() -> None:
        if name is None:
            _show_queues(queues)
        else:
            _show_letters(letters[:limit], following)

    runner.finish(output, is_json=json, show=show)


def show(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID", help="GROUP/QUEUE/OFFSET, as printed by `list`.")
    ],
    preview: Annotated[
        int, typer.Option(min=0, max=65_536, help="Bytes of the body to print.")
    ] = 512,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Show dead letters: origin, reason, properties and the start of the body."""
    from rockgate.cli.client.kafka.errors import Declined, Missed
    from rockgate.cli.client.remoting import dead_letters as wire

    wanted = [runner.checked("ID", wire.read_id, id_) for id_ in ids]

    async def one(remoting: RemotingConnection, id_: LetterId) -> DeadLetter | ClientError:
        try:
            found = await wire.show(remoting, id_, preview=preview)
        except Declined as error:
            return Declined(error.code, error.message, what=str(id_))
        return found or Missed(str(id_), UNKNOWN)

    async def work(remoting: RemotingConnection) -> list[DeadLetter | ClientError]:
        return [await one(remoting, id_) for id_ in wanted]

    found = runner.run_remoting(
        work, broker=broker, server=bootstrap_server, timeout=timeout, is_json=json
    )
    letters = [each for each in found if not isinstance(each, Exception)]
    runner.finish(
        {"dead_letters": [letter_fields(each, is_whole=True) for each in letters]},
        [each for each in found if isinstance(each, Exception)],
        is_json=json,
        show=lambda: _show_each(letters),
    )


UNKNOWN = "not found. List dead letters with `rockgate dlq list GROUP`"


# What is printed


def letter_fields(letter: DeadLetter, *, is_whole: bool = False) -> dict[str, Any]:
    """A dead letter as programs see it."""
    from rockgate.cli.client.remoting.dead_letters import id_of
    from rockgate.cli.text.message_view import message_fields

    message = message_fields(letter.message, is_whole=is_whole)
    del message["topic"], message["queue"]
    return {
        "id": str(id_of(letter)),
        "group": letter.group,
        "topic": letter.origin_topic,
        "queue": letter.origin_queue,
        "offset": letter.origin_offset,
        "origin_message_id": letter.origin_message_id,
        "failed_ms": letter.failed_ms,
        "dead_ms": letter.dead_ms,
        "reason": letter.reason,
        "is_resent": letter.is_resent,
        **message,
    }


def _queue_fields(queue: DeadLetterQueue) -> dict[str, Any]:
    return {
        "group": queue.group,
        "queue": queue.queue,
        "messages": queue.end - queue.start,
        "start_offset": queue.start,
        "end_offset": queue.end,
        "oldest_ms": queue.oldest_ms,
        "newest_ms": queue.newest_ms,
    }


def _show_queues(queues: list[DeadLetterQueue]) -> None:
    from rockgate.cli.text import tables, values

    if not queues:
        tables.note("No groups have dead letters.")
        return
    tables.table(
        ("group", "queue", "messages", "oldest", "newest"),
        [
            (
                each.group,
                each.queue,
                each.end - each.start,
                values.time_text(each.oldest_ms),
                values.time_text(each.newest_ms),
            )
            for each in queues
        ],
    )


def _show_letters(letters: list[DeadLetter], following: int | None) -> None:
    from rockgate.cli.client.remoting.dead_letters import id_of
    from rockgate.cli.text import tables, values

    if not letters:
        tables.note("No dead letters match.")
        return
    tables.table(
        ("id", "topic", "dead since", "tries", "reason", "keys", "size", "resent", "message id"),
        [
            (
                str(id_of(each)),
                each.origin_topic,
                values.time_text(each.dead_ms),
                each.message.reconsume_times,
                each.reason,
                each.message.keys,
                each.message.size,
                "yes" if each.is_resent else "no",
                each.message.message_id or each.origin_message_id,
            )
            for each in letters
        ],
    )
    if following is not None:
        tables.note(f"More dead letters follow; continue with --from {following}")


def _show_each(letters: list[DeadLetter]) -> None:
    from rockgate.cli.client.remoting.dead_letters import id_of
    from rockgate.cli.text import message_view, values

    for number, each in enumerate(letters):
        if number:
            say()
        place = f"{each.origin_queue}/{each.origin_offset}"
        message_view.echo_lines(
            [
                ("id", str(id_of(each))),
                ("origin", f"{each.origin_topic or '-'} (queue/offset {place})"),
                ("origin message id", each.origin_message_id or "-"),
                ("first failed", values.time_text(each.failed_ms)),
                ("dead since", values.time_text(each.dead_ms)),
                ("reason", each.reason or "-"),
                ("resent", "yes" if each.is_resent else "no"),
                *message_view.message_lines(each.message),
            ]
        )
