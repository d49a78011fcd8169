"""The list of topics, and creating one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicegui import ui

from rockgate.cli.admin.metrics import Metrics
from rockgate.cli.client.admin import topics as wire
from rockgate.cli.client.kafka.errors import Refused
from rockgate.cli.client.kafka.view import Topic
from rockgate.cli.text import values
from rockgate.console.session.peer import Peer
from rockgate.console.widgets.actions import attempt, button, may_change
from rockgate.console.widgets.frame import link_to, page, peer
from rockgate.console.widgets.grid import Column, Row, grid
from rockgate.console.widgets.live import Live
from rockgate.console.widgets.paging import Place, filter_input, pager

COLUMNS = (
    Column("name", "Topic"),
    Column("partitions", "Partitions", is_number=True),
    Column("replicas", "Replicas", is_number=True, is_wide=True),
    Column("messages", "Offsets", is_number=True, is_wide=True),
    Column("size", "Size", is_number=True),
)
REFRESH_S = 10.0


@page("/topics", "Topics")
def topics(q: str = "", page: int = 1, internal: bool = False) -> None:
    """Topics by name, a page at a time."""
    server, place = peer(), Place("topics", q, page)
    state = {"internal": internal}

    async def load() -> tuple[int, list[Row]]:
        view = await server.view()
        wanted = place.q.lower()
        found = [
            each
            for each in view.topics.values()
            if wanted in each.name.lower() and (state["internal"] or not each.is_internal)
        ]
        return len(found), _rows(place.rows(found), server)

    with ui.row().classes("rg-row"):
        filter_input(place, "Filter topics", lambda: live.reload())
        ui.checkbox("internal", value=internal).on_value_change(lambda e: turn(e.value))
        if may_change():
            button("Create topic", lambda: _create(server), icon="add")

    def turn(value: bool) -> None:
        state["internal"] = value
        live.reload()

    def show(found: tuple[int, list[Row]]) -> None:
        count, rows = found
        pager(place, count, lambda: live.reload(), "topics")
        grid(COLUMNS, rows, label="Topics", empty="No topics.")

    live = Live(load, show, every_s=REFRESH_S)


def _rows(found: Sequence[Topic], server: Peer) -> list[Row]:
    metrics = server.metrics or Metrics()
    sizes = metrics.by("rockgate_topic_bytes", "topic")
    counts = metrics.by("rockgate_topic_messages_total", "topic")
    return [_row(each, sizes.get(each.name), counts.get(each.name)) for each in found]


def _row(topic: Topic, size: float | None, count: float | None) -> Row:
    return Row(
        topic.name,
        {
            "name": topic.name,
            "partitions": len(topic.partitions),
            "replicas": topic.replication_factor,
            "messages": None if count is None else int(count),
            "size": None if size is None else values.size_text(int(size)),
        },
        {"name": link_to("topics", topic.name)},
    )


async def _create(server: Peer) -> None:
    with ui.dialog() as dialog, ui.card().classes("rg-dialog"):
        ui.label("Create a topic").classes("rg-subtitle")
        name = ui.input("Name").props("outlined dense autofocus").classes("rg-live")
        with ui.row().classes("rg-row"):
            count = ui.number("Partitions", value=1, min=1, precision=0).props("outlined dense")
            replicas = ui.number("Replicas (-1: default)", value=-1, precision=0)
            replicas.props("outlined dense")
        configs = ui.textarea("Configs, NAME=VALUE on each line").props("outlined dense autogrow")
        configs.classes("rg-live")

        async def make() -> None:
            if await attempt(lambda: _made(server, name, count, replicas, configs)):
                dialog.close()
                ui.navigate.to(link_to("topics", str(name.value)))

        with ui.row().classes("rg-buttons"):
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            button("Create", make)
    dialog.open()


async def _made(server: Peer, name: Any, count: Any, replicas: Any, configs: Any) -> Refused | None:
    lines = [line.strip() for line in str(configs.value or "").splitlines() if line.strip()]
    found = await wire.create(
        server.cluster,
        [str(name.value or "")],
        partition_count=int(count.value or 1),
        replication_factor=int(-1 if replicas.value is None else replicas.value),
        configs=values.mapping(lines),
    )
    answer = found[str(name.value or "")]
    return answer if isinstance(answer, Refused) else None
