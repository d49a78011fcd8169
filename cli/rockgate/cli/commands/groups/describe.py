"""`rockgate groups list`, `describe`, `members`, `state` and `lag`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rockgate.cli.app import completion, runner
from rockgate.cli.text.echo import say

if TYPE_CHECKING:
    from rockgate.cli.admin.group_status import GroupStatus
    from rockgate.cli.client.admin.groups import Group
    from rockgate.cli.client.kafka.cluster import Cluster
    from rockgate.cli.client.kafka.errors import ClientError
    from rockgate.cli.client.remoting.connection import RemotingConnection

Groups = Annotated[
    list[str],
    typer.Argument(
        metavar="GROUP",
        help="Group names, or patterns with * and ?.",
        autocompletion=completion.groups,
    ),
]
AnyGroups = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="GROUP",
        help="Group names, or patterns with * and ?; default: all.",
        autocompletion=completion.groups,
    ),
]

LIST_EXAMPLES = """
[bold]Examples[/bold]

rockgate groups list

rockgate groups list --state empty --state dead

rockgate groups list --kind consumer --json
"""
DESCRIBE_EXAMPLES = """
[bold]Examples[/bold]

rockgate groups describe billing

rockgate groups describe 'billing-*' --json
"""
MEMBERS_EXAMPLES = """
[bold]Examples[/bold]

rockgate groups members billing
"""
STATE_EXAMPLES = """
[bold]Examples[/bold]

rockgate groups state

rockgate groups state billing --json
"""
LAG_EXAMPLES = """
[bold]Examples[/bold]

rockgate groups lag

rockgate groups lag billing --json | jq '.groups[].lag'
"""


def list_(
    state: Annotated[
        list[str] | None,
        typer.Option(help="Only this state: stable, empty, dead, …; repeatable."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only this type: classic, consumer, share; repeatable."),
    ] = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """List the groups of all brokers."""
    from rockgate.cli.client.admin import groups
    from rockgate.cli.text import tables

    found = runner.run(
        lambda cluster: groups.list_groups(
            cluster, states=[each.capitalize() for each in state or ()], kinds=kind or ()
        ),
        server=bootstrap_server,
        timeout=timeout,
        is_json=json,
    )
    rows = [
        {
            "group": each.group_id,
            "kind": each.kind.lower(),
            "state": each.state,
            "protocol_type": each.protocol_type,
        }
        for each in found
    ]
    runner.finish(
        {"groups": rows},
        is_json=json,
        show=lambda: tables.table(
            ("group", "kind", "state", "protocol type"),
            [(e.group_id, e.kind.lower(), e.state, e.protocol_type) for e in found],
        ),
    )


def describe(
    groups: Groups,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Describe groups: state, lag per partition, members and assignments."""
    from rockgate.cli.commands.groups.status import status_fields

    found, errors = _statuses(groups, broker, bootstrap_server, timeout, is_json=json)

    def show() -> None:
        for index, each in enumerate(found):
            if index:
                say()
            _show(each)

    runner.finish({"groups": [status_fields(x) for x in found]}, errors, is_json=json, show=show)


