"""Who is connected, as far as groups and metrics tell, and what clients may use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from nicegui import ui

from rockgate.cli.client.admin import groups as group_wire
from rockgate.cli.client.admin import quotas
from rockgate.cli.client.admin.quotas import Entity, Quota
from rockgate.cli.client.kafka.errors import ClientError, Refused
from rockgate.console.session.peer import Peer
from rockgate.console.widgets.actions import attempt, button, may_change, say_error
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
KINDS: Final = {"user": "User", "client-id": "Client id", "ip": "Address"}
LIMITS: Final = {
    "producer_byte_rate": "Produced bytes a second",
    "consumer_byte_rate": "Consumed bytes a second",
    "request_percentage": "Time of requests, in per cent",
    "controller_mutation_rate": "Created and deleted partitions a second",
    "connection_creation_rate": "New connections a second",
}
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
    live = Live(lambda: _read(server), _show, every_s=REFRESH_S)
    if may_change():
        button("Change quotas", lambda: _change(server, live), icon="edit")


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
    values = ", ".join(f"{name}={value:,.15g}" for name, value in quota.values.items())
    return Row(entity, {"entity": entity, "values": values})


async def _change(server: Peer, live: Live[Any]) -> None:
    """Ask whose quotas, show those there are, and set or remove them."""
    fields: dict[str, Any] = {}
    with ui.dialog() as dialog, ui.card().classes("rg-dialog"):
        ui.label("Change quotas").classes("rg-subtitle")
        ui.label("Of a user, a client id, both together, or an address.").classes("rg-quiet")
        whom: dict[str, tuple[Any, Any]] = {}
        for kind, label in KINDS.items():
            with ui.row().classes("rg-row"):
                name = ui.input(label).props("outlined dense").classes("rg-grow")
                default = ui.checkbox("the default").props(f'aria-label="{label}: the default"')
            whom[kind] = (name, default)
        for key, label in LIMITS.items():
            fields[key] = ui.input(label).props("outlined dense clearable").classes("rg-live")
        ui.label("An empty field removes the quota.").classes("rg-quiet")

        async def known() -> None:
            """Fill in what is set now."""
            entity = _entity(whom)
            values: Mapping[str, float] = {}
            if entity:
                try:
                    found = await quotas.describe(server.cluster, entity, is_strict=True)
                except ClientError as error:
                    say_error(error)
                    return
                values = found[0].values if found else {}
            for key, field in fields.items():
                field.value = f"{values[key]:.15g}" if key in values else ""

        async def alter() -> None:
            entity = _entity(whom)

            async def work() -> Refused | None:
                if not entity:
                    raise ValueError("name a user, a client id or an address")
                found = await quotas.describe(server.cluster, entity, is_strict=True)
                before = found[0].values if found else {}
                changes = _changes({key: each.value for key, each in fields.items()}, before)
                return await quotas.alter(server.cluster, entity, changes) if changes else None

            if await attempt(work, "Quotas changed."):
                dialog.close()
                await live.refresh()

        for name, default in whom.values():
            name.on("blur", known)
            default.on_value_change(known)
        with ui.row().classes("rg-buttons"):
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            button("Set", alter)
    dialog.open()


def _entity(whom: Mapping[str, tuple[Any, Any]]) -> Entity:
    return tuple(
        (kind, None if default.value else str(name.value).strip())
        for kind, (name, default) in whom.items()
        if default.value or str(name.value or "").strip()
    )


def _changes(
    given: Mapping[str, str | None], before: Mapping[str, float]
) -> list[tuple[str, float | None]]:
    """What has to be set or removed; ValueError for what is no number."""
    found: list[tuple[str, float | None]] = []
    for key, text in given.items():
        plain = (text or "").strip().replace(",", "")
        if not plain:
            if key in before:
                found.append((key, None))
            continue
        try:
            value = float(plain)
        except ValueError:
            raise ValueError(f"expected a number for {key}, not {plain!r}") from None
        if value != before.get(key):
            found.append((key, value))
    return found


def _title(text: str) -> Any:
    return ui.label(text).classes("rg-subtitle").props('role="heading" aria-level="2"')
