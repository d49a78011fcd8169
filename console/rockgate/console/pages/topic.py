"""One topic: its partitions, its configs with their documentation, and changing it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

from nicegui import ui

from rockgate.cli.admin.topic_details import Described, described
from rockgate.cli.client.admin import configs as config_wire
from rockgate.cli.client.admin import topics as wire
from rockgate.cli.client.admin.configs import Change, Config, Resource, ResourceType
from rockgate.cli.client.kafka.errors import ClientError, Refused
from rockgate.cli.client.kafka.view import Topic
from rockgate.cli.text.values import size_text
from rockgate.console.session.peer import Peer
from rockgate.console.widgets.actions import attempt, button, confirmed, may_change
from rockgate.console.widgets.charts import draw, line_chart
from rockgate.console.widgets.frame import link_to, page, peer
from rockgate.console.widgets.grid import Column, Row, facts, grid
from rockgate.console.widgets.live import Live
from rockgate.console.widgets.times import now_ms

PARTITIONS = (
    Column("partition", "Partition", is_number=True),
    Column("leader", "Leader", is_number=True),
    Column("epoch", "Epoch", is_number=True, is_wide=True),
    Column("replicas", "Replicas", is_wide=True),
    Column("in_sync", "In sync", is_wide=True),
    Column("start", "Start", is_number=True),
    Column("end", "End", is_number=True),
    Column("records", "Offsets", is_number=True, is_wide=True),
    Column("size", "Size", is_number=True, is_wide=True),
)
CONFIGS = (
    Column("name", "Config"),
    Column("value", "Value", is_mono=True),
    Column("source", "From", is_wide=True),
    Column("type", "Type", is_wide=True),
)
REFRESH_S = 10.0
POINTS_MAX: Final = 360
MIB: Final = 1 << 20


@page("/topics/{name}", "Topic")
def topic(name: str) -> None:
    """Everything about a topic."""
    server = peer()
    with ui.row().classes("rg-row"):
        ui.label(name).classes("rg-subtitle rg-grow").props('role="heading" aria-level="2"')
        for text, target in (("Messages", "messages"), ("Produce", "produce")):
            ui.button(text, on_click=lambda t=target: ui.navigate.to(link_to(t, topic=name))).props(
                "flat dense no-caps"
            )
    own: deque[tuple[int, int, int]] = deque(maxlen=POINTS_MAX)

    async def read() -> Described:
        found = await described(server.cluster, [name])
        ends = sum(bounds.end for bounds in found.bounds.values())
        own.append((now_ms(), sum(found.sizes.values()), ends))
        return found

    Live(read, lambda found: _show(found), every_s=REFRESH_S)
    _charts(server, name, own)
    ui.label("Configs").classes("rg-subtitle").props('role="heading" aria-level="2"')
    state = {"all": False}
    resource = Resource(ResourceType.TOPIC, name)

    async def load() -> tuple[bool, list[Config]]:
        found = await config_wire.describe(server.cluster, [resource], with_documentation=True)
        settings = found[resource]
        if isinstance(settings, Refused):
            raise settings
        return state["all"], [each for each in settings if state["all"] or each.is_own]

    def turn(value: bool) -> None:
        state["all"] = value
        live.reload()

    with ui.row().classes("rg-row"):
        ui.checkbox("with defaults", on_change=lambda e: turn(e.value))
        if may_change():
            button("Change a config", lambda: _change_config(server, resource, live), icon="edit")
    live = Live(load, lambda found: _configs(found[1]))
    if may_change():
        _dangerous(server, name)


def _charts(server: Peer, name: str, own: deque[tuple[int, int, int]]) -> None:
    """Size and rate: of the last hour by metrics, else since the page was opened."""
    with ui.element("div").classes("rg-charts"):
        rate = line_chart("Messages in", ("messages",), "per second")
        size = line_chart("Size", ("size",), "MiB")

    def redraw() -> None:
        samples = server.topic_history.of(name)
        rates = [(each.at_ms, each.rate) for each in samples if each.rate is not None]
        sizes = [(each.at_ms, each.size / MIB) for each in samples]
        if len(rates) < 2:
            # Fewer points than the page has seen by itself.
            rates = rates_of(own)
            sizes = [(at, each / MIB) for at, each, _ in own]
        draw(rate, (rates,), now_ms())
        draw(size, (sizes,), now_ms())

    ui.timer(REFRESH_S, redraw)
    ui.timer(1.0, redraw, once=True)


def rates_of(own: Iterable[tuple[int, int, int]]) -> list[tuple[int, float]]:
    """Offsets a second between samples of (time, size, end offsets)."""
    return [
        (at, max(0, end - before) / ((at - last) / 1000))
        for (last, _, before), (at, _, end) in pairwise(own)
        if at > last
    ]


def _show(found: Described) -> None:
    if not found.topics:
        raise_first(found.errors)
    for each in found.topics:
        _facts(each, found)
        _partitions(each, found)


def raise_first(errors: list[ClientError]) -> None:
    """Show why there is nothing to show."""
    for error in errors[:1]:
        ui.label(str(error)).classes("rg-problem")


def _facts(each: Topic, found: Described) -> None:
    bounds = [found.bounds[each.name, i] for i in each.partitions if (each.name, i) in found.bounds]
    sizes = [found.sizes[each.name, i] for i in each.partitions if (each.name, i) in found.sizes]
    with ui.column().classes("rg-panel"):
        facts(
            [
                ("Partitions", len(each.partitions)),
                ("Replicas", each.replication_factor),
                ("Offsets", sum(b.end - b.start for b in bounds)),
                ("Size", size_text(sum(sizes)) if sizes else None),
                ("Id", each.topic_id.hex() if any(each.topic_id) else None),
            ]
        )


def _partitions(each: Topic, found: Described) -> None:
    rows = []
    for index, part in each.partitions.items():
        bounds = found.bounds.get((each.name, index))
        size = found.sizes.get((each.name, index))
        link = link_to("messages", topic=each.name, partition=index)
        rows.append(
            Row(
                str(index),
                {
                    "partition": index,
                    "leader": "none" if part.leader < 0 else part.leader,
                    "epoch": part.leader_epoch,
                    "replicas": ", ".join(map(str, part.replicas)),
                    "in_sync": ", ".join(map(str, part.in_sync)),
                    "start": bounds.start if bounds else None,
                    "end": bounds.end if bounds else None,
                    "records": bounds.end - bounds.start if bounds else None,
                    "size": None if size is None else size_text(size),
                },
                {"partition": link},
            )
        )
    grid(PARTITIONS, rows, label="Partitions")


def _configs(settings: list[Config]) -> None:
    rows = [
        Row(
            each.name,
            {
                "name": each.name,
                "value": "(hidden)" if each.is_sensitive else each.value,
                "source": each.source,
                "type": each.type,
            },
            titles={"name": each.documentation or "", "value": each.value or ""},
        )
        for each in settings
    ]
    grid(CONFIGS, rows, label="Configs", empty="All configs are at their defaults.")


async def _change_config(server: Peer, resource: Resource, live: Live[Any]) -> None:
    try:
        found = await config_wire.describe(server.cluster, [resource], with_documentation=True)
    except ClientError as error:
        ui.notify(str(error), type="negative")
        return
    settings = found[resource]
    if isinstance(settings, Refused):
        ui.notify(str(settings), type="negative")
        return
    known = {each.name: each for each in settings if not each.is_read_only}
    with ui.dialog() as dialog, ui.card().classes("rg-dialog"):
        ui.label(f"Change a config of {resource}").classes("rg-subtitle")
        name = ui.select(sorted(known), label="Config", with_input=True).props("outlined dense")
        name.classes("rg-live")
        about = ui.label().classes("rg-quiet")
        value = ui.input("Value").props("outlined dense").classes("rg-live")

        def chosen() -> None:
            config = known.get(str(name.value))
            about.text = (config.documentation or "") if config else ""
            value.value = (config.value or "") if config else ""

        async def alter(change: Change) -> None:
            if name.value is None:
                return
            text = str(value.value or "") if change is Change.SET else None
            changes = [(str(name.value), change, text)]
            done = f"Changed {name.value}."
            if await attempt(lambda: config_wire.alter(server.cluster, resource, changes), done):
                dialog.close()
                await live.refresh()

        name.on_value_change(chosen)
        with ui.row().classes("rg-buttons"):
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            button("Back to the default", lambda: alter(Change.DELETE)).props("outline")
            button("Set", lambda: alter(Change.SET))
    dialog.open()


def _dangerous(server: Peer, name: str) -> None:
    ui.label("Change").classes("rg-subtitle").props('role="heading" aria-level="2"')
    with ui.row().classes("rg-row"):
        button("Add partitions", lambda: _grow(server, name), icon="add")
        button("Delete topic", lambda: _delete(server, name), icon="delete", is_danger=True)


async def _grow(server: Peer, name: str) -> None:
    with ui.dialog() as dialog, ui.card().classes("rg-dialog"):
        ui.label(f"Add partitions to {name}").classes("rg-subtitle")
        ui.label(
            "Keys go to other partitions from then on, and partitions cannot be taken away again."
        )
        count = ui.number("Partitions in all", min=1, precision=0).props("outlined dense autofocus")

        async def grow() -> None:
            wanted = int(count.value or 0)
            done = f"{name} has {wanted:,} partitions."
            if await attempt(lambda: wire.grow(server.cluster, name, wanted), done):
                ui.navigate.reload()

        with ui.row().classes("rg-buttons"):
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            button("Add", grow)
    dialog.open()


async def _delete(server: Peer, name: str) -> None:
    try:
        view = await server.cluster.metadata([name])
        count = len(view.topics[name].partitions) if name in view.topics else 0
    except ClientError as error:
        ui.notify(str(error), type="warning")
        return
    lines = [f"Topic {name} with {count:,} partitions and all its messages will be deleted."]
    if not await confirmed(f"Delete {name}?", lines, "Delete", typed=name):
        return

    async def work() -> Refused | None:
        return (await wire.delete(server.cluster, [name])).get(name)

    if await attempt(work, f"Deleted {name}."):
        ui.navigate.to("/topics")
