"""One group: members, lag with its history and the time to catch up, and changing its offsets."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from nicegui import ui

from rockgate.cli.admin import offset_resets
from rockgate.cli.admin.group_status import GroupStatus
from rockgate.cli.admin.offset_resets import How, Move
from rockgate.cli.client.admin import groups as wire
from rockgate.cli.client.kafka.errors import ClientError
from rockgate.cli.client.kafka.view import by_topic
from rockgate.cli.text import values
from rockgate.console.session.lag_history import Line, Watched, catch_up_ms
from rockgate.console.session.peer import Peer
from rockgate.console.widgets.actions import (
    attempt,
    button,
    confirmed,
    may_change,
    say_error,
)
from rockgate.console.widgets.charts import draw, line_chart, redraw_lines
from rockgate.console.widgets.frame import link_to, page, peer
from rockgate.console.widgets.grid import Column, Row, facts, grid
from rockgate.console.widgets.live import Live
from rockgate.console.widgets.times import now_ms

REFRESH_S: Final = 5.0
LINES_MAX: Final = 6
"""Partitions with a line of their own."""
ALL: Final = "all topics with committed offsets"
WAYS: Final = {
    "to_earliest": "To the start",
    "to_latest": "To the end",
    "to_offset": "To an offset",
    "shift_by": "By a number of offsets",
    "to_datetime": "To a time",
    "by_duration": "Back by a duration",
}
LAGS: Final = (
    Column("topic", "Topic"),
    Column("partition", "Partition", is_number=True),
    Column("committed", "Committed", is_number=True),
    Column("end", "End", is_number=True, is_wide=True),
    Column("lag", "Lag", is_number=True),
    Column("left", "Time to catch up"),
    Column("client", "Client", is_wide=True),
    Column("host", "Host", is_wide=True),
)
MEMBERS: Final = (
    Column("client", "Client"),
    Column("host", "Host"),
    Column("member", "Member", is_wide=True, is_mono=True),
    Column("instance", "Instance", is_wide=True),
    Column("partitions", "Partitions", is_wide=True),
)
MOVES: Final = (
    Column("topic", "Topic"),
    Column("partition", "Partition", is_number=True),
    Column("old", "Now", is_number=True),
    Column("new", "Then", is_number=True),
    Column("lag", "Lag then", is_number=True),
)


@page("/groups/{group:path}", "Group")
def group(group: str) -> None:
    """Everything about a group."""
    server = peer()
    ui.label(group).classes("rg-subtitle").props('role="heading" aria-level="2"')
    watched = server.lag_history.visit(group, now_ms())
    facts_place = ui.column().classes("rg-live")
    with ui.element("div").classes("rg-charts"):
        chart = line_chart("Lag", ("lag",), "messages")
        parts = line_chart("Lag by partition", (), "messages, the largest")

    def show(found: GroupStatus) -> None:
        facts_place.clear()
        with facts_place:
            _facts(found, catch_up_text(watched.total))
        _lags(found, watched)
        _members(found)
        redraw()

    def redraw() -> None:
        now = now_ms()
        draw(chart, (watched.total,), now)
        largest = sorted(watched.places.items(), key=lambda each: -each[1][-1].lag)[:LINES_MAX]
        redraw_lines(parts, {f"{t} {p}": line for (t, p), line in sorted(largest)}, now)

    live = Live(lambda: server.lag_of(group), show, every_s=REFRESH_S)
    ui.timer(REFRESH_S, redraw)
    if may_change():
        ui.label("Change").classes("rg-subtitle").props('role="heading" aria-level="2"')
        with ui.row().classes("rg-row"):
            button("Reset offsets", lambda: _reset(server, group, live), icon="restart_alt")
            button("Delete group", lambda: _delete(server, group), icon="delete", is_danger=True)


def catch_up_text(line: Line) -> str:
    """How long a lag will last at the pace of the last minute."""
    left_ms = catch_up_ms(line)
    if left_ms is None:
        return "measuring"
    if left_ms < 0:
        return "never at this pace"
    return values.span_text(left_ms) if left_ms else "none"


def _facts(found: GroupStatus, catch_up: str) -> None:
    empty = found.offset_lag - found.lag
    with ui.column().classes("rg-panel"):
        facts(
            [
                ("State", f"{found.group.state}, {found.group.kind}"),
                ("Coordinator", found.group.coordinator),
                ("Assignor", found.group.assignor or None),
                ("Members", len(found.group.members)),
                ("Lag", f"{found.lag:,}" + (f" and {empty:,} empty offsets" if empty else "")),
                ("Time to catch up", catch_up),
            ]
        )


def _lags(found: GroupStatus, watched: Watched) -> None:
    rows = [
        Row(
            f"{line.place[0]}-{line.place[1]}",
            {
                "topic": line.place[0],
                "partition": line.place[1],
                "committed": line.committed,
                "end": line.end,
                "lag": line.lag,
                "left": catch_up_text(watched.places.get(line.place, deque())),
                "client": line.owner.client_id if line.owner else None,
                "host": line.owner.host if line.owner else None,
            },
            {"topic": link_to("topics", line.place[0])},
        )
        for line in found.lines
    ]
    grid(LAGS, rows, label="Lag", empty="No committed offsets.")


def _members(found: GroupStatus) -> None:
    ui.label("Members").classes("rg-subtitle").props('role="heading" aria-level="2"')
    rows = [
        Row(
            each.member_id,
            {
                "client": each.client_id,
                "host": each.host,
                "member": each.member_id,
                "instance": each.instance_id,
                "partitions": "; ".join(
                    f"{topic}: {', '.join(map(str, indexes))}"
                    for topic, indexes in by_topic(each.assignment).items()
                ),
            },
        )
        for each in found.group.members
    ]
    grid(MEMBERS, rows, label="Members", empty="No members.")


async def _delete(server: Peer, group: str) -> None:
    lines = [f"Group {group} and all its committed offsets will be deleted."]
    if not await confirmed(f"Delete {group}?", lines, "Delete", typed=group):
        return
    if await attempt(lambda: wire.delete(server.cluster, group), f"Deleted {group}."):
        ui.navigate.to("/groups")


async def _reset(server: Peer, group: str, live: Live[Any]) -> None:
    """Ask where to, show what would change, and change it once that has been seen."""
    try:
        names = sorted((await server.view()).topics)
    except ClientError as error:
        say_error(error)
        return
    seen: list[Move] = []
    with ui.dialog() as dialog, ui.card().classes("rg-dialog"):
        ui.label(f"Reset offsets of {group}").classes("rg-subtitle")
        topic = ui.select([ALL, *names], value=ALL, label="Topics", with_input=True)
        topic.props("outlined dense").classes("rg-live")
        with ui.row().classes("rg-row"):
            way = ui.select(WAYS, value="to_earliest", label="Where to").props("outlined dense")
            value = ui.input("Offset, count, time or duration").props("outlined dense")
            value.classes("rg-grow")
        plan = ui.column().classes("rg-live")

        async def work(*, is_executed: bool) -> list[Move]:
            chosen = {} if topic.value == ALL else {str(topic.value): None}
            how = how_of(str(way.value), str(value.value or ""))
            moves, errors = await offset_resets.reset(
                server.cluster, group, chosen, how, is_executed=is_executed
            )
            if errors:
                raise errors[0]
            return moves

        async def preview() -> None:
            try:
                seen[:] = await work(is_executed=False)
            except (ClientError, ValueError) as error:
                say_error(error)
                return
            plan.clear()
            with plan:
                _plan(seen)
            apply.set_enabled(bool(seen))

        async def execute() -> None:
            async def run() -> None:
                await work(is_executed=True)

            if seen and await attempt(run, "Offsets reset."):
                dialog.close()
                await live.refresh()

        def stale() -> None:
            seen.clear()
            plan.clear()
            apply.disable()

        for each in (topic, way, value):
            each.on_value_change(stale)
        with ui.row().classes("rg-buttons"):
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            button("Show what would change", preview).props("outline")
            apply = button("Reset", execute).props("color=negative")
            apply.disable()
    dialog.open()


def _plan(moves: list[Move]) -> None:
    rows = [
        Row(
            f"{move.place[0]}-{move.place[1]}",
            {
                "topic": move.place[0],
                "partition": move.place[1],
                "old": move.old,
                "new": move.new,
                "lag": move.end - move.new,
            },
        )
        for move in moves
    ]
    grid(MOVES, rows, label="What would change", empty="The group has no committed offsets there.")


def how_of(way: str, value: str) -> How:
    """A way and its value; ValueError if the value does not fit."""
    if way in ("to_earliest", "to_latest"):
        return How(way, True)
    if way == "to_datetime":
        return How(way, values.time_ms(value))
    if way == "by_duration":
        return How(way, values.duration_ms(value))
    try:
        number = int(value)
    except ValueError:
        raise ValueError(f"expected a number, got {value!r}") from None
    if way == "to_offset" and number < 0:
        raise ValueError("an offset is at least 0")
    return How(way, number)