def lag(
    groups: AnyGroups = None,
    broker: runner.Broker = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Show lag by group and topic, in readable records and in offsets."""
    found, errors = _statuses(groups or [], broker, bootstrap_server, timeout, is_json=json)
    rows: list[dict[str, Any]] = []
    for each in found:
        topics: dict[str, tuple[int, int]] = {}
        for line in each.lines:
            records, offsets = topics.get(line.place[0], (0, 0))
            topics[line.place[0]] = records + (line.lag or 0), offsets + (line.offset_lag or 0)
        rows.append(
            {
                "group": each.group.group_id,
                "state": each.group.state,
                "lag": each.lag,
                "offset_lag": each.offset_lag,
                "topics": [
                    {"topic": name, "lag": records, "offset_lag": offsets}
                    for name, (records, offsets) in topics.items()
                ],
            }
        )
    runner.finish(
        {"groups": rows},
        errors,
        is_json=json,
        show=lambda: _show_lag(rows),
    )


def _show_lag(rows: list[dict[str, Any]]) -> None:
    from rockgate.cli.text import tables

    lines = [
        (row["group"], row["state"], topic["topic"], topic["lag"], topic["offset_lag"])
        for row in rows
        for topic in row["topics"]
    ]
    if lines:
        tables.table(("group", "state", "topic", "lag", "offset lag"), lines)
    else:
        say("No committed offsets.")


def members(
    groups: Groups,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """List the members of groups and their assigned partitions."""
    from rockgate.cli.commands.groups.status import group_fields

    found, errors = _groups(groups, bootstrap_server, timeout, is_json=json)

    def show() -> None:
        for index, each in enumerate(found):
            if index:
                say()
            _show_members(each)

    runner.finish({"groups": [group_fields(x) for x in found]}, errors, is_json=json, show=show)


def state(
    groups: AnyGroups = None,
    bootstrap_server: runner.Server = runner.SERVER,
    timeout: runner.Timeout = runner.TIMEOUT,
    json: runner.Json = False,
) -> None:
    """Show the state, coordinator, assignor and member count of groups."""
    from rockgate.cli.commands.groups.status import group_fields
    from rockgate.cli.text import tables

    found, errors = _groups(groups or [], bootstrap_server, timeout, is_json=json)
    runner.finish(
        {"groups": [group_fields(each) for each in found]},
        errors,
        is_json=json,
        show=lambda: tables.table(
            ("group", "kind", "state", "assignor", "coordinator", "members"),
            [
                (x.group_id, x.kind, x.state, x.assignor or None, x.coordinator, len(x.members))
                for x in found
            ],
        ),
    )


def _statuses(
    names: list[str], broker: str | None, server: str, timeout: str, *, is_json: bool
) -> tuple[list[GroupStatus], list[ClientError]]:
    from rockgate.cli.admin import group_status as status

    async def work(
        cluster: Cluster, remoting: RemotingConnection
    ) -> tuple[list[GroupStatus], list[ClientError]]:
        return await status.statuses(cluster, remoting, await status.named(cluster, names))

    return runner.run_both(work, broker=broker, server=server, timeout=timeout, is_json=is_json)


def _groups(
    names: list[str], server: str, timeout: str, *, is_json: bool
) -> tuple[list[Group], list[ClientError]]:
    from rockgate.cli.admin.group_status import named
    from rockgate.cli.client.admin import groups
    from rockgate.cli.client.kafka.errors import Refused

    async def work(cluster: Cluster) -> tuple[list[Group], list[ClientError]]:
        found: list[Group] = []
        errors: list[ClientError] = []
        for name in await named(cluster, names):
            try:
                found.append(await groups.describe(cluster, name))
            except Refused as error:
                errors.append(error)
        return found, errors

    return runner.run(work, server=server, timeout=timeout, is_json=is_json)


def _show(status: GroupStatus) -> None:
    from rockgate.cli.text import tables

    group = status.group
    say(f"group        {group.group_id}")
    say(f"state        {group.state}, {group.kind}")
    say(f"coordinator  {group.coordinator}")
    say(f"assignor     {group.assignor or '-'}")
    say(f"lag          {status.lag:,}" + _empties(status))
    if status.lines:
        say()
        tables.table(
            _COLUMNS,
            [
                (
                    *line.place,
                    line.committed,
                    line.end,
                    line.lag,
                    line.offset_lag,
                    line.owner.client_id if line.owner else None,
                    line.owner.host if line.owner else None,
                    line.owner.member_id if line.owner else None,
                )
                for line in status.lines
            ],
        )
    if group.members:
        say()
        _show_members(group)


_COLUMNS = (
    "topic",
    "partition",
    "committed",
    "end",
    "lag",
    "offset lag",
    "client",
    "host",
    "member",
)


def _empties(status: GroupStatus) -> str:
    count = status.offset_lag - status.lag
    return f", plus {count:,} offsets without readable records" if count else ""


def _show_members(group: Group) -> None:
    from rockgate.cli.text import tables

    if not group.members:
        say(f"Group {group.group_id} has no members ({group.state}).")
        return
    tables.table(
        ("member", "client", "host", "instance", "partitions"),
        [
            (x.member_id, x.client_id, x.host, x.instance_id, partitions_text(x.assignment))
            for x in group.members
        ],
    )


def partitions_text(places: tuple[tuple[str, int], ...]) -> str:
    """`orders:0,1 payments:3`."""
    from rockgate.cli.client.kafka.view import by_topic

    topics = by_topic(places)
    return " ".join(f"{t}:{','.join(map(str, parts))}" for t, parts in topics.items()) or "-"
