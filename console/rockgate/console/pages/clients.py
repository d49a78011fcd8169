"""Who is connected, as far as groups and metrics tell, and what clients may use."""

from __future__ import annotations

import asyncio
from typing import Any, Final, NamedTuple

from nicegui import ui

from rockgate.cli.client.admin import groups as group_wire
from rockgate.cli.client.admin import quotas
from rockgate.cli.client.admin.quotas import Quota
from rockgate.cli.client.kafka.errors import ClientError, Refused
from rockgate.console.session.peer import Peer
from rockgate.console.widgets.frame import link_to, page, peer
from rockgate.console.widgets.grid import Column, Row, grid
from rockgate.console.widgets.live import Live

REFRESH_S: Final = 10.0
GROUPS_MAX: Final = 200
"""How many groups are asked for their members."""
AT_ONCE: Final = 8
MEMBERS: Final = (
    Column("client", "Client"),
    Column("host", "Host"),
    Column("group", "Group"),
    Column("partitions", "Partitions", is_number=True, is_wide=True),
)
QUOTAS: Final = (Column("entity", "Client"), Column("values", "Quotas", is_mono=True))
NOT_ACTIVE: Final = ("Empty", "Dead")


class Page(NamedTuple):
    """Members of groups, quotas, and why one of them is missing."""

    connections: list[tuple[str, str]]
    members: list[Row]
    left_out: int
    quotas: list[Quota]
    problem: str


@page("/clients", "Clients")
def clients() -> None:
    """Connections, members, quotas."""
    server = peer()
    Live(lambda: _read(server), _show, every_s=REFRESH_S)


async def _read(server: Peer) -> Page:
    active = [each for each in await server.groups.get() if each.state not in NOT_ACTIVE]
    turns = asyncio.Semaphore(AT_ONCE)

    async def members(group_id: str) -> list[Row]:
        async with turns:
            try:
                found = await group_wire.describe(server.cluster, group_id)
            except Refused:
                return []
        return [
            Row(
                f"{group_id}-{each.member_id}",
                {
                    "client": each.client_id,
                    "host": each.host,
                    "group": group_id,
                    "partitions": len(each.assignment),
                },
                {"group": link_to("groups", group_id)},
            )
            for each in found.members
        ]

    asked = active[:GROUPS_MAX]
    found = await asyncio.gather(*(members(each.group_id) for each in asked))
    problem, limits = "", list[Quota]()
    try:
        limits = await quotas.describe(server.cluster, (), is_strict=False)
    except ClientError as error:
        problem = str(error)
    return Page(
        connections=_connections(server),
        members=[each for rows in found for each in rows],
        left_out=len(active) - len(asked),
        quotas=limits,
        problem=problem,
    )


def _connections(server: Peer) -> list[tuple[str, str]]:
    if server.metrics is None:
        return []
    found = {"Kafka": server.metrics.total("rockgate_kafka_connections")}
    for name, count in server.metrics.by("rockgate_remoting_connections", "listener").items():
        found[f"RocketMQ, {name}"] = count
    return [(name, f"{count:,.0f}") for name, count in found.items()]


def _show(found: Page) -> None:
    with ui.element("div").classes("rg-tiles"):
        for name, count in found.connections:
            with ui.column().classes("rg-tile"):
                ui.label(count).classes("rg-tile-value")
                ui.label(f"connections: {name}").classes("rg-tile-name")
    _title("Members of groups")
    grid(MEMBERS, found.members, label="Members", empty="No group has members.")
    if found.left_out:
        ui.label(f"{found.left_out:,} more groups have members.").classes("rg-quiet")
    _title("Quotas")
    if found.problem:
        ui.label(found.problem).classes("rg-problem")
        return
    rows = [_quota_row(each) for each in found.quotas]
    grid(QUOTAS, rows, label="Quotas", empty="No quotas are set.")


def _quota_row(quota: Quota) -> Row:
    entity = ", ".join(f"{kind} {name or '(default)'}" for kind, name in quota.entity)
    values = ", ".join(f"{name}={value:g}" for name, value in quota.values.items())
    return Row(entity, {"entity": entity, "values": values})


def _title(text: str) -> Any:
    return ui.label(text).classes("rg-subtitle").props('role="heading" aria-level="2"')
