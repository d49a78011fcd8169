"""The start: what the server does now, and the last hour of it."""

from __future__ import annotations

import time
from typing import Any

from nicegui import ui

from rockgate.cli.text.values import size_text
from rockgate.console.session.history import INTERVAL_S, Rates
from rockgate.console.session.peer import Peer
from rockgate.console.widgets.charts import draw, line_chart
from rockgate.console.widgets.frame import page, peer
from rockgate.console.widgets.live import Live

POINTS_MAX = 240
"""A chart has no more pixels for an hour than this many points need."""


@page("/", "Overview")
def overview() -> None:
    """Tiles and charts."""
    server = peer()
    Live(lambda: _counts(server), _tiles, every_s=INTERVAL_S)
    _charts(server)


async def _counts(server: Peer) -> list[tuple[str, str]]:
    view = await server.view()
    groups = await server.groups.get()
    tiles = [
        ("Brokers", f"{len(view.nodes):,}"),
        ("Topics", f"{sum(not each.is_internal for each in view.topics.values()):,}"),
        ("Partitions", f"{sum(len(each.partitions) for each in view.topics.values()):,}"),
        ("Groups", f"{len(groups):,}"),
    ]
    sample, rates = server.history.latest, server.history.rates
    if sample is None or server.metrics is None:
        return tiles
    if rates:
        tiles += [
            ("Messages in / s", f"{rates[-1].messages_in:,.1f}"),
            ("Requests / s", f"{rates[-1].requests:,.1f}"),
            ("In / s", size_text(int(rates[-1].bytes_in))),
            ("Out / s", size_text(int(rates[-1].bytes_out))),
        ]
    if sample.lag is not None:
        tiles.append(("Lag of all groups", f"{sample.lag:,.0f}"))
    if sample.disk_used is not None:
        tiles.append(("Disk used", f"{sample.disk_used:.0%}"))
    if sample.delayed is not None:
        tiles.append(("Delayed messages", f"{sample.delayed:,.0f}"))
    if sample.half_messages is not None:
        tiles.append(("Half messages", f"{sample.half_messages:,.0f}"))
    size = server.metrics.value("rockgate_segment_bytes")
    if size is not None:
        tiles.append(("Log", size_text(int(size))))
    tiles.append(("Connections", f"{sample.connections:,.0f}"))
    return tiles


def _tiles(tiles: list[tuple[str, str]]) -> None:
    with ui.element("div").classes("rg-tiles"):
        for name, value in tiles:
            with ui.column().classes("rg-tile"):
                ui.label(value).classes("rg-tile-value")
                ui.label(name).classes("rg-tile-name")


def _charts(server: Peer) -> None:
    note = ui.label().classes("rg-quiet")
    with ui.element("div").classes("rg-charts") as charts:
        throughput = line_chart("Throughput", ("in", "out"), "KiB/s")
        messages = line_chart("Messages in", ("messages",), "per second")
        requests = line_chart("Requests", ("requests", "errors"), "per second")
        lag = line_chart("Lag of all groups", ("lag",), "messages")
        delay = line_chart("Event-loop delay", ("mean",), "ms")
        disk = line_chart("Disk used", ("used",), "%")

    def renew() -> None:
        now_ms = int(time.time() * 1000)
        charts.visible = bool(server.history.samples)
        note.text = _note(server)
        if not server.history.samples:
            return
        rates, samples = _thinned(server.history.rates), _thinned(server.history.samples)
        kib = 1 << 10
        draw(throughput, (_line(rates, "bytes_in", kib), _line(rates, "bytes_out", kib)), now_ms)
        draw(messages, (_line(rates, "messages_in"),), now_ms)
        draw(requests, (_line(rates, "requests"), _line(rates, "errors")), now_ms)
        draw(lag, (_line(samples, "lag"),), now_ms)
        draw(delay, (_line(rates, "loop_delay_ms"),), now_ms)
        draw(disk, (_line(samples, "disk_used", 0.01),), now_ms)

    ui.timer(INTERVAL_S, renew)


def _note(server: Peer) -> str:
    if server.metrics_error is not None:
        return f"No metrics: {server.metrics_error} Charts need the address of --metrics."
    if server.servers.metrics is None:
        return "Charts need metrics, which --metrics=off turned off."
    return "" if server.history.samples else "Waiting for metrics."


def _thinned(values: Any) -> list[Any]:
    found = list(values)
    step = max(1, len(found) // POINTS_MAX)
    return found[::-step][::-1] if step > 1 else found


def _line(values: list[Rates], name: str, unit: float = 1.0) -> list[tuple[int, float]]:
    found = ((each.at_ms, getattr(each, name)) for each in values)
    return [(at, value / unit) for at, value in found if value is not None]
