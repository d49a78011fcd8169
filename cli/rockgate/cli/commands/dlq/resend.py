"""`rockgate dlq resend`: dead letters back to where they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import completion, runner
from rockgate.cli.commands.dlq import filters
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.admin.dead_letter_resends import Outcome
    from rockgate.cli.client.remoting.dead_letters import Filter, LetterId

EXAMPLES = """
[bold]Examples[/bold]

rockgate dlq resend billing/0/17 billing/0/18

rockgate dlq resend --group billing --topic orders --since 2026-01-31T00:00:00Z --dry-run

rockgate dlq resend --group billing --all --yes

rockgate dlq resend billing/0/17 --to orders-fixed --again
"""


Group = Annotated[
    str | None,
    typer.Option(
        metavar="GROUP",
        help="Group whose dead letters to resend.",
        autocompletion=completion.groups,
    ),
]


def resend(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]", help="GROUP/QUEUE/OFFSET, as printed by `list`."),
    ] = None,
    group: Group = None,
    all_: Annotated[bool, typer.Option("--all", help="All dead letters of the group.")] = False,
    topic: filters.Topic = None,
    key: filters.Key = None,
    reason: filters.Reason = None,
    since: filters.Since = None,
    until: filters.Until = None,
    to: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Topic to send to instead of the original.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Include dead letters that were already resent.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Validate on the server and print what would be sent."),
    ] = False,
    yes: runner.Yes = False,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Resend dead letters, unchanged, to their original topics.

    Each is resent once, even if the command is repeated or interrupted; --again resends it. The
    dead letter stays in its queue. Asks for confirmation on a terminal.
    """
    from rockgate.cli.admin import dead_letter_resends as resends
    from rockgate.cli.client.remoting import dead_letters as wire
    from rockgate.cli.text.values import plural

    wanted = filters.read_filter(topic, key, reason, since, until)
    named = [runner.checked("ID", wire.read_id, id_) for id_ in ids or ()]
    _check(named, group, wanted, is_all=all_)
    if group is not None:
        name = wire.group_of(group)
        named = runner.run_remoting(
            lambda remoting: resends.matching(remoting, name, wanted, is_again=again),
            broker=broker,
            server=bootstrap_server,
            timeout=timeout,
            is_json=json,
        )
    if not dry_run and named:
        where = f" to {to}" if to else ""
        runner.confirm(f"Resend {plural(len(named), 'dead letter')}{where}?", is_sure=yes)
    done: list[Outcome] = []
    if named:
        runner.run_remoting(
            lambda remoting: resends.resend(
                remoting, named, to, done, is_again=again, is_dry_run=dry_run
            ),
            broker=broker,
            server=bootstrap_server,
            timeout=timeout,
            is_json=json,
            broken_off=lambda: _show_part(done, len(named), is_dry_run=dry_run),
        )
    runner.finish(
        {"dead_letters": [_fields(each, is_dry_run=dry_run) for each in done]},
        [each.error for each in done if each.error is not None],
        is_json=json,
        show=lambda: _show(done, is_dry_run=dry_run),
    )


def _check(named: list[LetterId], group: str | None, wanted: Filter, *, is_all: bool) -> None:
    is_filtered = wanted != type(wanted)()
    if bool(named) == (group is not None):
        runner.usage("Give ids, or --group with --all or a filter.")
    if named and (is_all or is_filtered):
        runner.usage("Ids cannot be combined with --all or filters; those require --group.")
    if group is not None and is_all == is_filtered:
        runner.usage(
            "--group requires --all or a filter: --topic, --key, --reason, --since, --until."
        )


def _fields(each: Outcome, *, is_dry_run: bool) -> dict[str, Any]:
    answer = each.resend
    is_resent = answer is not None and answer.is_resent and not is_dry_run
    return {
        "id": str(each.id),
        "is_resent": is_resent,
        "topic": answer.topic if answer is not None else None,
        "queue": answer.queue if answer is not None and is_resent else None,
        "offset": answer.offset if answer is not None and is_resent else None,
    }


def _show_part(done: list[Outcome], count: int, *, is_dry_run: bool) -> None:
    """Report what was done before the interruption."""
    from rockgate.cli.text import tables

    if done:
        _show(done, is_dry_run=is_dry_run)
    tables.note(
        f"rockgate: Interrupted after {len(done):,} of {count:,}."
        " Run the same command to resend the rest."
    )


def _show(done: list[Outcome], *, is_dry_run: bool) -> None:
    from rockgate.cli.text import tables

    if not done:
        tables.note("No dead letters match.")
    for each in done:
        if each.resend is None or not each.resend.is_resent:
            continue
        if is_dry_run:
            say(f"Would resend {each.id} to {each.resend.topic}/{each.resend.queue}.")
        else:
            place = f"{each.resend.topic}/{each.resend.queue}/{each.resend.offset}"
            say(f"Resent {each.id} as {place}.")
