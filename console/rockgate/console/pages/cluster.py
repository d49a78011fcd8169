"""The cluster: brokers, features, log directories, APIs."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from nicegui import ui

from rockgate.cli.client.admin import topics as wire
from rockgate.cli.client.admin.topics import LogDir
from rockgate.cli.client.kafka.errors import ClientError, Unreachable
from rockgate.cli.client.kafka.view import View
from rockgate.cli.text.values import size_text
from rockgate.console.session.peer import Peer
from rockgate.console.widgets.frame import page, peer
from rockgate.console.widgets.grid import Column, Row, facts, grid
from rockgate.console.widgets.live import Live
from rockgate.protocol.kafka.api import APIS
from rockgate.protocol.kafka.versions import NO_VERSIONS, Versions

REFRESH_S: Final = 5.0
BROKERS: Final = (
    Column("id", "Broker", is_number=True),
    Column("address", "Address"),
    Column("rack", "Rack", is_wide=True),
    Column("leads", "Leads partitions", is_number=True),
    Column("behind", "Not in sync", is_number=True),
    Column("epoch", "Newest epoch", is_number=True, is_wide=True),
    Column("role", "Role"),
)
DIRECTORIES: Final = (
    Column("broker", "Broker", is_number=True),
    Column("path", "Path", is_mono=True),
    Column("partitions", "Partitions", is_number=True, is_wide=True),
    Column("size", "Size", is_number=True),
    Column("usable", "Usable", is_number=True, is_wide=True),
    Column("total", "Total", is_number=True, is_wide=True),
)
SERVED: Final = (
    Column("key", "Key", is_number=True),
    Column("name", "API"),
    Column("versions", "Versions"),
)


class Page(NamedTuple):
    """What the brokers say."""

    view: View
    features: dict[str, int]
    served: dict[int, Versions]
    directories: list[LogDir]
    problem: str


@page("/cluster", "Cluster")
def cluster() -> None:
    """Brokers and what they serve."""
    server = peer()
    Live(lambda: _read(server), _show, every_s=REFRESH_S)


async def _read(server: Peer) -> Page:
    view, broker = await server.view(), await server.cluster.anyone()
    directories, problem = await directories_of(server)
    return Page(view, dict(broker.finalized), dict(broker.served), directories, problem)


async def directories_of(server: Peer) -> tuple[list[LogDir], str]:
    """The log directories of all brokers, or why they are not known."""
    try:
        return await wire.log_dirs(server.cluster) or [], ""
    except Unreachable:
        raise
    except ClientError as error:
        return [], str(error)


def _show(found: Page) -> None:
    levels = ", ".join(f"{name} {level}" for name, level in sorted(found.features.items()))
    with ui.column().classes("rg-panel"):
        facts(
            [
                ("Cluster", found.view.cluster_id),
                ("Controller", found.view.controller),
                ("Topics", len(found.view.topics)),
                ("Features", levels or None),
            ]
        )
    grid(BROKERS, _broker_rows(found.view), label="Brokers")
    _title("Log directories")
    if found.problem:
        ui.label(found.problem).classes("rg-problem")
    show_directories(found.directories)
    with ui.expansion("APIs").classes("rg-live"):
        rows = [
            Row(
                str(key),
                {
                    "key": key,
                    "name": APIS[key].name if key in APIS else "unknown",  # type: ignore[index]
                    "versions": str(found.served.get(key, NO_VERSIONS)),
                },
            )
            for key in sorted(found.served)
        ]
        grid(SERVED, rows, label="APIs")


def _broker_rows(view: View) -> list[Row]:
    leads, behind, epochs = dict[int, int](), dict[int, int](), dict[int, int]()
    for topic in view.topics.values():
        for part in topic.partitions.values():
            leads[part.leader] = leads.get(part.leader, 0) + 1
            epochs[part.leader] = max(epochs.get(part.leader, -1), part.leader_epoch)
            for node in set(part.replicas) - set(part.in_sync):
                behind[node] = behind.get(node, 0) + 1
    return [
        Row(
            str(each.node_id),
            {
                "id": each.node_id,
                "address": str(each.address),
                "rack": each.rack,
                "leads": leads.get(each.node_id, 0),
                "behind": behind.get(each.node_id, 0),
                "epoch": epochs.get(each.node_id),
                "role": "controller" if each.node_id == view.controller else None,
            },
        )
        for each in view.nodes.values()
    ]


def show_directories(directories: list[LogDir]) -> None:
    """A table of them."""
    rows = [
        Row(
            f"{each.node_id}-{each.path}",
            {
                "broker": each.node_id,
                "path": each.path,
                "partitions": len(each.sizes),
                "size": size_text(sum(each.sizes.values())),
                "usable": size_text(each.usable_bytes),
                "total": size_text(each.total_bytes),
            },
        )
        for each in directories
    ]
    grid(DIRECTORIES, rows, label="Log directories", empty="None are reported.")


def _title(text: str) -> Any:
    return ui.label(text).classes("rg-subtitle").props('role="heading" aria-level="2"')
